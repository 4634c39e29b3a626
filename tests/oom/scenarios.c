/* SPDX-License-Identifier: MIT
 *
 * scenarios.c - the engine's scenarios of takers, and the table of all scenarios. Each runs
 * straight down: the next line follows at the same time, whatever the result of a take or a
 * question.
 */
#include "scenarios.h"

#include <errno.h>
#include <string.h>

void settle(struct bench *bench)
{
	run(bench, SECOND);
}

static void play_create(struct bench *bench)
{
	begin_host(bench, 0);
	begin_host(bench, SECOND);
	settle(bench);
}

static void play_take(struct bench *bench)
{
	int lock = make_lock(bench, "a"), below = make_lock(bench, "a/b");
	struct host *host = begin_host(bench, 0);
	struct visitor *taker;

	settle(bench);
	taker = take(host, lock, LC_FOREVER, UNTIL_TOLD);
	take(host, below, LC_FOREVER, 0);
	run(bench, HOLD);
	leave(taker);
	run(bench, HOLD);
	take(host, lock, LC_FOREVER, HOLD);
	run(bench, SECOND);
}

/* Takes and questions before there is a session. */
static void play_early(struct bench *bench)
{
	int lock = make_lock(bench, "a");
	struct host *host = begin_host(bench, 0);
	struct visitor *third;

	take(host, lock, LC_FOREVER, HOLD);
	take(host, lock, LC_FOREVER, 0);
	third = take(host, lock, LC_FOREVER, 0);
	ask_stat(host, "a", 0);
	leave(third);
	settle(bench);
}

static void play_hand_off(struct bench *bench)
{
	int lock = make_lock(bench, "a");
	struct host *host = begin_host(bench, 0);

	settle(bench);
	take(host, lock, LC_FOREVER, HOLD);
	take(host, lock, LC_FOREVER, 0);
	take(host, lock, LC_FOREVER, HOLD);
	run(bench, 2 * HOLD);
	take(host, lock, LC_FOREVER, 2 * HOLD);
	take(host, lock, LC_FOREVER, 5 * MS);
	run(bench, SECOND);
}

static void play_two_mounts(struct bench *bench)
{
	int lock = make_lock(bench, "a");
	struct host *one = begin_host(bench, 0), *two = begin_host(bench, 0);

	settle(bench);
	take(one, lock, LC_FOREVER, HOLD);
	run(bench, 5 * MS);
	take(two, lock, LC_FOREVER, HOLD);
	run(bench, 5 * MS);
	take(one, lock, LC_FOREVER, 0);
	run(bench, 5 * MS);
	take(two, lock, LC_FOREVER, 10 * MS);
	take(two, lock, LC_FOREVER, 0);
	take(one, lock, LC_FOREVER, HOLD);
	run(bench, SECOND);
}

static void play_try_timed(struct bench *bench)
{
	int lock = make_lock(bench, "a");
	struct host *one = begin_host(bench, 0), *two = begin_host(bench, 0);
	struct visitor *holder;

	settle(bench);
	take(one, lock, 0, 5 * MS);
	run(bench, 2 * HOLD);
	holder = take(one, lock, LC_FOREVER, UNTIL_TOLD);
	run(bench, HOLD);
	take(one, lock, 0, 0);
	take(two, lock, 0, 0);
	take(one, lock, 200 * MS, 0);
	take(two, lock, 200 * MS, 0);
	run(bench, SECOND);
	leave(holder);
	take(one, lock, 200 * MS, HOLD);
	take(one, lock, 0, 0);
	run(bench, SECOND);
	take(two, lock, 0, 0);
	run(bench, SECOND);
}

/* Takers leave at every stage of their entries. */
static void play_cancel(struct bench *bench)
{
	int lock = make_lock(bench, "a");
	struct host *one = begin_host(bench, 0), *two = begin_host(bench, 0);
	struct visitor *taker, *other;

	settle(bench);
	leave(take(one, lock, LC_FOREVER, 0));
	taker = take(one, lock, LC_FOREVER, 0);
	run(bench, MS);
	leave(taker);
	run(bench, HOLD);
	taker = take(one, lock, LC_FOREVER, UNTIL_TOLD);
	run(bench, HOLD);
	other = take(two, lock, LC_FOREVER, 0);
	run(bench, HOLD);
	leave(other);
	other = take(one, lock, LC_FOREVER, 0);
	run(bench, 3 * MS);
	take(one, lock, LC_FOREVER, 0);
	leave(other);
	run(bench, HOLD);
	leave(taker);
	run(bench, SECOND);
}

void break_connection(struct host *host, int deliver)
{
	if (host->lc && host->wire.conn)
		conn_break(host->wire.conn, deliver);
}

/* The connection breaks: requests arrive without their answers, or do not arrive (`deliver` 0). */
static void cut(struct bench *bench, int deliver)
{
	int lock = make_lock(bench, "a");
	struct host *one = begin_host(bench, 0), *two = begin_host(bench, 0);
	struct visitor *taker;

	settle(bench);
	/* Creating. */
	take(one, lock, LC_FOREVER, HOLD);
	take(one, lock, LC_FOREVER, HOLD);
	break_connection(one, deliver);
	run(bench, MS);
	take(two, lock, LC_FOREVER, HOLD);
	run(bench, SECOND);
	/* Creating; the taker leaves before the entry is found. */
	taker = take(one, lock, LC_FOREVER, HOLD);
	break_connection(one, deliver);
	run(bench, MS);
	leave(taker);
	run(bench, SECOND);
	/* Deleting, with waiters behind. */
	taker = take(one, lock, LC_FOREVER, UNTIL_TOLD);
	run(bench, HOLD);
	take(one, lock, LC_FOREVER, 0);
	take(two, lock, LC_FOREVER, 0);
	run(bench, HOLD);
	leave(taker);
	break_connection(one, deliver);
	break_connection(two, deliver);
	run(bench, SECOND);
}

static void play_cut_after(struct bench *bench)
{
	cut(bench, -1);
}

static void play_cut_before(struct bench *bench)
{
	cut(bench, 0);
}

/* Nobody waits for the answer, and no other taker uses the lock afterwards. */
static void play_cut_left(struct bench *bench)
{
	int lock = make_lock(bench, "a");
	struct host *host = begin_host(bench, 0);
	struct visitor *taker;

	settle(bench);
	taker = take(host, lock, LC_FOREVER, 0);
	break_connection(host, -1);
	run(bench, MS);
	leave(taker);
	run(bench, SECOND);
}

/* The holder loses its lock; waiters queue again. */
static void session_end(struct bench *bench, int64_t lead_us, bool pause)
{
	int lock = make_lock(bench, "a");
	struct host *one = begin_host(bench, lead_us), *two = begin_host(bench, 0);

	settle(bench);
	take(one, lock, LC_FOREVER, 30 * SECOND);
	run(bench, HOLD);
	take(one, lock, LC_FOREVER, HOLD);
	take(two, lock, LC_FOREVER, HOLD);
	take(one, lock, LC_FOREVER, HOLD);
	/* Not when one of them leaves: a hand-off at that moment would be as good as a hold. */
	run(bench, HOLD / 2);
	if (pause)
		host_pause(one, 2 * TIMEOUT_US);
	else
		end_session(one);
	run(bench, MS);
	if (pause)
		run(bench, 2 * TIMEOUT_US);
	take(one, lock, LC_FOREVER, HOLD);
	run(bench, 5 * SECOND);
}

static void play_session_killed(struct bench *bench)
{
	session_end(bench, 0, false);
}

static void play_session_killed_lead(struct bench *bench)
{
	session_end(bench, SECOND, false);
}

static void play_session_expired(struct bench *bench)
{
	session_end(bench, SECOND, true);
}

static void play_eviction(struct bench *bench)
{
	int lock = make_lock(bench, "a");
	struct host *one = begin_host(bench, 0), *two = begin_host(bench, 0);
	struct visitor *holder, *waiter, *remote;

	settle(bench);
	holder = take(one, lock, LC_FOREVER, 500 * MS);
	run(bench, 5 * MS);
	waiter = take(one, lock, LC_FOREVER, HOLD);
	run(bench, 5 * MS);
	remote = take(two, lock, LC_FOREVER, HOLD);
	take(two, lock, LC_FOREVER, HOLD);
	run(bench, HOLD);
	evict(remote);
	run(bench, HOLD);
	evict(waiter);
	evict(holder);
	run(bench, SECOND);
	/* A holder is told in bounded time, whatever failed when it was granted. */
	holder = take(one, lock, LC_FOREVER, UNTIL_TOLD);
	run(bench, 5 * SECOND + bench->spell_us);
	if (holder->taker.phase == HELD) {
		evict(holder);
		run(bench, 3 * SECOND + bench->spell_us);
		if (holder->taker.phase == HELD)
			bench_violation(bench, "a holder whose entry was deleted is not told");
	}
}

static void play_removed(struct bench *bench)
{
	int lock = make_lock(bench, "a");
	struct host *one = begin_host(bench, 0), *two = begin_host(bench, 0);
	struct visitor *takers[4];

	settle(bench);
	takers[0] = take(one, lock, LC_FOREVER, SECOND);
	run(bench, 5 * MS);
	takers[1] = take(one, lock, LC_FOREVER, HOLD);
	takers[2] = take(two, lock, LC_FOREVER, HOLD);
	takers[3] = take(two, lock, LC_FOREVER, HOLD);
	run(bench, HOLD);
	for (int i = 0; i < 4; i++) {
		evict(takers[i]);
		takers[i]->evicted = true; /* its taker may be told of the removal later */
	}
	remove_node(bench, bench->locks[lock].path);
	world_do(&bench->stage.world, 0,
	         OP(.kind = ENSEMBLE_CREATE, .path = bench->locks[lock].path), 1, NULL);
	run(bench, MS);
	take(one, lock, LC_FOREVER, HOLD);
	run(bench, SECOND);
}

/* The numbers of entries repeat. */
static void play_zone(struct bench *bench)
{
	int lock = make_lock(bench, "a");
	struct host *one = begin_host(bench, 0), *two = begin_host(bench, 0);
	struct visitor *taker;
	char entry[128];

	settle(bench);
	world_set_counter(&bench->stage.world, bench->locks[lock].path, INT32_MAX - 2);
	taker = take(one, lock, LC_FOREVER, UNTIL_TOLD);
	run(bench, 2 * SECOND); /* time to try again what had no memory */
	take(two, lock, LC_FOREVER, HOLD);
	run(bench, 5 * MS);
	take(one, lock, LC_FOREVER, HOLD);
	run(bench, 5 * MS);
	make_entry(bench, lock, "other-lock-", entry);
	take(two, lock, LC_FOREVER, 0);
	take(one, lock, 0, 0);
	take(two, lock, LC_FOREVER, 0);
	loose(ask_list(one, "a", 0));
	run(bench, HOLD);
	leave(taker);
	run(bench, SECOND);
	remove_node(bench, entry);
	run(bench, SECOND);
}

static void play_drain(struct bench *bench)
{
	int lock = make_lock(bench, "a");
	struct host *host = begin_host(bench, 0);
	struct visitor *holder;

	settle(bench);
	holder = take(host, lock, LC_FOREVER, UNTIL_TOLD);
	run(bench, HOLD);
	take(host, lock, LC_FOREVER, 0);
	run(bench, HOLD);
	take(host, lock, LC_FOREVER, 0);
	run(bench, MS / 5);
	bench->drained = true;
	if (host->lc)
		lc_drain(host->lc);
	take(host, lock, LC_FOREVER, 0);
	run(bench, HOLD);
	leave(holder);
	run(bench, SECOND);
}

/* Engines end while takes and questions are under way. */
static void play_destroy(struct bench *bench)
{
	int lock = make_lock(bench, "a"), other = make_lock(bench, "b");
	struct host *one = begin_host(bench, 0), *two = begin_host(bench, SECOND);
	char entry[128];

	settle(bench);
	take(one, lock, LC_FOREVER, UNTIL_TOLD);
	run(bench, HOLD);
	take(one, lock, LC_FOREVER, 0);
	take(two, lock, LC_FOREVER, UNTIL_TOLD);
	make_entry(bench, other, "other-lock-", entry);
	take(two, other, LC_FOREVER, 0);
	run(bench, HOLD);
	take(two, other, LC_FOREVER, 0);
	loose(ask_list(one, "a", 0));
	loose(ask_entries(one, "a", NULL, 0));
	loose(ask_entries(two, "a", NULL, 0));
	ask_mkdir(two, "new", 0);
	run(bench, 2 * MS);
	take(one, other, 0, 0);
	take(one, lock, LC_FOREVER, 0);
	end_host(one, false);
	run(bench, 20 * SECOND);
	ask_confirm(&bench->visitors[2], 0);
	run(bench, MS / 5);
	end_host(two, true);
	run(bench, SECOND);
}

static void play_reload(struct bench *bench)
{
	int lock = make_lock(bench, "a"), other = make_lock(bench, "b");
	struct host *one = begin_host(bench, 0), *two = begin_host(bench, SECOND);
	struct visitor *holder, *reader, *evicted;

	settle(bench);
	holder = take(one, lock, LC_FOREVER, UNTIL_TOLD);
	reader = take_shared(one, other, LC_FOREVER, UNTIL_TOLD);
	take_shared(two, other, LC_FOREVER, 4 * SECOND);
	evicted = take(two, lock, LC_FOREVER, 0);
	run(bench, HOLD);
	upgrade(reader, LC_FOREVER, HOLD);
	if (visitor_node(evicted))
		ask_evict(one, "a", visitor_node(evicted)->name, 0);
	evicted->evicted = true;
	take(one, lock, LC_FOREVER, 0);
	run(bench, SECOND);
	take(one, lock, LC_FOREVER, 0);
	reload_host(one);
	run(bench, SECOND);
	if (holder->taker.phase == HELD)
		leave(holder);
	reload_host(one);
	reload_host(two);
	run(bench, 20 * SECOND);
}

static void play_shared(struct bench *bench)
{
	int lock = make_lock(bench, "a");
	struct host *one = begin_host(bench, 0), *two = begin_host(bench, 0);
	struct visitor *reader;

	settle(bench);
	reader = take_shared(one, lock, LC_FOREVER, UNTIL_TOLD);
	take_shared(two, lock, LC_FOREVER, HOLD);
	run(bench, HOLD / 2);
	take_shared(one, lock, 0, HOLD);
	take(one, lock, LC_FOREVER, HOLD);
	take(two, lock, LC_FOREVER, HOLD);
	run(bench, HOLD);
	take_shared(one, lock, LC_FOREVER, HOLD);
	take_shared(one, lock, LC_FOREVER, 0);
	take_shared(two, lock, LC_FOREVER, HOLD);
	take_shared(two, lock, 0, 0);
	take(one, lock, 5 * MS, 0);
	run(bench, HOLD);
	leave(reader);
	run(bench, SECOND);
}

static void play_upgrade(struct bench *bench)
{
	int lock = make_lock(bench, "a");
	struct host *one = begin_host(bench, 0), *two = begin_host(bench, 0);
	struct visitor *reader, *other, *third;

	settle(bench);
	reader = take_shared(one, lock, LC_FOREVER, UNTIL_TOLD);
	other = take_shared(one, lock, LC_FOREVER, UNTIL_TOLD);
	third = take_shared(two, lock, LC_FOREVER, 2 * HOLD);
	run(bench, HOLD);
	upgrade(reader, LC_FOREVER, HOLD);
	run(bench, 5 * MS);
	upgrade(other, LC_FOREVER, HOLD);
	upgrade(third, 0, HOLD);
	run(bench, HOLD);
	leave(other);
	run(bench, SECOND);
	upgrade(take_shared(two, lock, LC_FOREVER, UNTIL_TOLD), LC_FOREVER, HOLD);
	run(bench, SECOND);
}

static void play_slots(struct bench *bench)
{
	int lock = make_lock(bench, "a");
	struct host *one = begin_host(bench, 0), *two = begin_host(bench, 0);

	settle(bench);
	take(one, lock, LC_FOREVER, 4 * HOLD);
	run(bench, HOLD);
	take(one, lock, LC_FOREVER, HOLD);
	take(two, lock, LC_FOREVER, HOLD);
	take(two, lock, 0, HOLD);
	run(bench, HOLD / 2);
	set_slots(bench, lock, 3);
	take(two, lock, LC_FOREVER, HOLD);
	take(one, lock, 0, HOLD);
	take_shared(one, lock, LC_FOREVER, HOLD);
	run(bench, HOLD);
	set_slots(bench, lock, 2);
	take(two, lock, LC_FOREVER, HOLD);
	take(one, lock, LC_FOREVER, HOLD);
	take(one, lock, LC_FOREVER, HOLD);
	run(bench, SECOND);
}

/* So many takers that the tables grow. */
static void play_crowd(struct bench *bench)
{
	int lock = make_lock(bench, "a"), other = make_lock(bench, "b");
	struct host *host = begin_host(bench, 0);

	for (int i = 0; i < 600; i++)
		take(host, i % 2 ? lock : other, LC_FOREVER, 0);
	settle(bench);
}

const struct scenario scenarios[] = {
	{"create", play_create, 0},
	{"take", play_take, 0},
	{"early", play_early, 0},
	{"hand-off", play_hand_off, 0},
	{"two-mounts", play_two_mounts, 0},
	{"try-timed", play_try_timed, 0},
	{"cancel", play_cancel, 0},
	{"cut-after", play_cut_after, 0},
	{"cut-before", play_cut_before, 0},
	{"cut-left", play_cut_left, 0},
	{"session-killed", play_session_killed, 0},
	{"session-lead", play_session_killed_lead, 0},
	{"session-expired", play_session_expired, 0},
	{"eviction", play_eviction, 0},
	{"removed", play_removed, 0},
	{"reason", play_reason, 0},
	{"confirm", play_confirm, 0},
	{"data", play_data, 0},
	{"evicting", play_evicting, 0},
	{"waiters", play_waiters, 0},
	{"questions", play_questions, 0},
	{"questions-cut", play_questions_cancelled, 0},
	{"shared", play_shared, 0},
	{"upgrade", play_upgrade, 0},
	{"slots", play_slots, 0},
	{"zone", play_zone, 0},
	{"drain", play_drain, 0},
	{"destroy", play_destroy, 0},
	{"reload", play_reload, 0},
	{"crowd", play_crowd, 1000},
};
const int scenario_count = sizeof(scenarios) / sizeof(scenarios[0]);
