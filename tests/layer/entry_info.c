/* SPDX-License-Identifier: MIT
 *
 * Information on single entries: the holders, one entry, entries that a listing has shown; and the
 * token of an entry that a transaction has made.
 */
#include "takers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define RECORD "host: m1\npid: 7\nuid: 8\ncommand: vi\nheld_since: 12\nreason: why\n"

static void entries_told(void *ctx, int err, const struct lc_entry_info *infos, size_t count)
{
	if (err < 0)
		rig_tell(ctx, "%s", strerrorname_np(-err));
	else
		rig_tell(ctx, "%zu", count);
	for (size_t i = 0; i < count; i++)
		rig_tell(ctx, "%d token %d session %d since %d held %d uid %d %s '%s'%s",
		         (int)infos[i].entry.number, (int)infos[i].token, (int)infos[i].session,
		         (int)infos[i].queued_since_ms, (int)infos[i].held_since_ms,
		         (int)infos[i].uid, infos[i].command, infos[i].reason,
		         infos[i].entry.held ? "" : " waits");
}

static struct lc_call *ask(struct rig *rig, const char *znode)
{
	struct lc_call *call;

	assert_int_equal(lc_entries(&rig->lc, "a", 5, znode, NULL, 0, entries_told, rig, &call), 0);
	asking_send(&rig->lc);
	return call;
}

static void tell(struct rig *rig)
{
	rig->now_us += SECOND;
	asking_tell(&rig->lc);
	asking_send(&rig->lc);
}

/* Answers the listing, and the read of the number of slots, if there is one. */
static void answer_queue(struct rig *rig, const char *names)
{
	takers_answer_list(rig, names);
	if (strcmp(rig_unanswered(rig), "get /locks/a") == 0) {
		rig_answer(rig, &(struct ensemble_answer){.stat = &takers_lock, .data = ""});
		takers_answer_list(rig, names);
	}
	rig_forget(rig);
	tell(rig);
}

static void answer_entry(struct rig *rig, int64_t session)
{
	struct ensemble_stat stat = {.czxid = 77, .ctime_ms = 11, .ephemeral_owner = session};

	rig_answer(rig, &(struct ensemble_answer){
				.stat = &stat, .data = RECORD, .data_len = (int)strlen(RECORD)});
	tell(rig);
}

#define TOLD(number) #number " token 77 session 9 since 11 held 12 uid 8 vi 'why'"

static void holders(void **state)
{
	struct rig *rig = *state;

	ask(rig, NULL);
	rig_expect_sent(rig, "children /locks/a");
	answer_queue(rig, OTHER_SHARED(1) " " OTHER_SHARED(2) " " OTHER(3));
	rig_expect_sent(rig, "get /locks/a/" OTHER_SHARED(1) ", get /locks/a/" OTHER_SHARED(2));
	answer_entry(rig, 9);
	rig_expect_told(rig, ""); /* told when all entries were read */
	answer_entry(rig, 9);
	rig_expect_told(rig, "2, " TOLD(1) ", " TOLD(2));
}

static void nobody_holds(void **state)
{
	struct rig *rig = *state;

	ask(rig, NULL);
	answer_queue(rig, "below");
	rig_expect_told(rig, "0");
	rig_expect_sent(rig, "");
	ask(rig, NULL);
	answer_queue(rig, OTHER(1));
	rig_answer_error(rig, ENSEMBLE_NONODE); /* the entry is gone since */
	tell(rig);
	rig_expect_told(rig, "0");
}

static void many_hold(void **state)
{
	struct rig *rig = *state;
	char names[1000] = "";

	for (int i = 10; i < 30; i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names),
		         "x-rlock-00000000%d ", i);
	ask(rig, NULL);
	answer_queue(rig, names);
	assert_non_null(strstr(rig->sent, "x-rlock-0000000010"));
	for (int i = 0; i < 16; i++)
		answer_entry(rig, 9);
	assert_memory_equal(rig->told, "16, 10 token", strlen("16, 10 token"));
}

static void one_entry(void **state)
{
	struct rig *rig = *state;

	ask(rig, OTHER(2));
	answer_queue(rig, OTHER(1) " " OTHER(2));
	rig_expect_sent(rig, "get /locks/a/" OTHER(2));
	answer_entry(rig, 9);
	rig_expect_told(rig, "1, " TOLD(2) " waits");
	ask(rig, OTHER(3));
	answer_queue(rig, OTHER(1) " " OTHER(2));
	rig_expect_told(rig, "ENOENT");
	ask(rig, OTHER(1));
	answer_queue(rig, OTHER(1));
	rig_answer_error(rig, ENSEMBLE_NONODE);
	tell(rig);
	rig_expect_told(rig, "ENOENT");
	ask(rig, OTHER(1));
	answer_queue(rig, OTHER(1));
	rig_answer_error(rig, ENSEMBLE_NOAUTH);
	tell(rig);
	rig_expect_told(rig, "EACCES");
	ask(rig, OTHER(1));
	rig_answer_error(rig, ENSEMBLE_NOAUTH);
	tell(rig);
	rig_expect_told(rig, "EACCES");
}

/* The queue is not listed again. */
static void known_entries(void **state)
{
	const struct lc_entry known[] = {{.znode = OTHER(1), .number = 1, .held = true},
	                                 {.znode = OTHER(2), .number = 2, .held = true}};
	struct rig *rig = *state;
	struct lc_call *call;

	assert_int_equal(lc_entries(&rig->lc, "a", 5, NULL, known, 2, entries_told, rig, &call), 0);
	asking_send(&rig->lc);
	rig_expect_sent(rig, "get /locks/a/" OTHER(1) ", get /locks/a/" OTHER(2));
	rig_answer_error(rig, ENSEMBLE_NONODE);
	tell(rig);
	answer_entry(rig, 9);
	rig_expect_told(rig, "1, " TOLD(2));
}

/* This mount knows since when its own takers hold, before their entries say so. */
static void own_entry(void **state)
{
	static const struct {
		int64_t session, held_since_ms;
		const char *told;
	} rows[] = {
		{RIG_SESSION, 34, "held 34 "},
		{RIG_SESSION, 0, "held 0 "},
		{RIG_SESSION, -1, "held 12 "},
		{9, 34, "held 12 "},
	};
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");
	char name[NAME_PREFIX_MAX + 10];

	strcpy(name, holder->entry.name);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		ask(rig, name);
		answer_queue(rig, "#2-1");
		holder->entry.data.held_since_ms = rows[i].held_since_ms;
		answer_entry(rig, rows[i].session);
		assert_non_null(strstr(rig->told, rows[i].told));
		rig_forget(rig);
	}
	holder->entry.data.held_since_ms = 34;
}

/* Nothing is left of a cancelled question, at whatever stage it was. */
static void cancelled(void **state)
{
	struct rig *rig = *state;
	struct lc_call *call = ask(rig, NULL);

	lc_cancel(call);
	answer_queue(rig, OTHER_SHARED(1) " " OTHER_SHARED(2));
	rig_expect_told(rig, "");
	call = ask(rig, NULL);
	answer_queue(rig, OTHER_SHARED(1) " " OTHER_SHARED(2));
	answer_entry(rig, 9);
	lc_cancel(call);
	answer_entry(rig, 9);
	rig_expect_told(rig, "");
	assert_null(rig->calls.calls);
}

/* ---- a token ---- */

static void done(void *ctx, int err)
{
	rig_tell(ctx, err < 0 ? "%s" : "done", strerrorname_np(-err));
}

static struct lc_call *fetch(struct rig *rig, struct lc_taker *holder)
{
	struct lc_call *call;

	assert_int_equal(lc_fetch_token(holder, done, rig, &call), 0);
	return call;
}

static void token(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	holder->entry.czxid = 0; /* as if made in a transaction */
	fetch(rig, holder);
	rig_expect_sent(rig, "get /locks/a/#2-1");
	rig_answer_data(rig, 0, "");
	rig_expect_told(rig, "done");
	assert_int_equal(lc_token(holder), 100);
	fetch(rig, holder);
	answer_entry(rig, 9); /* another session's node of the same name */
	rig_expect_told(rig, "EIO");
	takers_turn(rig);
	rig_expect_told(rig, "1 lost");
}

static void no_token(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");
	struct lc_call *call = fetch(rig, holder);

	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_told(rig, "EIO");
	assert_true(holder->entry.lock->lists.wanted);
	call = fetch(rig, holder);
	lc_cancel(call);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_told(rig, "");
	call = fetch(rig, holder);
	rig_answer_error(rig, ENSEMBLE_REFUSED);
	rig_expect_told(rig, "ENOLCK");
	taker_lose(holder);
	rig_forget(rig);
	call = fetch(rig, holder);
	rig_expect_sent(rig, "");
	rig_run(rig, 0);
	rig_expect_told(rig, "EIO");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TAKERS_TEST(holders),   TAKERS_TEST(nobody_holds),  TAKERS_TEST(many_hold),
		TAKERS_TEST(one_entry), TAKERS_TEST(known_entries), TAKERS_TEST(own_entry),
		TAKERS_TEST(cancelled), TAKERS_TEST(token),         TAKERS_TEST(no_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
