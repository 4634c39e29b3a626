/* SPDX-License-Identifier: MIT
 *
 * Removing a lock: which users may, by which data, and the errors when it cannot be deleted.
 */
#include "pure/limits.h"
#include "rig.h"

#include <errno.h>
#include <string.h>

#define OF_USER(uid) "zklockfs: 1\nuid: " uid "\ngid: 1\nmode: 755\ndoor_mode: 644\n\n"

static int set_up(void **state)
{
	struct rig *rig = rig_begin_ready();

	rig->lc.config.uid = 3;
	rig->lc.config.without = (struct lc_attributes){.uid = 4};
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	assert_null(rig->calls.calls);
	rig_end_session(rig, false);
	asking_finish(&rig->lc);
	rig_finish(rig);
	return 0;
}

static void done(void *ctx, int err)
{
	rig_tell(ctx, err < 0 ? "done %s" : "done", strerrorname_np(-err));
}

static struct lc_call *begin(struct rig *rig, const char *lock, uid_t by)
{
	struct lc_call *call;

	assert_int_equal(lc_rmdir(&rig->lc, lock, by, NULL, done, rig, &call), 0);
	return call;
}

static void answer_lock(struct rig *rig, int32_t version, const char *data)
{
	struct ensemble_stat stat = {.version = version, .czxid = 50, .mzxid = 50};

	rig_answer(rig, &(struct ensemble_answer){
				.stat = &stat, .data = data, .data_len = (int)strlen(data)});
}

static void answer_names(struct rig *rig, const char *const *names, int count)
{
	struct ensemble_stat stat = {.czxid = 50, .mzxid = 50, .children = count};

	asking_send(&rig->lc);
	rig_answer(rig,
	           &(struct ensemble_answer){.stat = &stat, .names = names, .name_count = count});
	asking_tell(&rig->lc);
	rig->now_us += TOLD_REST_US;
}

/* The delete names the version of the data that told the owner. */
static void by_its_owner(void **state)
{
	struct rig *rig = *state;

	begin(rig, "a", 7);
	rig_expect_sent(rig, "get /locks/a");
	answer_lock(rig, 3, OF_USER("7"));
	rig_expect_sent(rig, "delete /locks/a v3");
	rig_answer_error(rig, ENSEMBLE_BADVERSION); /* the owner may have changed */
	rig_expect_sent(rig, "get /locks/a");
	answer_lock(rig, 4, OF_USER("7"));
	rig_expect_sent(rig, "delete /locks/a v4");
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_expect_told(rig, "alive, done");
}

static void root_has_seen_it(void **state)
{
	static const struct lc_lock_info seen;
	struct rig *rig = *state;
	struct lc_call *call;

	assert_int_equal(lc_rmdir(&rig->lc, "a", 0, &seen, done, rig, &call), 0);
	rig_expect_sent(rig, "delete /locks/a");
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_expect_told(rig, "alive, done");
	/* The lock may be another's since its owner has seen it. */
	assert_int_equal(lc_rmdir(&rig->lc, "a", 7, &seen, done, rig, &call), 0);
	rig_expect_sent(rig, "get /locks/a");
	answer_lock(rig, 3, OF_USER("8"));
	rig_expect_told(rig, "done EPERM");
}

static void who_may(void **state)
{
	static const struct {
		uid_t by;
		const char *data;
		bool may;
	} rows[] = {
		{7, OF_USER("7"), true}, {8, OF_USER("7"), false}, {0, OF_USER("7"), true},
		{3, OF_USER("7"), true}, /* the root of the mount belongs to this user */
		{4, "", true},           {5, "", false},
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		begin(rig, "a", rows[i].by);
		answer_lock(rig, 3, rows[i].data);
		rig_expect_sent(rig,
		                rows[i].may ? "get /locks/a, delete /locks/a v3" : "get /locks/a");
		if (rows[i].may)
			rig_answer_error(rig, ENSEMBLE_OK);
		rig_expect_told(rig, rows[i].may ? "alive, done" : "done EPERM");
	}
}

/* The owner of the lock above may remove a lock; the data of the lock above must be unchanged. */
static void by_the_owner_above(void **state)
{
	struct rig *rig = *state;

	begin(rig, "team/a", 7);
	rig_expect_sent(rig, "get /locks/team/a");
	answer_lock(rig, 3, OF_USER("8"));
	rig_expect_sent(rig, "get /locks/team");
	answer_lock(rig, 5, OF_USER("7"));
	rig_expect_sent(rig, "delete /locks/team/a v3 + check /locks/team v5");
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_expect_told(rig, "alive, done");
	/* The owner of the mount's root has no rights below another user's lock. */
	begin(rig, "team/a", 3);
	answer_lock(rig, 3, OF_USER("8"));
	answer_lock(rig, 5, OF_USER("7"));
	rig_expect_told(rig, "done EPERM");
}

static void an_entry_is_no_lock(void **state)
{
	struct rig *rig = *state;
	struct ensemble_stat stat = {.ephemeral_owner = 9};

	begin(rig, "a", 0);
	rig_answer(rig, &(struct ensemble_answer){.stat = &stat});
	rig_expect_told(rig, "done ENOENT");
}

/* ---- why not ---- */

static void try_to_delete(struct rig *rig, const char *const *names, int count)
{
	begin(rig, "a", 0);
	answer_lock(rig, 3, "");
	rig_answer_error(rig, ENSEMBLE_NOTEMPTY);
	rig_forget(rig);
	answer_names(rig, names, count);
}

static void in_use(void **state)
{
	static const char *const entry[] = {".zklockfs", "x-lock-0000000001"};
	static const char *const below[] = {"below"};
	static const char *const both[] = {"below", "x-lock-0000000001"};
	struct rig *rig = *state;

	try_to_delete(rig, entry, 2);
	rig_expect_told(rig, "done EBUSY");
	rig->now_us += SECOND;
	try_to_delete(rig, below, 1);
	rig_expect_told(rig, "done ENOTEMPTY");
	rig->now_us += SECOND;
	begin(rig, "a", 0);
	answer_lock(rig, 3, "");
	rig_answer_error(rig, ENSEMBLE_NOTEMPTY);
	asking_send(&rig->lc);
	rig_answer_error(rig, ENSEMBLE_NOAUTH);
	rig_forget(rig);
	asking_tell(&rig->lc);
	rig_expect_told(rig, "done EACCES");
	rig->now_us += SECOND;
	try_to_delete(rig, both, 1);
	rig_expect_told(rig, "done ENOTEMPTY");
}

static void gone_meanwhile(void **state)
{
	struct rig *rig = *state;

	try_to_delete(rig, NULL, 0);
	rig_expect_sent(rig, "children /locks/a, get /locks/a");
	answer_lock(rig, 3, "");
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_expect_told(rig, "alive, done");
}

static const char *const former_root[] = {".zklockfs"};

/* The lock has been the root of a mount: the directory that the mount left is deleted, too. */
static void a_former_root(void **state)
{
	struct rig *rig = *state;

	for (int i = 0; i < 2; i++) {
		try_to_delete(rig, former_root, 1);
		rig_expect_sent(rig, "children /locks/a, delete /locks/a/.zklockfs");
		/* In the second round another client was quicker. */
		rig->reads.silent = true;
		rig_answer_error(rig, i == 0 ? ENSEMBLE_OK : ENSEMBLE_NONODE);
		assert_false(rig->reads.silent);
		rig_expect_sent(rig, "get /locks/a");
		rig_expect_told(rig, i == 0 ? "alive" : "");
		answer_lock(rig, 3, "");
		rig_answer_error(rig, ENSEMBLE_OK);
		rig_expect_told(rig, "alive, done");
		rig->now_us += SECOND;
	}
}

static void a_root_in_use(void **state)
{
	struct rig *rig = *state;

	try_to_delete(rig, former_root, 1);
	rig->reads.silent = true;
	rig_answer_error(rig, ENSEMBLE_NOTEMPTY);
	rig_expect_told(rig, "done EBUSY");
	assert_false(rig->reads.silent); /* the ensemble answers */
}

/* The answer to a cancelled question only frees it, whatever the result is. */
static void cancelled(void **state)
{
	static const enum ensemble_result results[] = {ENSEMBLE_OK, ENSEMBLE_NOTEMPTY,
	                                               ENSEMBLE_NONODE, ENSEMBLE_BADVERSION};
	struct rig *rig = *state;

	for (size_t i = 0; i < LENGTH(results); i++) {
		struct lc_call *call = begin(rig, "a", 0);

		answer_lock(rig, 3, "");
		lc_cancel(call);
		rig_forget(rig);
		rig_answer_error(rig, results[i]);
		rig_expect_sent(rig, "");
		rig_expect_told(rig, i == 0 ? "alive" : "");
		call = begin(rig, "a", 0);
		answer_lock(rig, 3, "");
		rig_answer_error(rig, ENSEMBLE_NOTEMPTY);
		answer_names(rig, former_root, 1);
		lc_cancel(call);
		rig_forget(rig);
		rig_answer_error(rig, results[i]);
		rig_expect_sent(rig, "");
		rig->now_us += SECOND;
		rig_forget(rig);
	}
}

#define REMOVE_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		REMOVE_TEST(by_its_owner),
		REMOVE_TEST(root_has_seen_it),
		REMOVE_TEST(who_may),
		REMOVE_TEST(by_the_owner_above),
		REMOVE_TEST(an_entry_is_no_lock),
		REMOVE_TEST(in_use),
		REMOVE_TEST(gone_meanwhile),
		REMOVE_TEST(a_former_root),
		REMOVE_TEST(a_root_in_use),
		REMOVE_TEST(cancelled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
