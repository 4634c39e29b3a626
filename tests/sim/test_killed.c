/* SPDX-License-Identifier: MIT
 *
 * An engine that goes on after its process was killed, from the records of its last turns.
 */
#include "unit_play.h"

#include "pure/name.h"

#include <errno.h>

/* A turn that is not recorded has not happened: none of its requests was sent. */
static void killed_before_it_was_recorded(void **state)
{
	struct play *play = *state;
	struct taker *holder = take(play, 0), *never;
	uint64_t id;

	record(play);
	never = take_for(play, 2, LC_FOREVER, LC_SHARED, NULL);
	id = never->id;
	lc_leave(holder->lc);
	lc_process(play->here->lc, 0);
	adopt(play, 1 << 2);
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

	assert_true(lc_settled(play->here->lc));
	assert_int_equal(lc_change(play->here->lc, "build", &change, NULL, NULL, &call), 0);
	host_wake(play->here);
	for (int i = 0; i < 100 && lc_settled(play->here->lc); i++)
		run(play->stage, 100);
	assert_false(lc_settled(play->here->lc));
	record(play);
	lc_cancel(call);
	adopt(play, 0);
	run(play->stage, SECOND);
	assert_true(lc_holds(holder->lc));
}

/* Processes are killed one after the other, each before it has recorded a turn. */
static void killed_in_a_row(void **state)
{
	struct play *play = *state;
	struct taker *holder = take(play, 0), *next = take(play, 1);

	record(play);
	for (int i = 0; i < 5; i++) {
		adopt(play, 0);
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
	struct records *records = &play->here->notes.records;
	struct record_bytes *found;

	record(play);
	run(play->stage, SECOND);
	assert_true(lc_holds(first->lc) && lc_holds(second->lc));
	record(play);
	assert_int_equal(records->memory->list(records->store, LC_KIND_TAKER, &found), 2);
	for (int i = 0; i < 2; i++) {
		struct codec codec = {.loads = true};

		codec_read(&codec, found[i].bytes, found[i].len);
		for (int texts = 0; texts < 3; texts++)
			(void)codec_text(&codec, NULL);
		assert_int_equal(codec_number(&codec, 0, INT64_MIN, INT64_MAX), (int64_t)ids[i]);
	}
	free(found);
}

/* The number at the end of the name of a taker's entry. */
static int number_of(struct play *play, const struct taker *taker)
{
	struct node *parent = tree_find(&play->stage->world.committed, BUILD), *node;
	struct entry_name name;

	DL_FOREACH(parent->children, node)
		if (name_parse(node->name, &name) && name.taker_half == taker->id)
			return (int)name.number;
	fail_msg("a taker has no entry");
	return -1;
}

/* A holder that upgrades, and one that comes behind it, have no entries yet when the process is
 * killed, and when the next one is, and so on. */
static void upgrade_stays_before_who_came_later(void **state)
{
	struct play *play = *state;
	struct taker *holder = take_for(play, 0, LC_FOREVER, LC_SHARED, NULL), *upgrade, *later;

	run(play->stage, 100 * MS);
	assert_true(lc_holds(holder->lc));
	reload(play);
	upgrade = take_for(play, 1, LC_FOREVER, LC_EXCLUSIVE, holder);
	later = take_for(play, 2, LC_FOREVER, LC_SHARED, NULL);
	for (int i = 0; i < 3; i++)
		reload(play);
	run(play->stage, SECOND);
	assert_int_equal(entries(play), 3);
	assert_true(number_of(play, upgrade) < number_of(play, later));
	assert_true(lc_holds(upgrade->lc));
}

/* Sets the record, looks whether an engine would go on, and puts the former bytes back. */
static int check_with(struct play *play, enum lc_kind kind, const void *bytes, size_t len)
{
	struct notes *notes = &play->here->notes;
	const struct note *note = NULL, *each;
	void *former;
	size_t former_len;
	uint64_t key;
	int r;

	DL_FOREACH(notes->notes, each)
		if (each->id.kind == kind)
			note = each;
	assert_non_null(note);
	key = note->id.key;
	former_len = note->len;
	former = memcpy(malloc(former_len + 1), note->bytes, former_len);
	notes_set(notes, kind, key, bytes, len);
	r = check(play, ROOT);
	notes_set(notes, kind, key, former, former_len);
	free(former);
	return r;
}

/* Records come from shared memory, so all of them are checked. */
static void broken_records(void **state)
{
	static const enum lc_kind kinds[] = {LC_KIND_SESSION, LC_KIND_COUNTERS, LC_KIND_TAKER};
	struct play *play = *state;
	char bytes[4096] = {0};

	take(play, 0);
	record(play);
	assert_int_equal(check(play, ROOT), 0);
	assert_int_equal(check_with(play, LC_KIND_SESSION, NULL, 0), -EPROTO);
	assert_int_equal(check_with(play, LC_KIND_COUNTERS, NULL, 0), -EPROTO);
	assert_int_equal(check_with(play, LC_KIND_TAKER, NULL, 0), 0);
	for (int i = 0; i < 3; i++) {
		const struct note *note;

		assert_int_equal(check_with(play, kinds[i], bytes, 0), -EPROTO);
		DL_FOREACH(play->here->notes.notes, note)
			if (note->id.kind == kinds[i])
				break;
		for (size_t len = 0; len < note->len; len++)
			assert_int_equal(
				check_with(play, kinds[i], memcpy(bytes, note->bytes, len), len),
				-EPROTO);
		memcpy(bytes, note->bytes, note->len);
		assert_int_equal(check_with(play, kinds[i], bytes, note->len + 1), -EPROTO);
		assert_int_equal(check_with(play, kinds[i], bytes, note->len), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLAY_TEST(killed_before_it_was_recorded, 90, 0),
		PLAY_TEST(killed_while_it_changes, 91, 0),
		PLAY_TEST(killed_in_a_row, 92, 0),
		PLAY_TEST(records_in_the_order_of_entries, 94, 0),
		PLAY_TEST(upgrade_stays_before_who_came_later, 95, 0),
		PLAY_TEST(broken_records, 93, 0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
