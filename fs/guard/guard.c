/* SPDX-License-Identifier: MIT */
#include "guard/guard.h"

#include "guard/search.h"
#include "host/clock.h"
#include "host/helper.h"
#include "host/log.h"
#include "host/signals.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Between two looks at whether those that were signalled are gone: at first, and when
 * somebody cannot be stopped. */
#define LOOK_US 10000
#define LOOK_SLOWLY_US 500000
#define LOOK_SLOWLY_AFTER_US 3000000
/* No process was found, but the lock file was not closed: each scan takes this part of the time. */
#define LOOK_SELDOM 20
/* Without a daemon it waits for those who hang no longer than this. */
#define HANGS_US 60000000
/* The children run before others until so long after the lease's end. */
#define HURRY_US 200000

struct guard {
	struct page *page;
	int fd, timer;
	enum on_lost on_lost;
	bool daemon; /* it lives */
	struct searches *search;
	bool looking;              /* a search is under way */
	bool again;                /* somebody has lost since it began */
	int64_t began_us, look_us; /* that search; the next one */
	int64_t ended_us;          /* when holders last lost because the lease was to end */
	bool quiet;                /* the last search found nobody */
	unsigned long looks_ended;
};

/* When holders lose; INT64_MAX: the daemon has told no deadline yet, or nobody holds any more. */
static int64_t end_of_holders(const struct guard *guard)
{
	int64_t deadline_us = atomic_load(&guard->page->deadline_us);

	return deadline_us == INT64_MIN ? INT64_MAX
	                                : deadline_us - guardian_lead_us(guard->on_lost);
}

/* The lease is as good as over: all holders have lost. False: nobody holds. The deadline is read
 * after a slot is seen held: it may be one that has moved on since this look began. */
static bool lose_all(struct guard *guard, int64_t now_us)
{
	struct page *page = guard->page;
	int used = atomic_load(&page->used);
	bool any = false;

	for (int i = 0; i < used; i++) {
		unsigned word = atomic_load(&page->slots[i].word);

		if (STATE_OF(word) == SLOT_HELD && end_of_holders(guard) <= now_us)
			any |= atomic_compare_exchange_strong(&page->slots[i].word, &word,
			                                      WITH_STATE(word, SLOT_LOST));
	}
	return any;
}

/* A taker that has held for too long has lost. Returns when the next one will have. */
static int64_t lose_overdue(struct page *page, int64_t now)
{
	int used = atomic_load(&page->used);
	int64_t next = INT64_MAX;

	for (int i = 0; i < used; i++) {
		unsigned word = atomic_load(&page->slots[i].word);
		int64_t until = atomic_load(&page->slots[i].until_us);

		if (STATE_OF(word) != SLOT_HELD)
			continue;
		/* The time was another one's if the word has changed meanwhile. */
		if (until <= now)
			(void)atomic_compare_exchange_strong(&page->slots[i].word, &word,
			                                     WITH_STATE(word, SLOT_LOST));
		else if (until < next)
			next = until;
	}
	return next;
}

static bool any_held(const struct page *page)
{
	int used = atomic_load(&page->used);

	for (int i = 0; i < used; i++)
		if (STATE_OF(atomic_load(&page->slots[i].word)) == SLOT_HELD)
			return true;
	return false;
}

/* The timer's clock may be slewed, by a tenth at most, and the lease's is not: the wait for the
 * rest is made in ever smaller parts. */
static int64_t part_of(int64_t left_us)
{
	return left_us > 8000 ? left_us - left_us / 8 : left_us;
}

/* Until that time, or a word of the daemon; or not as long. */
static void wait_until(struct guard *guard, int64_t until_us)
{
	struct itimerspec spec = {0};
	struct pollfd fds[2] = {{.fd = guard->daemon ? guard->fd : -1, .events = POLLIN},
	                        {.fd = guard->timer, .events = POLLIN}};
	int without_timer_ms = -1;
	char bytes[64];
	ssize_t n;

	if (until_us != INT64_MAX) {
		int64_t left = until_us - clock_now_us(), wait = left > 0 ? part_of(left) : 0;

		spec.it_value.tv_sec = wait / 1000000;
		spec.it_value.tv_nsec = wait % 1000000 * 1000 + 1;
	}
	if (timerfd_settime(guard->timer, 0, &spec, NULL) < 0)
		without_timer_ms = LOOK_US / 1000;
	if (poll(fds, 2, without_timer_ms) < 0 || !fds[0].revents)
		return;
	n = recv(guard->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	guard->daemon = n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void end_look(struct guard *guard, const struct search_lost *lost)
{
	int64_t now = clock_now_us(), took = now - guard->began_us, pause = LOOK_SLOWLY_US;

	guard->looking = false;
	guard->quiet = !search_found(guard->search);
	if (guard->quiet && took * LOOK_SELDOM > pause)
		pause = took * LOOK_SELDOM;
	/* Looking takes half of the time at most: those who are to end, and the daemon, want to
	 * run. */
	if (!guard->quiet && now - lost->newest_us < LOOK_SLOWLY_AFTER_US)
		pause = took > LOOK_US ? took : LOOK_US;
	guard->look_us = now + pause;
}

static void note_ended(struct guard *guard)
{
	unsigned long ended = search_ended(guard->search);

	if (ended == guard->looks_ended)
		return;
	atomic_fetch_add(&guard->page->looks_ended, ended - guard->looks_ended);
	guard->looks_ended = ended;
	log_line(LC_WARNING,
	         "a process that looks who has a lost lock open was killed: another one "
	         "goes on");
}

/* `at_once`: the lease's end does not wait for the end of a search for others. While the lease
 * ends, SIGKILL must not come too late: the processes to be killed may themselves overload the
 * machine. Losses that users bring about as often as they like, by evicting each other, are in no
 * hurry. */
static struct search_lost look(struct guard *guard, bool at_once)
{
	struct search_lost lost = search_note(guard->search);
	int64_t now = clock_now_us();

	if (at_once)
		guard->ended_us = now;
	search_hurry(guard->search,
	             now - guard->ended_us < guardian_lead_us(guard->on_lost) + HURRY_US);
	guard->again = (guard->again || lost.more) && lost.count > 0;
	if (lost.count > 0 &&
	    (at_once || (!guard->looking && (guard->again || guard->look_us <= now)))) {
		guard->looking = true;
		guard->again = false;
		guard->began_us = now;
		search_begin(guard->search);
	}
	if (search_tend(guard->search) && guard->looking)
		end_look(guard, &lost);
	note_ended(guard);
	return lost;
}

static int64_t next_look(const struct guard *guard, const struct search_lost *lost, int64_t now)
{
	if (guard->looking || lost->due)
		return now + SEARCH_TEND_US;
	if (guard->again)
		return now;
	if (lost->count == 0)
		return INT64_MAX;
	return guard->look_us < lost->kill_us ? guard->look_us : lost->kill_us;
}

/* No holder is left to guard, and none will come. */
static bool is_over(const struct guard *guard, const struct search_lost *lost)
{
	bool guards = atomic_load(&guard->page->deadline_us) != INT64_MIN;

	if (guard->daemon || (guards && any_held(guard->page)) || guard->looking)
		return false;
	if (lost->count == 0)
		return true;
	/* An opener that nobody could look into got SIGTERM, and waits for SIGKILL. */
	return guard->quiet && ((!search_hangs(guard->search) && lost->kill_us == INT64_MAX) ||
	                        clock_now_us() - lost->newest_us > HANGS_US);
}

static void run(struct guard *guard)
{
	while (!atomic_load(&guard->page->clean)) {
		int64_t at = end_of_holders(guard), now = clock_now_us();
		int64_t overdue = lose_overdue(guard->page, now);
		struct search_lost lost = look(guard, at <= now && lose_all(guard, now));
		int64_t look_at;

		log_tend();
		if (is_over(guard, &lost))
			return;
		if (at <= now) /* nobody holds; the next holder's lease moves the deadline */
			at = now + guardian_lead_us(guard->on_lost) / 4;
		at = overdue < at ? overdue : at;
		look_at = next_look(guard, &lost, now);
		wait_until(guard, look_at < at ? look_at : at);
	}
}

_Noreturn void guard_run(struct page *page, int fd, enum on_lost on_lost)
{
	struct guard guard = {
		.page = page,
		.on_lost = on_lost,
		.daemon = true,
		.ended_us = INT64_MIN / 2,
		.timer = -1,
	};

	prctl(PR_SET_NAME, "zklockfs-guard");
	/* The guardian ends with the daemon, not with a signal to both; and it must outlive a
	 * daemon that is killed. */
	signals_ignore_leaving();
	signal(SIGUSR2, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	signals_unblock_all();
	(void)!chdir("/");
	guard.fd = helper_keep_only(fd);
	guard.search = search_create(page, on_lost, guard.fd);
	/* Before those who keep the machine busy, if it may: it has little to do, at its time. */
	setpriority(PRIO_PROCESS, 0, -20);
	guard.timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
	if (guard.fd >= 0 && guard.search && guard.timer >= 0)
		run(&guard);
	else
		log_line(LC_ERROR, "the guardian cannot begin: %s failed",
		         guard.fd < 0    ? "dup"
		         : !guard.search ? "malloc"
		                         : "timerfd_create");
	_exit(0);
}
