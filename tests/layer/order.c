/* SPDX-License-Identifier: MIT
 *
 * The order of a queue whose numbers repeat: the czxid of each entry is read. The lock is listed
 * again if the answers do not belong to one moment.
 */
#include "grant/grant.h"

#include "rig.h"

#include <stdio.h>
#include <string.h>

static struct lc_taker taker; /* its entry keeps the lock */

static void told(struct lock *lock, struct queue *queue)
{
	char text[200] = "";
	size_t n = 0;

	for (size_t i = 0; i < queue->count; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, " %.1s", queue->entries[i].znode);
	rig_tell(rig_of(lock->lc), "%zu:%s", (size_t)queue->listing, text);
	assert_true(queue->in_zone);
}

static int set_up(void **state)
{
	struct rig *rig = rig_begin_ready();

	taker = (struct lc_taker){0};
	rig_make_entry(rig, &taker.entry, "a", 7, LC_EXCLUSIVE);
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;
	struct lock *lock = taker.entry.lock;

	rig_end_session(rig, false);
	if (taker.entry.state != ENTRY_ABSENT)
		entry_set_absent(&taker.entry);
	lock_unwant_list(lock);
	assert_null(lock->lists.order);
	assert_int_equal(lock->uses, 1);
	rig_free_entry(&taker.entry);
	rig_finish(rig);
	return 0;
}

static void find(const char *const *znodes, size_t count)
{
	struct queue_entry entries[8] = {0};
	struct queue queue = {.entries = entries, .count = count, .listing = 3, .in_zone = true};

	for (size_t i = 0; i < count; i++) {
		entries[i].znode = znodes[i];
		assert_true(name_parse(znodes[i], &entries[i].name));
	}
	order_find(taker.entry.lock, &queue, told);
}

static void answer_czxid(struct rig *rig, int64_t czxid)
{
	struct ensemble_stat stat = {.czxid = czxid};

	rig_answer(rig, &(struct ensemble_answer){.stat = &stat});
}

#define X "x-lock-2147483647"
#define Y "y-lock-2147483647"
#define Z "z-lock-2147483647"
#define OWN(letter) "_c_01234567-89ab-cdef-0011-22334455667" letter "-web9.7-lock-2147483647"

static const char *const three[] = {X, Y, Z};

static bool is_list_wanted(void)
{
	bool wanted = taker.entry.lock->lists.wanted;

	lock_unwant_list(taker.entry.lock);
	return wanted;
}

static bool is_listed_later(struct rig *rig)
{
	bool later = taker.entry.lock->lists.recheck.armed;

	timer_clear(&rig->lc.timers, &taker.entry.lock->lists.recheck);
	return later;
}

static void by_czxid(void **state)
{
	struct rig *rig = *state;

	find(three, 3);
	rig_expect_sent(rig, "get /locks/a/" X ", get /locks/a/" Y ", get /locks/a/" Z);
	answer_czxid(rig, 30);
	answer_czxid(rig, 10);
	rig_expect_told(rig, "");
	answer_czxid(rig, 20);
	rig_expect_told(rig, "3: y z x");
	assert_false(is_list_wanted());
	assert_false(is_listed_later(rig));
	find(three, 0); /* nothing to ask */
	rig_expect_told(rig, "");
}

/* An entry is gone since the listing. */
static void gone_meanwhile(void **state)
{
	struct rig *rig = *state;

	find(three, 3);
	answer_czxid(rig, 30);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	answer_czxid(rig, 20);
	rig_expect_told(rig, "3: z x");
	assert_false(is_list_wanted());
}

static void not_answered(void **state)
{
	struct rig *rig = *state;

	find(three, 3);
	answer_czxid(rig, 30);
	rig_answer_error(rig, ENSEMBLE_REFUSED);
	answer_czxid(rig, 20);
	rig_expect_told(rig, "");
	assert_true(is_listed_later(rig));
	assert_false(is_list_wanted());
}

/* An entry that this mount may not read: said once. */
static void closed_to_us(void **state)
{
	struct rig *rig = *state;

	find(three, 3);
	answer_czxid(rig, 30);
	rig_answer_error(rig, ENSEMBLE_NOAUTH);
	rig_expect_reported(rig, "this mount may not read it");
	answer_czxid(rig, 20);
	rig_expect_told(rig, "");
	assert_true(is_listed_later(rig));
}

/* Another listing came meanwhile: one more follows. */
static void listed_meanwhile(void **state)
{
	struct rig *rig = *state;

	find(three, 3);
	rig_forget(rig);
	find(three, 2);
	rig_expect_sent(rig, "");
	answer_czxid(rig, 30);
	answer_czxid(rig, 10);
	answer_czxid(rig, 20);
	rig_expect_told(rig, "3: y z x");
	assert_true(is_list_wanted());
	find(three, 3);
	find(three, 3);
	rig_answer_error(rig, ENSEMBLE_UNKNOWN);
	rig_answer_error(rig, ENSEMBLE_UNKNOWN);
	rig_answer_error(rig, ENSEMBLE_UNKNOWN);
	assert_true(is_list_wanted());
	assert_false(is_listed_later(rig));
}

/* An entry of this mount is gone, or another node has its name by now. */
static void own_is_gone(void **state)
{
	static const struct {
		int64_t known, found; /* 0: the node is not there */
		bool unwanted, gone;
	} rows[] = {
		{100, 100, false, false}, {100, 101, false, true}, {0, 101, false, false},
		{100, 0, false, true},    {0, 0, false, true},     {100, 0, true, false},
	};
	struct rig *rig = *state;
	struct entry *entry = &taker.entry;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct ensemble_stat stat = {.czxid = rows[i].known,
		                             .ephemeral_owner = RIG_SESSION};
		char znode[256];
		const char *const znodes[] = {znode};

		snprintf(znode, sizeof(znode), "%s",
		         strrchr(rig_entry_path(entry, 2147483647), '/') + 1);
		entry_begin(entry);
		entry->pending++;
		entry->sent_us = rig->now_us;
		entry_created(entry,
		              &(struct ensemble_answer){.path = rig_entry_path(entry, 2147483647),
		                                        .stat = rows[i].known ? &stat : NULL});
		entry->wanted = !rows[i].unwanted;
		find(znodes, 1);
		if (rows[i].found)
			answer_czxid(rig, rows[i].found);
		else
			rig_answer_error(rig, ENSEMBLE_NONODE);
		expect((strstr(rig->told, " gone") != NULL) == rows[i].gone, "row %zu", i);
		entry->wanted = true;
		entry_set_absent(entry);
		rig_forget(rig);
	}
}

#define ORDER_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ORDER_TEST(by_czxid),     ORDER_TEST(gone_meanwhile),   ORDER_TEST(not_answered),
		ORDER_TEST(closed_to_us), ORDER_TEST(listed_meanwhile), ORDER_TEST(own_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
