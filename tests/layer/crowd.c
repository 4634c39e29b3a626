/* SPDX-License-Identifier: MIT
 *
 * Takers that do not wait behind many: who is refused, by one look before the entry is made.
 */
#include "takers.h"

#include "forged.h"
#include "lock/taker.h"
#include "engine.h"

#include <errno.h>
#include <string.h>

#define THEIRS(number) "_c_01234567-89ab-cdef-0123-456789abcdef-m1.7-lock-000000000" #number

static struct lc_taker *begin(struct rig *rig, pid_t pid, enum lc_mode mode, unsigned crowd)
{
	struct lc_taker *taker = takers_request(rig, &(struct lc_request){.lock = "a",
	                                                                  .mode = mode,
	                                                                  .wait_us = LC_FOREVER,
	                                                                  .crowd = crowd,
	                                                                  .pid = pid,
	                                                                  .command = "test"});

	takers_turn(rig);
	return taker;
}

/* Holders do not count, nor do slots. Nobody has an entry before it is known that it may wait. */
static void by_a_listing(void **state)
{
	static const struct {
		unsigned crowd, slots;
		enum lc_mode mode;
		const char *names;
		bool refused;
	} rows[] = {
		{1, 1, LC_EXCLUSIVE, "", false},
		{1, 1, LC_EXCLUSIVE, OTHER(1), false},
		{1, 1, LC_EXCLUSIVE, OTHER(1) " " OTHER(2), true},
		{2, 1, LC_EXCLUSIVE, OTHER(1) " " OTHER(2), false},
		{2, 1, LC_EXCLUSIVE, OTHER(1) " " OTHER(2) " " OTHER(3), true},
		{1, 1, LC_EXCLUSIVE, OTHER_SHARED(1) " " OTHER_SHARED(2), false},
		{1, 1, LC_EXCLUSIVE, OTHER_SHARED(1) " " OTHER(2), true},
		{1, 1, LC_SHARED, OTHER_SHARED(1) " " OTHER(2), true},
		{1, 1, LC_SHARED, OTHER(1), false},
		{1, 2, LC_EXCLUSIVE, THEIRS(1) " " THEIRS(2), false},
		{1, 2, LC_EXCLUSIVE, THEIRS(1) " " THEIRS(2) " " THEIRS(3), true},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rig *rig = takers_begin();

		begin(rig, 1, rows[i].mode, rows[i].crowd);
		rig_expect_sent(rig, "watch /locks/a, sync /locks/a, children /locks/a");
		takers_answer_slots(rig, rows[i].slots);
		takers_answer_list(rig, rows[i].names);
		expect(!!strstr(rig->told, "1 taken EAGAIN") == rows[i].refused, "row %zu: %s", i,
		       rig->told);
		expect(!strstr(rig->sent, "create ephemeral") == rows[i].refused, "row %zu: %s", i,
		       rig->sent);
		expect(rig->lc.counters.crowded == rows[i].refused, "row %zu", i);
		takers_end(rig);
	}
}

/* Two come at once behind a holder of another host: nobody waits yet, so both do. */
static void looks_once(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *takers[2];

	for (int i = 0; i < 2; i++)
		takers[i] = begin(rig, 1 + i, LC_EXCLUSIVE, 1);
	takers_answer_lists(rig, OTHER(1));
	takers_answer_made(rig, takers[0], 2);
	takers_answer_made(rig, takers[1], 3);
	takers_answer_lists(rig, OTHER(1) " #2-2 #3-3");
	rig_expect_told(rig, "");
	assert_int_equal(takers[0]->entry.state, ENTRY_PRESENT);
	assert_int_equal(takers[1]->entry.state, ENTRY_PRESENT);
	assert_int_equal(rig->lc.counters.crowded, 0);
}

/* The former version has recorded that the entry of this taker was to go: it is refused. */
static void withdrawn_by_the_former_version(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1"), *taker;
	struct codec codec = {.loads = true};
	struct codec forged = {0};
	char name[NAME_PREFIX_MAX + 10];

	name_format(name, rig->lc.clients, rig->session.half, 99, "h", 7, LC_EXCLUSIVE);
	strcat(name, "0000000002");
	forge_taker(&forged, &(struct forged_taker){
				     .lock = "a",
				     .name = name,
				     .id = 99,
				     .entry = FORGED_PRESENT,
				     .flags = FORGED_WITHDRAWN,
				     .wait_until_us = LC_FOREVER,
				     .hold_until_us = LC_FOREVER,
				     .limit_us = rig->now_us + SECOND,
				     .recheck_us = rig->now_us + SECOND,
				     .held_since_ms = -1,
				     .crowd = 1,
				     .command = "test",
			     });
	codec_read(&codec, forged.data, forged.len);
	taker = taker_blank();
	assert_true(taker_read(&codec, &rig->lc, taker));
	codec_end(&forged);
	assert_int_equal(taker->state, TAKER_FAILED);
	assert_int_equal(taker->error, -EAGAIN);
	assert_non_null(taker->due_prev);
	takers_leave(rig, taker);
	takers_leave(rig, holder);
}

/* Somebody of ours waits already, but only a listing can show how many wait before it. */
static void listed_again(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker;

	takers_queue(rig, 2, LC_EXCLUSIVE, 1, "#2-1");
	takers_queue(rig, 3, LC_EXCLUSIVE, 2, "#2-1 #3-2");
	taker = begin(rig, 1, LC_EXCLUSIVE, 2);
	takers_answer_watches(rig);
	rig_forget(rig);
	takers_answer_list(rig, "#2-1 #3-2");
	rig_expect_sent(rig, "create ephemeral /locks/a/#4-");
	takers_answer_made(rig, taker, 3);
	rig_expect_told(rig, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_a_listing),
		TAKERS_TEST(looks_once),
		TAKERS_TEST(withdrawn_by_the_former_version),
		TAKERS_TEST(listed_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
