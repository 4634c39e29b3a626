/* SPDX-License-Identifier: MIT
 *
 * Making a lock: the limits on the number of locks below a lock, and how they are counted.
 */
#include "takers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void done(void *ctx, int err, const struct lc_lock_info *info)
{
	if (err < 0)
		rig_tell(ctx, "%s", strerrorname_np(-err));
	else
		rig_tell(ctx, "made: czxid %d, uid %u, mode %o, slots %u", (int)info->czxid,
		         info->attributes.uid, info->attributes.mode, info->slots);
}

static struct lc_call *make(struct rig *rig, const char *lock, uid_t uid)
{
	struct lc_attributes attributes = {
		.uid = uid, .gid = 6, .mode = 0755, .lock_file_mode = 0644};
	struct lc_call *call;

	assert_int_equal(lc_mkdir(&rig->lc, lock, &attributes, NULL, done, rig, &call), 0);
	return call;
}

#define DATA(uid) "'zklockfs: 1|uid: " uid "|gid: 6|mode: 755|door_mode: 644||'"

/* A lock directly below the root, or made by root, is created without a read before. */
static void without_a_look(void **state)
{
	struct rig *rig = *state;

	make(rig, "a", 7);
	rig_expect_sent(rig, "create /locks/a " DATA("7"));
	rig_answer_created(rig, "/locks/a", 50);
	rig_expect_told(rig, "made: czxid 50, uid 7, mode 755, slots 1");
	rig_expect_sent(rig, ""); /* whatever becomes of it from now on */
	make(rig, "team/a", 0);
	rig_expect_sent(rig, "create /locks/team/a " DATA("0"));
	rig_answer_error(rig, ENSEMBLE_EXISTS);
	rig_expect_told(rig, "EEXIST");
}

static void bad_names(void **state)
{
	struct rig *rig = *state;
	struct lc_attributes attributes = {.uid = 7};
	char longest[LC_PATH_MAX + 1];
	struct lc_call *call;

	assert_int_equal(lc_mkdir(&rig->lc, ".a", &attributes, NULL, done, rig, &call), -EINVAL);
	assert_int_equal(lc_mkdir(&rig->lc, "a/x0123456789", &attributes, NULL, done, rig, &call),
	                 -EINVAL);
	for (size_t i = 0; i < sizeof(longest); i++)
		longest[i] = i % 100 == 99 ? '/' : 'x';
	longest[LC_PATH_MAX - strlen("/locks/") + 1] = '\0';
	assert_int_equal(lc_mkdir(&rig->lc, longest, &attributes, NULL, done, rig, &call),
	                 -ENAMETOOLONG);
	longest[LC_PATH_MAX - strlen("/locks/")] = '\0';
	lc_cancel(make(rig, longest, 0));
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_expect_told(rig, "");
}

static void answer_above(struct rig *rig, const char *uid, int32_t children)
{
	struct ensemble_stat stat = {.children = children};
	char data[100];
	int len = snprintf(data, sizeof(data),
	                   "zklockfs: 1\nuid: %s\ngid: 1\nmode: 755\ndoor_mode: 644\n\n", uid);

	rig_answer(rig, &(struct ensemble_answer){.stat = &stat, .data = data, .data_len = len});
}

static void few_there(void **state)
{
	static const struct {
		const char *owner;
		int32_t children;
		bool makes; /* without a count of the locks among the children */
	} rows[] = {
		{"8", LC_BELOW_MAX - 1, true},    {"8", LC_BELOW_MAX, false},
		{"7", LC_BELOW_MAX, true},        {"7", LC_BELOW_OWNER_MAX - 1, true},
		{"7", LC_BELOW_OWNER_MAX, false},
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct lc_call *call = make(rig, "team/a", 7);

		rig_expect_sent(rig, "get /locks/team");
		answer_above(rig, rows[i].owner, rows[i].children);
		asking_send(&rig->lc);
		expect((strstr(rig->sent, "create /locks/team/a") != NULL) == rows[i].makes,
		       "row %zu", i);
		expect((strstr(rig->sent, "children /locks/team") != NULL) != rows[i].makes,
		       "row %zu", i);
		lc_cancel(call);
		rig_answer_error(rig, ENSEMBLE_UNKNOWN);
		rig_forget(rig);
		rig->now_us += SECOND;
	}
}

/* Entries among the children do not count as locks. */
static void many_there(void **state)
{
	static char texts[LC_BELOW_MAX + 1][24];
	static const char *names[LC_BELOW_MAX + 1];
	struct rig *rig = *state;

	for (int locks = LC_BELOW_MAX - 1; locks <= LC_BELOW_MAX; locks++) {
		struct ensemble_stat stat = {.czxid = 9, .children = LC_BELOW_MAX + 1};

		for (int i = 0; i <= LC_BELOW_MAX; i++) {
			snprintf(texts[i], sizeof(texts[i]), i < locks ? "lock%d" : "x-%010d", i);
			names[i] = texts[i];
		}
		make(rig, "team/a", 7);
		answer_above(rig, "8", LC_BELOW_MAX + 1);
		asking_send(&rig->lc);
		rig_answer(rig, &(struct ensemble_answer){.stat = &stat,
		                                          .names = names,
		                                          .name_count = LC_BELOW_MAX + 1});
		asking_send(&rig->lc);
		if (strcmp(rig_unanswered(rig), "get /locks/team") == 0) {
			rig_answer(rig, &(struct ensemble_answer){.stat = &stat, .data = ""});
			rig_answer(rig, &(struct ensemble_answer){.stat = &stat,
			                                          .names = names,
			                                          .name_count = LC_BELOW_MAX + 1});
		}
		rig_forget(rig);
		asking_tell(&rig->lc);
		if (locks < LC_BELOW_MAX) {
			rig_expect_sent(rig, "create /locks/team/a " DATA("7"));
			rig_answer_created(rig, "/locks/team/a", 50);
			rig_expect_told(rig, "made: czxid 50, uid 7, mode 755, slots 1");
		} else {
			rig_expect_told(rig, "EDQUOT");
		}
		rig->now_us += SECOND;
	}
}

/* The caller has read the lock above: if that has room, it is not read again. */
static void seen_above(void **state)
{
	static const struct {
		bool has_owner;
		unsigned children;
		bool reads;
	} rows[] = {
		{false, LC_BELOW_MAX - 1, false},  {false, LC_BELOW_MAX, true},
		{true, LC_BELOW_MAX, false},       {true, LC_BELOW_OWNER_MAX, true},
		{true, LC_CHILDREN_UNKNOWN, true},
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct lc_attributes attributes = {.uid = 7};
		struct lc_lock_info above = {.has_attributes = rows[i].has_owner,
		                             .attributes.uid = 7,
		                             .children = rows[i].children};
		struct lc_call *call;

		assert_int_equal(
			lc_mkdir(&rig->lc, "team/a", &attributes, &above, done, rig, &call), 0);
		expect((strstr(rig->sent, "get /locks/team") != NULL) == rows[i].reads, "row %zu",
		       i);
		expect((strstr(rig->sent, "create /locks/team/a") != NULL) != rows[i].reads,
		       "row %zu", i);
		lc_cancel(call);
		rig_answer_error(rig, ENSEMBLE_UNKNOWN);
		rig_forget(rig);
	}
}

static void cannot_be_looked_at(void **state)
{
	struct rig *rig = *state;

	make(rig, "team/a", 7);
	rig_answer_error(rig, ENSEMBLE_NOAUTH);
	rig_expect_told(rig, "EACCES");
	make(rig, "team/a", 7);
	answer_above(rig, "8", LC_BELOW_MAX);
	asking_send(&rig->lc);
	rig_answer_error(rig, ENSEMBLE_NOAUTH);
	asking_tell(&rig->lc);
	rig_expect_told(rig, "EACCES");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TAKERS_TEST(without_a_look), TAKERS_TEST(bad_names),
		TAKERS_TEST(few_there),      TAKERS_TEST(many_there),
		TAKERS_TEST(seen_above),     TAKERS_TEST(cannot_be_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
