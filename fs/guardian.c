/* SPDX-License-Identifier: MIT
 *
 * guardian.c - see guardian.h. The daemon's half is short; the rest runs in the
 * child, which may scan /proc and wait as it likes.
 */
#include "guardian.h"

#include "door.h"
#include "clock.h"
#include "family.h"
#include "log.h"
#include "scan.h"

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
#include <unistd.h>
#define HASH_NONFATAL_OOM 1   /* an element's tbl stays NULL */
#include <uthash.h>

/* Between two looks at whether those that were signalled are gone: at first, and when
 * somebody cannot be stopped. */
#define LOOK_US 10000
#define LOOK_SLOWLY_US 500000
#define LOOK_SLOWLY_AFTER_US 3000000

enum slot_state {
	SLOT_FREE,
	SLOT_HELD,
	SLOT_LOST,       /* said by the daemon, or the deadline came */
	SLOT_FINISHED,   /* said by the guardian: nobody has the door open any more */
	SLOT_OPEN,       /* has the door open and holds nothing */
};

/* State and generation in one word: a slot that was freed and used again meanwhile is
 * another one. */
#define STATE_BITS 3
#define STATE_OF(word) ((enum slot_state)((word) & ((1U << STATE_BITS) - 1)))
#define WITH_STATE(word, state) (((word) & ~((1U << STATE_BITS) - 1)) | (unsigned)(state))
#define NEXT_GENERATION(word, state) ((((word) >> STATE_BITS) + 1) << STATE_BITS | (unsigned)(state))

struct slot {
	_Atomic unsigned word;
	pid_t pid;
	uint64_t start;      /* of the process, with pid its identity */
	uint64_t ino;
	char door[DOOR_NAME_MAX + 1];
};

struct page {
	_Atomic int64_t deadline_us;   /* INT64_MIN: no lease */
	_Atomic int clean;             /* leave without a look */
	int mount_id;                  /* written before the first slot is used */
	char device[32];
	_Atomic int used;              /* slots beyond this were never used */
	struct slot slots[GUARDIAN_SLOTS];
};

/* How many slots a user has. */
struct user {
	uid_t uid;
	int slots;
	UT_hash_handle hh;
};

struct guardian {
	struct page *page;
	int fd;                        /* to the other half: a byte wakes, end of file: it is gone */
	enum on_lost on_lost;
	/* The daemon's: */
	int looked;                    /* guardian_finished(): where the next look begins */
	int free_count;
	int free[GUARDIAN_SLOTS];
	int open_count;
	struct user *users;
	uid_t uids[GUARDIAN_SLOTS];
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

/* What the guardian itself knows of a slot. */
struct loss {
	unsigned word;       /* the slot's, as it was before this round's look at /proc */
	int64_t since_us;    /* first seen lost */
	bool termed;         /* those who had it open then were sent SIGTERM */
	bool open;           /* somebody has it open */
	char door[DOOR_NAME_MAX + 1];
};

struct round {
	const struct guardian *guardian;
	int used;
	int64_t now_us;
	struct loss losses[GUARDIAN_SLOTS];
};

/* As it was when the round began: only that may be stopped, and finished. */
static bool was_lost(const struct round *round, int i)
{
	return i < round->used && STATE_OF(round->losses[i].word) == SLOT_LOST;
}

/* What a slot says at this moment, all of it of one hold: the daemon writes the rest while
 * the word says that it is free, and before it answers the OPEN. While a round looks through
 * /proc slots are given back and taken anew, by those whose turn has come. */
struct now {
	unsigned word;
	pid_t pid;
	uint64_t start, ino;
};

static struct now look_at_slot(const struct round *round, int i)
{
	const struct slot *slot = &round->guardian->page->slots[i];
	struct now now;

	do {
		now = (struct now){.word = atomic_load(&slot->word)};
		now.pid = slot->pid;
		now.start = slot->start;
		now.ino = slot->ino;
		atomic_thread_fence(memory_order_acquire);
	} while (atomic_load(&slot->word) != now.word);
	return now;
}

static bool is_lost(const struct round *round, int i, const struct now *now)
{
	return was_lost(round, i) && round->losses[i].word == now->word;
}

static int slots_used(const struct round *round)
{
	return atomic_load(&round->guardian->page->used);
}

enum { UNKNOWN = -1, BYSTANDER = -2 };

/* The slot by which this process has the door open: one that holds, before one that has
 * lost, before one that holds nothing. */
static int slot_of(const struct round *round, pid_t pid, uint64_t start, uint64_t ino,
                   struct now *ret_now)
{
	int used = slots_used(round), found = UNKNOWN;

	for (int i = 0; i < used; i++) {
		struct now now = look_at_slot(round, i);
		enum slot_state state = STATE_OF(now.word);

		if (now.ino != ino || now.pid != pid || now.start != start)
			continue;
		if (state == SLOT_HELD || state == SLOT_LOST) {
			*ret_now = now;
			found = i;
		}
		if (state == SLOT_HELD)
			return i;
		if (state == SLOT_OPEN && found == UNKNOWN)
			found = BYSTANDER;
	}
	return found;
}

/* Which hold of this door the process descends from, or is the opener of: the nearest.
 * UNKNOWN: none that is known. BYSTANDER: none, and it was opened without holding. */
static int nearest_opener(const struct round *round, pid_t pid, uint64_t ino, struct now *ret_now)
{
	int found = UNKNOWN;

	for (int generations = 0; pid > 1 && generations < 128; generations++) {
		struct ancestry ancestry;
		int slot;

		if (!family_ancestry(pid, &ancestry))
			break;
		slot = slot_of(round, pid, ancestry.start, ino, ret_now);
		if (slot >= 0)
			return slot;
		if (slot == BYSTANDER)
			found = BYSTANDER;
		pid = ancestry.parent;
	}
	return found;
}

static bool is_lost_door(void *ctx, const char *name)
{
	const struct round *round = ctx;

	for (int i = 0; i < round->used; i++)
		if (was_lost(round, i) && strcmp(round->losses[i].door, name) == 0)
			return true;
	return false;
}

static void stop(const struct round *round, const struct loss *loss, pid_t pid)
{
	if (round->guardian->on_lost == ON_LOST_KILL ||
	    round->now_us >= loss->since_us + GUARDIAN_TERM_TO_KILL_US)
		kill(pid, SIGKILL);
	else if (!loss->termed)
		kill(pid, SIGTERM);
}

/* An orphan's opener is gone: whose hold it shares cannot be told if there is a live
 * one of that door. */
static void look_at_orphan(struct round *round, const struct open_file *file)
{
	int used = slots_used(round), lost = -1;

	for (int i = 0; i < used; i++) {
		struct now now = look_at_slot(round, i);

		if (now.ino != file->ino)
			continue;
		if (STATE_OF(now.word) == SLOT_HELD)
			return;
		if (is_lost(round, i, &now))
			lost = i;
	}
	if (lost < 0)
		return;
	for (int i = 0; i < round->used; i++) {
		struct now now = look_at_slot(round, i);

		if (is_lost(round, i, &now) && now.ino == file->ino)
			round->losses[i].open = true;
	}
	stop(round, &round->losses[lost], file->pid);
}

/* One descriptor of one process. */
static void look_at_file(void *ctx, const struct open_file *file)
{
	struct round *round = ctx;
	const struct page *page = round->guardian->page;
	struct now now;
	int opener;

	/* Numbers and names are the same on every mount. */
	if (!scan_is_on_mount(file, page->mount_id, page->device))
		return;
	opener = nearest_opener(round, file->pid, file->ino, &now);
	if (opener == UNKNOWN) {
		look_at_orphan(round, file);
	} else if (opener >= 0 && is_lost(round, opener, &now)) {
		round->losses[opener].open = true;
		stop(round, &round->losses[opener], file->pid);
	}
}

/* An opener that lives and cannot be looked into may have it open. */
static void look_at_opener(struct round *round, int i)
{
	struct now now = look_at_slot(round, i);
	struct ancestry ancestry;

	if (is_lost(round, i, &now) && now.pid > 0 && family_ancestry(now.pid, &ancestry) &&
	    ancestry.start == now.start && !scan_can_look_into(now.pid)) {
		round->losses[i].open = true;
		stop(round, &round->losses[i], now.pid);
	}
}

/* The lease is as good as over, or there is none: whoever holds has lost. */
static void lose_all(struct page *page)
{
	int used = atomic_load(&page->used);

	for (int i = 0; i < used; i++) {
		unsigned word = atomic_load(&page->slots[i].word);

		if (STATE_OF(word) == SLOT_HELD)
			atomic_compare_exchange_strong(&page->slots[i].word, &word,
			                               WITH_STATE(word, SLOT_LOST));
	}
}

/* What is lost now: only that is looked for, and only that may be finished. Returns how
 * many, and the newest one's time. */
static int begin_round(struct round *round, int64_t *ret_newest_us)
{
	struct page *page = round->guardian->page;
	int lost = 0;

	round->now_us = clock_now_us();
	round->used = atomic_load(&page->used);
	for (int i = 0; i < round->used; i++) {
		struct loss *loss = &round->losses[i];
		unsigned word = atomic_load(&page->slots[i].word);

		if (STATE_OF(word) == SLOT_LOST && loss->word != word) {
			*loss = (struct loss){.since_us = round->now_us};
			/* Freed and used anew in this moment, the name is wrong; then the word is, too. */
			memcpy(loss->door, page->slots[i].door, sizeof(loss->door));
			loss->door[DOOR_NAME_MAX] = '\0';
		}
		loss->word = word;
		loss->open = false;
		if (STATE_OF(word) != SLOT_LOST)
			continue;
		lost++;
		if (loss->since_us > *ret_newest_us)
			*ret_newest_us = loss->since_us;
	}
	return lost;
}

static void end_round(struct round *round)
{
	bool finished = false;

	for (int i = 0; i < round->used; i++) {
		struct loss *loss = &round->losses[i];
		unsigned word = loss->word;

		if (!was_lost(round, i))
			continue;
		loss->termed = true;
		if (!loss->open)
			finished |= atomic_compare_exchange_strong(&round->guardian->page->slots[i].word,
			                                           &word, WITH_STATE(word, SLOT_FINISHED));
	}
	if (finished)
		(void)send(round->guardian->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool any_held(const struct page *page)
{
	int used = atomic_load(&page->used);

	for (int i = 0; i < used; i++)
		if (STATE_OF(atomic_load(&page->slots[i].word)) == SLOT_HELD)
			return true;
	return false;
}

/* The timer's clock may be slewed, by a tenth at most, and the lease's is not: what is left
 * is waited for in ever smaller parts. */
static int64_t part_of(int64_t left_us)
{
	return left_us > 8000 ? left_us - left_us / 8 : left_us;
}

/* Until that time, or a word of the daemon; or not as long. False: it is gone. */
static bool wait_until(const struct guardian *guardian, int timer, int64_t until_us, bool daemon)
{
	struct itimerspec spec = {0};
	struct pollfd fds[2] = {{.fd = daemon ? guardian->fd : -1, .events = POLLIN},
	                        {.fd = timer, .events = POLLIN}};
	char bytes[64];
	ssize_t n;

	if (until_us != INT64_MAX) {
		int64_t left = until_us - clock_now_us(), wait = left > 0 ? part_of(left) : 0;

		spec.it_value.tv_sec = wait / 1000000;
		spec.it_value.tv_nsec = wait % 1000000 * 1000 + 1;
	}
	timerfd_settime(timer, 0, &spec, NULL);
	if (poll(fds, 2, -1) < 0 || !fds[0].revents)
		return true;
	n = recv(guardian->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void guard(const struct guardian *guardian)
{
	static struct round round;
	struct page *page = guardian->page;
	int64_t lead = guardian_lead_us(guardian->on_lost);
	int timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
	bool daemon = true;

	round.guardian = guardian;
	while (!atomic_load(&page->clean)) {
		int64_t deadline = atomic_load(&page->deadline_us), newest = 0, now = clock_now_us();
		int64_t at = deadline == INT64_MIN ? INT64_MAX : deadline - lead;
		bool held = any_held(page);

		if (held && (deadline == INT64_MIN || at <= now))
			lose_all(page);
		if (begin_round(&round, &newest) > 0) {
			scan_open_files(is_lost_door, look_at_file, &round);
			for (int i = 0; i < round.used; i++)
				if (was_lost(&round, i) && !round.losses[i].open)
					look_at_opener(&round, i);
			end_round(&round);
			at = clock_now_us() + (now - newest < LOOK_SLOWLY_AFTER_US ? LOOK_US : LOOK_SLOWLY_US);
		} else if (!daemon && !held) {
			return;   /* nobody is left to guard, and nobody will come */
		} else if (at <= now) {
			/* Nobody holds; the next holder's lease moves the deadline. */
			at = now + lead / 4;
		}
		if (!wait_until(guardian, timer, at, daemon))
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
	if (guardian->fd >= 0)
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
	struct user *user, *next;

	if (!guardian)
		return;
	if (clean) {
		atomic_store(&guardian->page->clean, 1);
		wake(guardian);
	}
	if (guardian->fd >= 0)
		close(guardian->fd);
	munmap(guardian->page, sizeof(*guardian->page));
	HASH_ITER(hh, guardian->users, user, next) {
		HASH_DEL(guardian->users, user);
		free(user);
	}
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

/* Slots are for all: the half of them only for those who hold, and of all of them a quarter
 * at most for one user, root aside. */
static struct user *admit(struct guardian *guardian, enum slot_state state, uid_t uid)
{
	struct user *user;

	if (guardian->fd < 0 || guardian->free_count == 0 ||
	    (state == SLOT_OPEN && guardian->open_count >= GUARDIAN_SLOTS / 2))
		return NULL;
	HASH_FIND(hh, guardian->users, &uid, sizeof(uid), user);
	if (user)
		return uid == 0 || user->slots < GUARDIAN_SLOTS / 4 ? user : NULL;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->uid = uid;
	HASH_ADD(hh, guardian->users, uid, sizeof(user->uid), user);
	if (user->hh.tbl)
		return user;
	free(user);
	return NULL;
}

static void dismiss(struct guardian *guardian, uid_t uid)
{
	struct user *user;

	HASH_FIND(hh, guardian->users, &uid, sizeof(uid), user);
	if (--user->slots > 0)
		return;
	HASH_DEL(guardian->users, user);
	free(user);
}

static int fill_slot(struct guardian *guardian, enum slot_state state, const struct guarded *who,
                     void *owner)
{
	struct user *user = admit(guardian, state, who->uid);
	struct slot *slot;
	int i;

	if (!user) {
		if (guardian->fd >= 0)
			log_line(LC_WARNING, "takers of uid %u are refused: more than could be stopped",
			         (unsigned)who->uid);
		return guardian->fd >= 0 ? -ENOLCK : -ESHUTDOWN;
	}
	user->slots++;
	guardian->open_count += state == SLOT_OPEN;
	i = guardian->free[--guardian->free_count];
	guardian->owners[i] = owner;
	guardian->uids[i] = who->uid;
	slot = &guardian->page->slots[i];
	atomic_thread_fence(memory_order_seq_cst);   /* it was free before this: look_at_slot() */
	slot->pid = who->pid;
	slot->start = who->start;
	slot->ino = who->ino;
	snprintf(slot->door, sizeof(slot->door), "%s", who->door);
	if (i >= atomic_load(&guardian->page->used))
		atomic_store(&guardian->page->used, i + 1);
	atomic_store(&slot->word, NEXT_GENERATION(atomic_load(&slot->word), state));
	return i;
}

int guardian_hold(struct guardian *guardian, const struct guarded *who, void *owner)
{
	return fill_slot(guardian, SLOT_HELD, who, owner);
}

int guardian_see(struct guardian *guardian, const struct guarded *who)
{
	return fill_slot(guardian, SLOT_OPEN, who, NULL);
}

void guardian_release(struct guardian *guardian, int slot)
{
	unsigned word;

	if (!guardian || slot < 0)
		return;
	word = atomic_load(&guardian->page->slots[slot].word);
	guardian->open_count -= STATE_OF(word) == SLOT_OPEN;
	atomic_store(&guardian->page->slots[slot].word, NEXT_GENERATION(word, SLOT_FREE));
	guardian->free[guardian->free_count++] = slot;
	dismiss(guardian, guardian->uids[slot]);
}

bool guardian_lose(struct guardian *guardian, int slot)
{
	struct slot *s;
	unsigned word;

	if (!guardian || slot < 0)
		return true;
	s = &guardian->page->slots[slot];
	word = atomic_load(&s->word);
	if (STATE_OF(word) == SLOT_HELD &&
	    atomic_compare_exchange_strong(&s->word, &word, WITH_STATE(word, SLOT_LOST)))
		wake(guardian);
	return STATE_OF(word) == SLOT_FINISHED;
}

int guardian_fd(const struct guardian *guardian)
{
	return guardian ? guardian->fd : -1;
}

bool guardian_listen(struct guardian *guardian)
{
	char bytes[64];
	ssize_t n;

	do
		n = recv(guardian->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	while (n > 0 || (n < 0 && errno == EINTR));
	if (n < 0 && errno == EAGAIN)
		return true;
	close(guardian->fd);
	guardian->fd = -1;
	return false;
}

void *guardian_finished(struct guardian *guardian)
{
	int used = atomic_load(&guardian->page->used);

	while (guardian->looked < used) {
		int slot = guardian->looked++;

		if (STATE_OF(atomic_load(&guardian->page->slots[slot].word)) == SLOT_FINISHED)
			return guardian->owners[slot];
	}
	guardian->looked = 0;
	return NULL;
}
