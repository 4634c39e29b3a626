/* SPDX-License-Identifier: MIT
 *
 * Information on a lock: its attributes, its value, its queue.
 */
#include "ask/lock_info.h"
#include "pure/limits.h"

#include "takers.h"

#include <errno.h>
#include <string.h>

#define RECORD "zklockfs: 1\nuid: 7\ngid: 8\nmode: 750\ndoor_mode: 640\nslots: 3\n\nsome\nvalue"

/* Answers are told a moment later, not from inside the ensemble's answer. */
static void tell(struct rig *rig)
{
	rig->now_us += TOLD_REST_US;
	asking_tell(&rig->lc);
	asking_send(&rig->lc);
}

static void answer(struct rig *rig, const struct ensemble_stat *stat, const char *data)
{
	rig_answer(rig, &(struct ensemble_answer){
				.stat = stat, .data = data, .data_len = (int)strlen(data)});
	tell(rig);
}

static void answer_names(struct rig *rig, const char *const *names, int count)
{
	takers_lock.children = count;
	rig_answer(rig, &(struct ensemble_answer){
				.stat = &takers_lock, .names = names, .name_count = count});
	tell(rig);
}

/* ---- attributes ---- */

static void stat_told(void *ctx, int err, const struct lc_lock_info *info)
{
	if (err < 0)
		rig_tell(ctx, "%s", strerrorname_np(-err));
	else
		rig_tell(ctx,
		         "czxid %d ctime %d mtime %d has %d uid %d gid %d modes %o %o slots %u "
		         "children %u",
		         (int)info->czxid, (int)info->ctime_ms, (int)info->mtime_ms,
		         info->has_attributes, (int)info->attributes.uid, (int)info->attributes.gid,
		         (unsigned)info->attributes.mode, (unsigned)info->attributes.lock_file_mode,
		         info->slots, info->children);
}

static struct lc_call *ask_stat(struct rig *rig)
{
	struct lc_call *call;

	assert_int_equal(lc_stat(&rig->lc, "a", 5, stat_told, rig, &call), 0);
	asking_send(&rig->lc);
	return call;
}

static void attributes(void **state)
{
	struct rig *rig = *state;
	struct ensemble_stat stat = {
		.czxid = 50, .mzxid = 60, .ctime_ms = 11, .mtime_ms = 12, .children = 4};

	ask_stat(rig);
	rig_expect_sent(rig, "get /locks/a");
	answer(rig, &stat, RECORD);
	rig_expect_told(rig, "czxid 50 ctime 11 mtime 12 has 1 uid 7 gid 8 modes 750 640 slots 3 "
	                     "children 4");
	/* From now on lists of this lock need not ask for the number of slots. */
	assert_int_equal(rig->reads.known_slots[50].slots, 3);
	ask_stat(rig);
	answer(rig, &stat, "");
	rig_expect_told(rig, "czxid 50 ctime 11 mtime 12 has 0 uid 0 gid 0 modes 0 0 slots 1 "
	                     "children 4");
}

static void no_attributes(void **state)
{
	struct rig *rig = *state;
	struct ensemble_stat entry = {.ephemeral_owner = 9};

	ask_stat(rig);
	answer(rig, &entry, ""); /* an entry is no lock */
	rig_expect_told(rig, "ENOENT");
	ask_stat(rig);
	rig_answer_error(rig, ENSEMBLE_NOAUTH);
	tell(rig);
	rig_expect_told(rig, "EACCES");
	lc_cancel(ask_stat(rig));
	answer(rig, &takers_lock, RECORD);
	rig_expect_told(rig, "");
}

/* A name that may well be missing: "not there" is said by the first answer. */
static void sought(void **state)
{
	struct rig *rig = *state;
	struct lc_call *call;

	assert_int_equal(lc_seek(&rig->lc, "a", 5, stat_told, rig, &call), 0);
	asking_send(&rig->lc);
	rig_expect_sent(rig, "sync /locks/a, get /locks/a");
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	tell(rig);
	rig_expect_told(rig, "ENOENT");
	rig_expect_sent(rig, "");
}

/* ---- what is remembered of it ---- */

/* A lock that a taker has used, and nobody uses now. */
static struct lock *make_used(struct rig *rig, const char *name)
{
	struct lock *lock;

	assert_int_equal(lock_get(&rig->lc, name, 5, &lock), 0);
	lock->batch.last_write_ok = true;
	lock_unuse(lock);
	return lock;
}

static bool recalls(struct rig *rig, const char *wanted)
{
	struct lc_lock_info info = {0};
	bool known = lc_recall(&rig->lc, "a", &info);

	rig_forget(rig);
	if (known) {
		assert_int_equal(info.children, LC_CHILDREN_UNKNOWN);
		info.children = 0;
		stat_told(rig, 0, &info);
		rig_expect_told(rig, wanted);
	}
	return known;
}

/* A used lock, which is watched since it was asked about. */
static void remember(struct rig *rig)
{
	make_used(rig, "a");
	ask_stat(rig);
	rig_expect_sent(rig, "watch /locks/a");
	answer(rig, &takers_lock, RECORD);
	rig_forget(rig);
}

#define REMEMBERED "czxid 50 ctime 0 mtime 0 has 1 uid 7 gid 8 modes 750 640 slots 3 children 0"

static void remembered(void **state)
{
	struct rig *rig = *state;

	ask_stat(rig);
	rig_expect_sent(rig, "get /locks/a"); /* nobody has used it */
	answer(rig, &takers_lock, RECORD);
	assert_false(recalls(rig, NULL));
	remember(rig);
	assert_int_equal(rig->quota.watch_bytes, strlen("/locks/a"));
	assert_true(recalls(rig, REMEMBERED));
	ask_stat(rig);
	rig_expect_sent(rig, "get /locks/a"); /* it is watched already */
	answer(rig, &takers_lock, RECORD);
	assert_true(recalls(rig, REMEMBERED));
	rig_doubt_now(rig);
	assert_false(recalls(rig, NULL));
	locks_forget_idle(&rig->lc);
	assert_null(lock_find(&rig->lc, "/locks/a", strlen("/locks/a")));
}

/* Changed on another host, or removed and made again: asked for anew. */
static void remembered_until_it_changes(void **state)
{
	static const enum ensemble_change changes[] = {ENSEMBLE_DATA, ENSEMBLE_DELETED};

	(void)state;
	for (size_t i = 0; i < LENGTH(changes); i++) {
		struct rig *rig = takers_begin();

		remember(rig);
		takers_change(rig, "", changes[i]);
		assert_false(recalls(rig, NULL));
		takers_lock.czxid = 51;
		make_used(rig, "a");
		ask_stat(rig);
		rig_expect_sent(rig, "watch /locks/a");
		answer(rig, &takers_lock, "");
		rig_forget(rig);
		assert_true(recalls(
			rig,
			"czxid 51 ctime 0 mtime 0 has 0 uid 0 gid 0 modes 0 0 slots 1 children 0"));
		locks_forget_idle(&rig->lc);
		rig_expect_sent(rig, "unwatch /locks/a");
		takers_answer_watches(rig);
		takers_end(rig);
	}
}

/* The watch is renewed by the next question. Until then others may have changed the lock. */
static void not_remembered_on_another_connection(void **state)
{
	struct rig *rig = *state;

	remember(rig);
	rig_disconnect(rig);
	assert_false(recalls(rig, NULL));
	rig_reconnect(rig);
	rig_forget(rig);
	assert_false(recalls(rig, NULL));
	ask_stat(rig);
	rig_expect_sent(rig, "watch /locks/a");
	answer(rig, &takers_lock, RECORD);
	rig_forget(rig);
	assert_true(recalls(rig, REMEMBERED));
	locks_forget_idle(&rig->lc);
	takers_answer_watches(rig);
}

/* The lock is kept while the read is under way, whose answer may be an error, or none. */
static void not_remembered_without_an_answer(void **state)
{
	struct rig *rig = *state;
	struct ensemble_stat entry = {.czxid = 50, .ephemeral_owner = 9};

	make_used(rig, "a");
	ask_stat(rig);
	locks_forget_idle(&rig->lc);
	rig_answer_error(rig, ENSEMBLE_NOAUTH);
	tell(rig);
	assert_false(recalls(rig, NULL));
	ask_stat(rig);
	lc_cancel(ask_stat(rig));
	rig_disconnect(rig);
	assert_false(recalls(rig, NULL));
	rig_reconnect(rig);
	asking_send(&rig->lc);
	answer(rig, &entry, ""); /* an entry is no lock */
	assert_false(recalls(rig, NULL));
	rig_forget(rig);
	locks_forget_idle(&rig->lc);
	takers_answer_watches(rig);
}

/* ---- its value ---- */

static void value_told(void *ctx, int err, const char *value, size_t len)
{
	if (err < 0)
		rig_tell(ctx, "%s", strerrorname_np(-err));
	else
		rig_tell(ctx, "value '%.*s'", (int)len, value);
}

static struct lc_call *ask_value(struct rig *rig)
{
	struct lc_call *call;

	assert_int_equal(lc_value(&rig->lc, "a", 5, value_told, rig, &call), 0);
	asking_send(&rig->lc);
	return call;
}

static void value(void **state)
{
	struct rig *rig = *state;
	struct ensemble_stat entry = {.ephemeral_owner = 9};

	ask_value(rig);
	rig_expect_sent(rig, "get /locks/a");
	answer(rig, &takers_lock, RECORD);
	rig_expect_told(rig, "value 'some\nvalue'");
	ask_value(rig);
	answer(rig, &takers_lock, "another client's");
	rig_expect_told(rig, "value 'another client's'");
	ask_value(rig);
	answer(rig, &entry, "data");
	rig_expect_told(rig, "ENOENT");
	ask_value(rig);
	rig_answer_error(rig, ENSEMBLE_REFUSED);
	tell(rig);
	rig_expect_told(rig, "ENOLCK");
}

/* ---- its queue ---- */

static void list_told(void *ctx, int err, const struct lc_listing *listing)
{
	if (err < 0) {
		rig_tell(ctx, "%s", strerrorname_np(-err));
		return;
	}
	rig_tell(ctx, "serial %d", (int)listing->serial);
	for (size_t i = 0; i < listing->entry_count; i++) {
		const struct lc_entry *entry = &listing->entries[i];

		rig_tell(ctx, "%d/%u %s%s%s%s %s %d", (int)entry->number, entry->repeat,
		         entry->mode == LC_SHARED ? "shared" : "exclusive",
		         entry->of_mount ? " mount's" : "",
		         entry->incompatible ? " incompatible" : "", entry->held ? " held" : "",
		         entry->host, (int)entry->pid);
	}
	for (size_t i = 0; i < listing->lock_count; i++)
		rig_tell(ctx, "lock %s", listing->locks[i]);
}

static struct lc_call *ask_list(struct rig *rig)
{
	struct lc_call *call;

	assert_int_equal(lc_list(&rig->lc, "a", 5, list_told, rig, &call), 0);
	asking_send(&rig->lc);
	return call;
}

static const char *const names[] = {
	"zeta",
	"_c_01234567-89ab-cdef-0123-456789abcdef-m1.7-lock-0000000003",
	".zklockfs",
	"alpha",
	"x__lock__0000000004",
	"_c_01234567-89ab-cdef-0123-456789abcdee-m2.9-rlock-0000000002",
};

static void queue(void **state)
{
	struct rig *rig = *state;

	takers_lock.mzxid = 60;
	ask_list(rig);
	rig_expect_sent(rig, "children /locks/a");
	answer_names(rig, names, LENGTH(names));
	/* With several entries in the queue, the number of slots is asked for. */
	rig_expect_sent(rig, "get /locks/a, children /locks/a");
	rig_answer(rig, &(struct ensemble_answer){.stat = &takers_lock, .data = ""});
	answer_names(rig, names, LENGTH(names));
	rig_expect_told(rig, "serial 2, 2/0 shared mount's held m2 9, 3/0 exclusive mount's m1 7, "
	                     "4/0 exclusive incompatible - 0, lock alpha, lock zeta");
}

/* The numbers have reached their largest value, and repeat. */
static void equal_numbers(void **state)
{
	static const char *const equal[] = {"a-lock-2147483647", "b-lock-2147483647",
	                                    "c-lock-2147483647", "x-lock-0000000001"};
	struct rig *rig = *state;

	ask_list(rig);
	answer_names(rig, equal, LENGTH(equal));
	rig_answer(rig, &(struct ensemble_answer){.stat = &takers_lock, .data = ""});
	answer_names(rig, equal, LENGTH(equal));
	rig_expect_told(rig, "serial 2, 1/0 exclusive incompatible held - 0, "
	                     "2147483647/0 exclusive incompatible - 0, "
	                     "2147483647/1 exclusive incompatible - 0, "
	                     "2147483647/2 exclusive incompatible - 0");
}

static void no_queue(void **state)
{
	struct rig *rig = *state;

	ask_list(rig);
	answer_names(rig, NULL, 0);
	rig_expect_told(rig, "serial 1");
	ask_list(rig);
	rig->now_us += SECOND;
	asking_send(&rig->lc);
	rig_answer_error(rig, ENSEMBLE_NOAUTH);
	tell(rig);
	rig_expect_told(rig, "EACCES");
}

/* Readers that asked the same are told the same. */
static void one_answer_for_all(void **state)
{
	static const char *const one[] = {"alpha", "x-lock-0000000001"};
	struct rig *rig = *state;

	ask_list(rig);
	rig_expect_sent(rig, "children /locks/a");
	ask_list(rig);
	ask_list(rig); /* these two came later: one more listing is for both */
	rig_expect_sent(rig, "");
	answer_names(rig, one, LENGTH(one));
	rig_expect_told(rig, "serial 1, 1/0 exclusive held - 0, lock alpha");
	rig->now_us += SECOND;
	asking_send(&rig->lc);
	rig_expect_sent(rig, "children /locks/a");
	answer_names(rig, one, LENGTH(one));
	tell(rig);
	rig_expect_told(rig, "serial 2, 1/0 exclusive held - 0, lock alpha, "
	                     "serial 2, 1/0 exclusive held - 0, lock alpha");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TAKERS_TEST(attributes),
		TAKERS_TEST(no_attributes),
		TAKERS_TEST(sought),
		TAKERS_TEST(remembered),
		cmocka_unit_test(remembered_until_it_changes),
		TAKERS_TEST(not_remembered_on_another_connection),
		TAKERS_TEST(not_remembered_without_an_answer),
		TAKERS_TEST(value),
		TAKERS_TEST(queue),
		TAKERS_TEST(equal_numbers),
		TAKERS_TEST(no_queue),
		TAKERS_TEST(one_answer_for_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
