/* SPDX-License-Identifier: MIT
 *
 * Entries with this session's mark and no taker: their owner is read. They are deleted only if they
 * belong to this session and cannot belong to a taker.
 */
#include "rig.h"

#include <stdio.h>
#include <string.h>

#define NOBODYS "_c_00000000-0000-0001-0000-000000000999-m0.7-lock-0000000005"

static struct entry one; /* it keeps the lock in use */

static int set_up(void **state)
{
	struct rig *rig = rig_begin_ready();

	rig_make_entry(rig, &one, "build", 7, LC_EXCLUSIVE);
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	rig_end_session(rig, false);
	if (one.state != ENTRY_ABSENT)
		entry_set_absent(&one);
	lock_unwant_list(one.lock);
	assert_null(rig->orphans.by_path);
	rig_free_entry(&one);
	rig_finish(rig);
	return 0;
}

static bool check(const char *znode)
{
	struct queue_entry entry = {.znode = znode};

	assert_true(name_parse(znode, &entry.name));
	return orphan_check(one.lock, &entry);
}

static void answer_owner(struct rig *rig, int64_t session)
{
	struct ensemble_stat stat = {.ephemeral_owner = session};

	rig_answer(rig, &(struct ensemble_answer){.stat = &stat});
}

static void deleted(void **state)
{
	struct rig *rig = *state;

	assert_true(check(NOBODYS));
	assert_true(check(NOBODYS)); /* it is being read */
	rig_expect_sent(rig, "get /locks/build/#2457-5");
	answer_owner(rig, RIG_SESSION);
	rig_expect_sent(rig, "delete /locks/build/#2457-5");
	rig_expect_reported(rig, "lock-0000000005 has no taker on this mount: deleting it");
	assert_true(check(NOBODYS));
	rig_expect_sent(rig, "");
	rig_answer_error(rig, ENSEMBLE_REFUSED); /* the next listing shows it again */
	rig_expect_sent(rig, "");
	assert_true(check(NOBODYS));
	rig_expect_sent(rig, "get /locks/build/#2457-5");
}

static void of_another_session(void **state)
{
	struct rig *rig = *state;

	assert_true(check(NOBODYS));
	rig_forget(rig);
	answer_owner(rig, RIG_SESSION + 1);
	rig_expect_sent(rig, "");
	assert_true(check(NOBODYS));
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_sent(rig, "");
	assert_false(one.lock->recheck.armed); /* the last listing showed no more such entries */
}

/* The node may be the entry of a create that is not answered yet, or was answered since. */
static void perhaps_of_a_taker(void **state)
{
	struct rig *rig = *state;
	char znode[256];

	snprintf(znode, sizeof(znode), "%s", strrchr(rig_entry_path(&one, 5), '/') + 1);
	entry_begin(&one);
	assert_true(check(znode));
	rig_forget(rig);
	answer_owner(rig, RIG_SESSION);
	rig_expect_sent(rig, "");
	one.pending++;
	entry_created(&one, &(struct ensemble_answer){.result = ENSEMBLE_UNKNOWN});
	assert_true(check(znode));
	rig_forget(rig);
	answer_owner(rig, RIG_SESSION);
	rig_expect_sent(rig, "");
	entry_set_absent(&one);
	entry_begin(&one);
	one.pending++;
	one.sent_us = rig->now_us;
	assert_true(check(znode));
	entry_created(&one, &(struct ensemble_answer){.path = rig_entry_path(&one, 5)});
	rig_forget(rig);
	answer_owner(rig, RIG_SESSION);
	rig_expect_sent(rig, "");
	/* Another node with the same UUID is not the taker's entry, and is deleted. */
	snprintf(znode, sizeof(znode), "%s", strrchr(rig_entry_path(&one, 6), '/') + 1);
	assert_true(check(znode));
	rig_forget(rig);
	answer_owner(rig, RIG_SESSION);
	rig_expect_sent(rig, "delete /locks/build/#2-6");
}

static void only_so_many_at_a_time(void **state)
{
	struct rig *rig = *state;
	char znode[256];
	int asked = 0;

	for (int i = 0; i < 100; i++) {
		snprintf(znode, sizeof(znode),
		         "_c_00000000-0000-0001-0000-00000000%04d-m0.7-lock-0000000005", i + 1000);
		asked += check(znode);
	}
	assert_int_equal(asked, 64);
	rig_forget(rig);
	/* The lock is listed again, and the check goes on with the rest. */
	assert_false(one.lock->recheck.armed);
	one.lock->orphans_seen = 64;
	answer_owner(rig, RIG_SESSION + 1);
	assert_true(one.lock->recheck.armed);
	assert_true(check(znode));
	assert_false(check(NOBODYS));
}

#define ORPHAN_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ORPHAN_TEST(deleted),
		ORPHAN_TEST(of_another_session),
		ORPHAN_TEST(perhaps_of_a_taker),
		ORPHAN_TEST(only_so_many_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
