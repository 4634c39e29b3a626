/* SPDX-License-Identifier: MIT
 *
 * An engine that goes on after its process was killed, from the records of its last turns.
 */
#include "unit_play.h"

#include "pure/state.h"

#include <errno.h>

/* A turn that is not recorded has not happened: none of its requests was sent. */
static void killed_before_it_was_recorded(void **state)
{
	struct play *play = *state;
	struct taker *holder = take(play, 0), *never;
	uint64_t id;
	void *saved;
	size_t len;

	record(play);
	never = take_for(play, 2, LC_FOREVER, LC_SHARED, NULL);
	id = never->id;
	lc_leave(holder->lc);
	lc_process(play->here->lc, 0);
	join(play, &saved, &len);
	adopt(play, saved, len, 1 << 2);
	assert_null(lc_claim(play->here->lc, id, NULL, NULL, NULL));
	assert_true(lc_holds(holder->lc));
	for (int i = 0; i < 1000; i++) {
		run(play->stage, MS);
		assert_int_equal(entries(play), 1);
	}
	assert_true(lc_holds(holder->lc));
}

/* A question that changes something can be under way when the process is killed. */
static void killed_while_it_changes(void **state)
{
	struct play *play = *state;
	struct taker *holder = take(play, 0);
	struct lc_change change = {.slots = 2};
	struct lc_call *call;
	void *saved;
	size_t len;

	assert_true(lc_settled(play->here->lc));
	assert_int_equal(lc_change(play->here->lc, "build", &change, NULL, NULL, &call), 0);
	host_wake(play->here);
	for (int i = 0; i < 100 && lc_settled(play->here->lc); i++)
		run(play->stage, 100);
	assert_false(lc_settled(play->here->lc));
	assert_int_equal(lc_save(play->here->lc, &saved, &len), -EBUSY);
	record(play);
	join(play, &saved, &len);
	lc_cancel(call);
	adopt(play, saved, len, 0);
	run(play->stage, SECOND);
	assert_true(lc_holds(holder->lc));
}

/* Processes are killed one after the other, each before it has recorded a turn. */
static void killed_in_a_row(void **state)
{
	struct play *play = *state;
	struct taker *holder = take(play, 0), *next = take(play, 1);
	void *saved;
	size_t len;

	record(play);
	for (int i = 0; i < 5; i++) {
		join(play, &saved, &len);
		adopt(play, saved, len, 0);
		run(play->stage, i * MS);
	}
	run(play->stage, SECOND);
	assert_int_equal(entries(play), 2);
	assert_true(lc_holds(holder->lc));
	stage_leave(holder);
	run(play->stage, 100 * MS);
	assert_true(lc_holds(next->lc));
}

/* Takers are restored in the order of their entries, not in the order in which they came. */
static void records_in_the_order_of_entries(void **state)
{
	struct play *play = *state;
	struct taker *first = take_for(play, 0, 0, LC_SHARED, NULL); /* a try, which lists first */
	struct taker *second = take_for(play, 1, LC_FOREVER, LC_SHARED, NULL);
	uint64_t ids[] = {second->id, first->id};
	struct state_record taker;
	size_t len, offset = 0, count = 0;
	void *saved;

	record(play);
	run(play->stage, SECOND);
	assert_true(lc_holds(first->lc) && lc_holds(second->lc));
	record(play);
	join(play, &saved, &len);
	while (state_read(saved, len, &offset, &taker))
		if (taker.kind == STATE_TAKER)
			assert_int_equal(taker.fixed.taker.id, ids[count++]);
	assert_int_equal(count, 2);
	free(saved);
}

/* Records come from shared memory, so all of them are checked. */
static void broken_records(void **state)
{
	struct play *play = *state;
	struct lc_record *records = play->records, kept;
	void *saved;
	size_t len;

	take(play, 0);
	record(play);
	assert_int_equal(lc_join_state(NULL, 0, &saved, &len), -EPROTO);
	assert_int_equal(lc_join_state(records + 1, 1, &saved, &len), -EPROTO);
	kept = records[2];
	records[2].len -= 8;
	assert_int_equal(lc_join_state(records, 3, &saved, &len), -EPROTO);
	records[2] = kept;
	records[2].key++;
	assert_int_equal(lc_join_state(records, 3, &saved, &len), -EPROTO);
	records[2] = kept;
	records[1].key = 1;
	assert_int_equal(lc_join_state(records, 3, &saved, &len), -EPROTO);
	records[1].key = 2;
	assert_int_equal(lc_join_state(records, 3, &saved, &len), 0);
	free(saved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLAY_TEST(killed_before_it_was_recorded, 90, 0),
		PLAY_TEST(killed_while_it_changes, 91, 0),
		PLAY_TEST(killed_in_a_row, 92, 0),
		PLAY_TEST(records_in_the_order_of_entries, 94, 0),
		PLAY_TEST(broken_records, 93, 0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
