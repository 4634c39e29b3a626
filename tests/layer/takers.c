/* SPDX-License-Identifier: MIT */
#include "takers.h"

#include "ask/evict.h"
#include "grant/grant.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAMES_MAX 80

struct ensemble_stat takers_lock;

/* The frontend's side of a taker. */
static struct user {
	struct rig *rig;
	struct lc_taker *taker; /* NULL: it has left, or there is none */
} users[TAKERS_MAX];

/* ---- callbacks of the session, as in core.c ---- */

static void heard_nothing(struct lc *lc)
{
	(void)lc;
}

static void session_beaten(struct lc *lc, bool resumed)
{
	if (!resumed)
		return;
	watches_resume(lc);
	locks_resume(lc);
	calls_resume(lc);
}

static void session_ended(struct lc *lc)
{
	batch_clear(lc);
	watches_clear(lc);
	locks_session_ended(lc);
}

static const struct session_events session_events = {
	.beaten = session_beaten,
	.letters = loss_by_letters,
	.alive = loss_of_missing,
	.extended = locks_fresh,
	.over = loss_of_lease,
	.disconnected = batch_clear,
	.ended = session_ended,
	.unusable = heard_nothing,
	.changed = locks_changed,
};

/* ---- begin and end ---- */

struct rig *takers_begin(void)
{
	struct rig *rig = rig_begin_ready();

	rig->session.events = &session_events;
	rig->has_takers = true;
	takers_lock = (struct ensemble_stat){.czxid = 50, .mzxid = 50, .version = 3};
	memset(users, 0, sizeof(users));
	return rig;
}

void takers_end(struct rig *rig)
{
	calls_finish(&rig->lc);
	rig_end_session(rig, false);
	asking_finish(&rig->lc);
	evictions_finish(&rig->lc);
	for (size_t i = 0; i < LENGTH(users); i++)
		if (users[i].taker)
			takers_leave(rig, users[i].taker);
	takers_turn(rig);
	assert_int_equal(rig->entries.by_id.count, 0);
	assert_null(rig->takers.due);
	assert_int_equal(rig->takers.waiters, 0);
	assert_int_equal(rig->takers.holders, 0);
	locks_forget_idle(&rig->lc);
	while (rig->locks.touched)
		lock_untouch(rig->locks.touched);
	assert_null(rig->locks.by_path);
	rig_finish(rig);
}

int takers_set_up(void **state)
{
	*state = takers_begin();
	return 0;
}

int takers_tear_down(void **state)
{
	takers_end(*state);
	return 0;
}

/* ---- the user ---- */

static void taken(void *ctx, int err)
{
	struct user *user = ctx;

	rig_tell(user->rig, err < 0 ? "%d taken %s" : "%d taken", (int)(user - users),
	         strerrorname_np(-err));
}

static void lost(void *ctx)
{
	struct user *user = ctx;

	rig_tell(user->rig, "%d lost", (int)(user - users));
}

struct lc_taker *takers_request(struct rig *rig, const struct lc_request *request)
{
	struct user *user = &users[request->pid];

	assert_true(request->pid < TAKERS_MAX && !user->taker);
	user->rig = rig;
	assert_int_equal(lc_take(&rig->lc, request, taken, lost, user, &user->taker), 0);
	return user->taker;
}

struct lc_taker *takers_take(struct rig *rig, pid_t pid, enum lc_mode mode, int64_t wait_us)
{
	return takers_request(rig, &(struct lc_request){.lock = "a",
	                                                .mode = mode,
	                                                .wait_us = wait_us,
	                                                .pid = pid,
	                                                .uid = 5,
	                                                .command = "sh"});
}

void takers_disown(const struct lc_taker *taker)
{
	for (size_t i = 0; i < LENGTH(users); i++)
		if (users[i].taker == taker)
			users[i].taker = NULL;
}

void takers_leave(struct rig *rig, struct lc_taker *taker)
{
	takers_disown(taker);
	lc_leave(taker);
	takers_turn(rig);
}

/* ---- what happens ---- */

size_t takers_leaving(const struct rig *rig)
{
	const struct takers *takers = &rig->takers;

	return rig->entries.by_id.count - takers->waiters - takers->holders - takers->losing;
}

void takers_turn(struct rig *rig)
{
	unsigned left = TOLD_PER_TURN;

	takers_tell(&rig->lc, &left);
	locks_flush(&rig->lc);
	takers_tell(&rig->lc, &left);
	locks_flush(&rig->lc);
}

void takers_run(struct rig *rig, int64_t duration_us)
{
	int64_t until_us = rig->now_us + duration_us;

	for (const struct timer *next; (next = rig->lc.timers.first) && next->at_us <= until_us;) {
		rig_run(rig, next->at_us - rig->now_us);
		takers_turn(rig);
	}
	rig_run(rig, until_us - rig->now_us);
	takers_turn(rig);
}

/* The full name for "#ID-NUMBER". */
static void write_own_name(struct rig *rig, const char *text, char *ret_name, size_t size)
{
	char prefix[NAME_PREFIX_MAX];
	const struct lc_taker *taker;
	uint64_t id;
	int number;

	assert_int_equal(sscanf(text, "#%" SCNu64 "-%d", &id, &number), 2);
	taker = taker_find(&rig->lc, id);
	name_format(prefix, rig->lc.clients, rig->session.half, id, "m0",
	            taker ? taker->entry.data.pid : 9, taker ? taker->entry.mode : LC_EXCLUSIVE);
	snprintf(ret_name, size, "%s%010d", prefix, number);
}

void takers_answer_slots(struct rig *rig, unsigned slots)
{
	char data[60] = "";

	if (slots != 1)
		snprintf(data, sizeof(data), "zklockfs: 1\nslots: %u\n\n", slots);
	rig_answer(rig, &(struct ensemble_answer){
				.stat = &takers_lock, .data = data, .data_len = (int)strlen(data)});
	takers_turn(rig);
}

void takers_answer_error(struct rig *rig, enum ensemble_result result)
{
	rig_answer_error(rig, result);
	takers_turn(rig);
}

/* Answers a watch of "/locks/a", "/locks/a/#2-1" or "/locks/a/x-lock-0000000001". */
static void answer_node(struct rig *rig, const char *path)
{
	struct ensemble_stat stat = {.ephemeral_owner = RIG_SESSION};
	const char *own = strchr(path, '#');

	if (strcmp(path, "/locks/a") == 0) {
		takers_answer_slots(rig, 1);
		return;
	}
	if (own)
		stat.czxid = 100 + atoi(strchr(own, '-') + 1);
	rig_answer(rig, &(struct ensemble_answer){.stat = &stat});
	takers_turn(rig);
}

void takers_answer_watches(struct rig *rig)
{
	for (;;) {
		const char *text = rig_unanswered(rig);

		if (strncmp(text, "watch ", 6) == 0)
			answer_node(rig, text + 6);
		else if (strncmp(text, "unwatch ", 8) == 0 || strncmp(text, "sync ", 5) == 0)
			takers_answer_error(rig, ENSEMBLE_OK);
		else
			return;
	}
}

/* Answers the watches that come before this request. */
static void answer_until(struct rig *rig, const char *request)
{
	takers_answer_watches(rig);
	if (strncmp(rig_unanswered(rig), request, strlen(request)) != 0)
		fail_msg("'%s' comes before '%s'", rig_unanswered(rig), request);
}

void takers_answer_made(struct rig *rig, struct lc_taker *taker, int number)
{
	char path[300], request[60];

	snprintf(request, sizeof(request), "create ephemeral /locks/%s/#%d-",
	         strrchr(taker->entry.lock->path, '/') + 1, (int)taker->entry.id.number);
	answer_until(rig, request);
	snprintf(path, sizeof(path), "%s/%s%010d", taker->entry.lock->path, taker->entry.name,
	         number);
	rig_answer_created(rig, path, 100 + number);
	takers_turn(rig);
}

void takers_answer_list(struct rig *rig, const char *names)
{
	static char lines[NAMES_MAX][200];
	const char *list[NAMES_MAX];
	char copy[8192], *rest = copy;
	int count = 0;

	answer_until(rig, "children ");
	assert_true(strlen(names) < sizeof(copy));
	strcpy(copy, names);
	for (char *name; (name = strsep(&rest, " "));) {
		if (!*name)
			continue;
		assert_true(count < NAMES_MAX);
		if (*name == '#')
			write_own_name(rig, name, lines[count], sizeof(lines[count]));
		else
			snprintf(lines[count], sizeof(lines[count]), "%s", name);
		list[count] = lines[count];
		count++;
	}
	takers_lock.children = count;
	for (int i = 0; i < count; i++) {
		struct entry_name parsed;

		if (strncmp(list[i], "hand-", 5) != 0 && name_parse(list[i], &parsed) &&
		    parsed.number < NAME_NUMBER_ZONE && parsed.number >= takers_lock.made)
			takers_lock.made = parsed.number + 1;
	}
	rig_answer(rig, &(struct ensemble_answer){
				.stat = &takers_lock, .names = list, .name_count = count});
	takers_turn(rig);
}

void takers_answer_lists(struct rig *rig, const char *names)
{
	for (;;) {
		takers_answer_watches(rig);
		if (strncmp(rig_unanswered(rig), "children ", 9) != 0)
			return;
		takers_answer_list(rig, names);
	}
}

struct lc_taker *takers_queue(struct rig *rig, pid_t pid, enum lc_mode mode, int number,
                              const char *names)
{
	struct lc_taker *taker = takers_take(rig, pid, mode, LC_FOREVER);

	takers_turn(rig);
	takers_answer_made(rig, taker, number);
	takers_answer_watches(rig);
	if (strncmp(rig_unanswered(rig), "children ", 9) == 0)
		takers_answer_list(rig, names);
	takers_answer_watches(rig);
	assert_string_equal(rig_unanswered(rig), "");
	rig_forget(rig);
	return taker;
}

void takers_change(struct rig *rig, const char *znode, enum ensemble_change change)
{
	char name[200] = "", path[300];

	if (*znode == '#')
		write_own_name(rig, znode, name, sizeof(name));
	else
		strcpy(name, znode);
	snprintf(path, sizeof(path), "/locks/a%s%s", *name ? "/" : "", name);
	rig->port_events->changed(&rig->lc, path, change);
	takers_turn(rig);
}

void takers_reconnect(struct rig *rig)
{
	rig_reconnect(rig);
	takers_turn(rig);
}
