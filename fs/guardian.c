/* SPDX-License-Identifier: MIT
 *
 * guardian.c - see guardian.h. The daemon's half is short; the rest runs in the
 * child, which may scan /proc and wait as it likes.
 */
#include "guardian.h"

#include "family.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* Between two looks at whether those that were signalled are gone. */
#define LOOK_NS 10000000

enum slot_state {
	SLOT_FREE,
	SLOT_HELD,
	SLOT_LOST,       /* said by the daemon, or the deadline came */
	SLOT_FINISHED,   /* said by the guardian: nobody has the door open any more */
};

struct slot {
	_Atomic int state;
	pid_t pid;
	uint64_t start;      /* of the process, with pid its identity */
	uint64_t ino;
	char door[32];
};

struct page {
	_Atomic int64_t deadline_us;   /* INT64_MIN: no lease */
	_Atomic int clean;             /* leave without a look */
	int mount_id;                  /* written before the first slot is used */
	char device[32];
	_Atomic int used;              /* slots beyond this were never used */
	struct slot slots[GUARDIAN_SLOTS];
};

struct guardian {
	struct page *page;
	int fd;                        /* to the other half: a byte wakes, end of file: it is gone */
	enum on_lost on_lost;
	/* The daemon's: */
	int looked;                    /* guardian_finished(): where the next look begins */
	int free_count;
	int free[GUARDIAN_SLOTS];
	void *owners[GUARDIAN_SLOTS];
};

int64_t guardian_lead_us(enum on_lost on_lost)
{
	switch (on_lost) {
	case ON_LOST_NONE: return 0;
	case ON_LOST_TERM: return GUARDIAN_TERM_LEAD_US;
	case ON_LOST_KILL: return GUARDIAN_KILL_LEAD_US;
	}
	return 0;
}

/* ---- the child ---- */

static int64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return ts.tv_sec * 1000000LL + ts.tv_nsec / 1000;
}

/* Which slot's opener this process descends from, or is: the nearest one. -1: none. */
static int nearest_opener(const struct page *page, pid_t pid)
{
	int used = atomic_load(&page->used);

	for (int generations = 0; pid > 1 && generations < 128; generations++) {
		struct ancestry ancestry;

		if (!family_ancestry(pid, &ancestry))
			return -1;
		for (int i = 0; i < used; i++) {
			const struct slot *slot = &page->slots[i];
			int state = atomic_load(&slot->state);

			if ((state == SLOT_HELD || state == SLOT_LOST) && slot->pid == pid &&
			    slot->start == ancestry.start)
				return i;
		}
		pid = ancestry.parent;
	}
	return -1;
}

struct round {
	struct guardian *guardian;
	int signal;
	unsigned found;
	bool open[GUARDIAN_SLOTS];   /* somebody has this slot's door open */
};

static int slot_of_door(const struct page *page, uint64_t ino, const char *door)
{
	int used = atomic_load(&page->used);

	for (int i = 0; i < used; i++)
		if (atomic_load(&page->slots[i].state) == SLOT_LOST && page->slots[i].ino == ino &&
		    strcmp(page->slots[i].door, door) == 0)
			return i;
	return -1;
}

static bool door_is_held(const struct page *page, uint64_t ino)
{
	int used = atomic_load(&page->used);

	for (int i = 0; i < used; i++)
		if (atomic_load(&page->slots[i].state) == SLOT_HELD && page->slots[i].ino == ino)
			return true;
	return false;
}

static bool is_lost_door(void *ctx, const char *name)
{
	const struct page *page = ((struct round *)ctx)->guardian->page;
	int used = atomic_load(&page->used);

	for (int i = 0; i < used; i++)
		if (atomic_load(&page->slots[i].state) == SLOT_LOST && strcmp(page->slots[i].door, name) == 0)
			return true;
	return false;
}

/* Numbers and names are the same on every mount. In another mount namespace the mount
 * has another number, but the same device. */
static bool is_our_mount(const struct page *page, const struct open_file *file)
{
	char device[32];

	return file->mount_id == page->mount_id ||
	       (family_mount_device(file->pid, file->mount_id, device, sizeof(device)) &&
	        strcmp(device, page->device) == 0);
}

/* One descriptor of one process. */
static void look_at_file(void *ctx, const struct open_file *file)
{
	struct round *round = ctx;
	struct page *page = round->guardian->page;
	int slot = slot_of_door(page, file->ino, file->name), opener;

	if (slot < 0 || !is_our_mount(page, file))
		return;
	opener = nearest_opener(page, file->pid);
	if (opener >= 0 && atomic_load(&page->slots[opener].state) == SLOT_HELD)
		return;
	/* An orphan: whose hold it shares cannot be told if there is a live one too. */
	if (opener < 0 && door_is_held(page, file->ino))
		return;
	round->open[opener >= 0 ? opener : slot] = true;
	round->found++;
	if (round->signal)
		kill(file->pid, round->signal);
}

/* Signals all who have a lost door open, and marks the slots that nobody has. */
static unsigned look_round(struct guardian *guardian, int signal)
{
	static struct round round;
	struct page *page = guardian->page;
	int used = atomic_load(&page->used);
	bool finished = false;

	memset(round.open, 0, sizeof(round.open));
	round.guardian = guardian;
	round.signal = signal;
	round.found = 0;
	family_open_files(is_lost_door, look_at_file, &round);
	for (int i = 0; i < used; i++) {
		int lost = SLOT_LOST;

		if (!round.open[i] && atomic_load(&page->slots[i].state) == SLOT_LOST)
			finished |= atomic_compare_exchange_strong(&page->slots[i].state, &lost,
			                                           SLOT_FINISHED);
	}
	if (finished)
		(void)send(guardian->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	return round.found;
}

static bool any_in(const struct page *page, enum slot_state state)
{
	int used = atomic_load(&page->used);

	for (int i = 0; i < used; i++)
		if (atomic_load(&page->slots[i].state) == (int)state)
			return true;
	return false;
}

/* The lease is as good as over: whoever holds has lost. */
static void lose_all(struct page *page)
{
	int used = atomic_load(&page->used);

	for (int i = 0; i < used; i++) {
		int held = SLOT_HELD;

		atomic_compare_exchange_strong(&page->slots[i].state, &held, SLOT_LOST);
	}
}

static void act(struct guardian *guardian)
{
	const struct timespec look = {.tv_nsec = LOOK_NS};
	int64_t kill_at = now_us();
	int signal = SIGKILL;

	if (guardian->on_lost == ON_LOST_TERM) {
		kill_at += GUARDIAN_TERM_TO_KILL_US;
		signal = SIGTERM;
	}
	/* Signalled once each round would be often for SIGTERM: once, and then only those
	 * that came since are not told; SIGKILL reaches them. */
	while (look_round(guardian, signal) > 0 || any_in(guardian->page, SLOT_LOST)) {
		nanosleep(&look, NULL);
		signal = now_us() >= kill_at ? SIGKILL : 0;
	}
}

/* Until the time to act, or a word of the daemon. False: it is gone. */
static bool wait_until(struct guardian *guardian, int timer, int64_t until_us, bool daemon)
{
	struct itimerspec spec = {0};
	struct pollfd fds[2] = {{.fd = daemon ? guardian->fd : -1, .events = POLLIN},
	                        {.fd = timer, .events = POLLIN}};
	char bytes[64];
	ssize_t n;

	if (until_us != INT64_MAX) {
		spec.it_value.tv_sec = until_us / 1000000;
		spec.it_value.tv_nsec = until_us % 1000000 * 1000 + 1;
	}
	timerfd_settime(timer, TFD_TIMER_ABSTIME, &spec, NULL);
	if (poll(fds, 2, -1) < 0 || !fds[0].revents)
		return true;
	n = recv(guardian->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void guard(struct guardian *guardian)
{
	struct page *page = guardian->page;
	int64_t lead = guardian_lead_us(guardian->on_lost);
	int timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
	bool daemon = true;

	while (!atomic_load(&page->clean)) {
		int64_t deadline = atomic_load(&page->deadline_us);
		int64_t at = deadline == INT64_MIN ? INT64_MAX : deadline - lead;

		if (at <= now_us() && any_in(page, SLOT_HELD))
			lose_all(page);
		if (any_in(page, SLOT_LOST)) {
			act(guardian);
			continue;
		}
		if (!daemon && !any_in(page, SLOT_HELD))
			return;   /* nobody is left to guard, and nobody will come */
		/* A deadline that has passed with nobody holding is waited out: the next
		 * holder's grant moves it. */
		if (!wait_until(guardian, timer, at <= now_us() ? now_us() + lead / 4 : at, daemon))
			daemon = false;
	}
}

static void child(struct guardian *guardian)
{
	sigset_t none;

	prctl(PR_SET_NAME, "zklockfs-guard");
	/* It ends with the daemon, not with a signal to both; and it must outlive one
	 * that is killed. */
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	(void)!chdir("/");
	if (guardian->fd > 3)
		close_range(3, (unsigned)guardian->fd - 1, 0);
	close_range((unsigned)guardian->fd + 1, ~0U, 0);
	guard(guardian);
	_exit(0);
}

/* ---- the daemon ---- */

static void wake(struct guardian *guardian)
{
	(void)send(guardian->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int guardian_start(enum on_lost on_lost, struct guardian **ret_guardian)
{
	struct guardian *guardian = calloc(1, sizeof(*guardian));
	int fds[2] = {-1, -1}, null;
	pid_t pid;

	if (!guardian)
		return -ENOMEM;
	guardian->on_lost = on_lost;
	guardian->page = mmap(NULL, sizeof(*guardian->page), PROT_READ | PROT_WRITE,
	                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (guardian->page == MAP_FAILED) {
		free(guardian);
		return -ENOMEM;
	}
	atomic_store(&guardian->page->deadline_us, INT64_MIN);
	pid = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0 ? -1 : fork();
	if (pid < 0) {
		int error = errno;

		munmap(guardian->page, sizeof(*guardian->page));
		close(fds[0]);
		close(fds[1]);
		free(guardian);
		return -error;
	}
	if (pid == 0) {
		guardian->fd = fds[1];
		/* Nothing of the terminal, nor of the pipe that tells the exit status. */
		null = open("/dev/null", O_RDWR);
		for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
			dup2(null, fd);
		child(guardian);
	}
	guardian->fd = fds[0];
	close(fds[1]);
	for (int i = GUARDIAN_SLOTS - 1; i >= 0; i--)
		guardian->free[guardian->free_count++] = i;
	*ret_guardian = guardian;
	return 0;
}

void guardian_end(struct guardian *guardian, bool clean)
{
	if (!guardian)
		return;
	if (clean) {
		atomic_store(&guardian->page->clean, 1);
		wake(guardian);
	}
	close(guardian->fd);
	munmap(guardian->page, sizeof(*guardian->page));
	free(guardian);
}

void guardian_deadline(struct guardian *guardian, int64_t deadline_us)
{
	int64_t before;

	if (!guardian)
		return;
	before = atomic_exchange(&guardian->page->deadline_us, deadline_us);
	/* One that moves on is found when the old one comes near. */
	if (before == INT64_MIN || deadline_us < before)
		wake(guardian);
}

void guardian_mounted(struct guardian *guardian, int mount_id, const char *device)
{
	if (!guardian)
		return;
	guardian->page->mount_id = mount_id;
	snprintf(guardian->page->device, sizeof(guardian->page->device), "%s", device);
}

int guardian_hold(struct guardian *guardian, pid_t pid, uint64_t ino, const char *door, void *owner)
{
	struct ancestry ancestry;
	struct slot *slot;
	int i;

	if (!guardian || guardian->free_count == 0)
		return -1;
	i = guardian->free[--guardian->free_count];
	guardian->owners[i] = owner;
	slot = &guardian->page->slots[i];
	slot->pid = pid;
	slot->start = family_ancestry(pid, &ancestry) ? ancestry.start : 0;
	slot->ino = ino;
	snprintf(slot->door, sizeof(slot->door), "%s", door);
	if (i >= atomic_load(&guardian->page->used))
		atomic_store(&guardian->page->used, i + 1);
	atomic_store(&slot->state, SLOT_HELD);
	return i;
}

void guardian_release(struct guardian *guardian, int slot)
{
	if (!guardian || slot < 0)
		return;
	atomic_store(&guardian->page->slots[slot].state, SLOT_FREE);
	guardian->free[guardian->free_count++] = slot;
}

bool guardian_lose(struct guardian *guardian, int slot)
{
	int held = SLOT_HELD;

	if (!guardian || slot < 0)
		return true;
	if (atomic_compare_exchange_strong(&guardian->page->slots[slot].state, &held, SLOT_LOST))
		wake(guardian);
	return held == SLOT_FINISHED;
}

int guardian_fd(const struct guardian *guardian)
{
	return guardian ? guardian->fd : -1;
}

void *guardian_finished(struct guardian *guardian)
{
	char bytes[64];
	int used = atomic_load(&guardian->page->used);

	while (recv(guardian->fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	while (guardian->looked < used) {
		int slot = guardian->looked++;

		if (atomic_load(&guardian->page->slots[slot].state) == SLOT_FINISHED)
			return guardian->owners[slot];
	}
	guardian->looked = 0;
	return NULL;
}
