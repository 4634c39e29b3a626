/* SPDX-License-Identifier: MIT
 *
 * From child names to the order of a queue, and to the entry that each entry waits for.
 */
#include "pure/queue.h"

#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OF_MOUNT "_c_01234567-89ab-cdef-fedc-ba9876543210-web1.42-"

static struct queue built(const char *const *names, size_t count)
{
	struct queue queue;

	assert_int_equal(queue_build(&clients_all[0], names, count, &queue), 0);
	return queue;
}

static void nothing(void **state)
{
	static const char *const locks[] = {"build", "deploy", "order-17", ".zklockfs", ""};
	struct queue queue = built(NULL, 0);

	(void)state;
	assert_int_equal(queue.count, 0);
	assert_false(queue.in_zone);
	queue_finish(&queue);
	assert_null(queue.entries);

	queue = built(locks, LENGTH(locks));
	assert_int_equal(queue.count, 0);
	assert_false(queue.in_zone);
	queue_finish(&queue);
}

static void ordered_by_number_only(void **state)
{
	static const char *const names[] = {
		"zz-0000000003",
		"build",
		(OF_MOUNT "lock-0000000010"),
		"aa-0000000009",
		"_c_00000000-0000-0000-0000-000000000000-a.1-lock-0000000002",
		"x__rlock__0000000000",
		"deploy",
		"x-99-0000000001",
	};
	static const size_t order[] = {5, 7, 4, 0, 3, 2};
	struct queue queue = built(names, LENGTH(names));

	(void)state;
	assert_int_equal(queue.count, LENGTH(order));
	assert_false(queue.in_zone);
	for (size_t i = 0; i < LENGTH(order); i++)
		/* Not copied: the names stay the caller's. */
		assert_ptr_equal(queue.entries[i].znode, names[order[i]]);
	assert_true(queue.entries[5].name.of_mount);
	assert_string_equal(queue.entries[5].name.host, "web1");
	assert_int_equal(queue.entries[5].name.number, 10);
	queue_finish(&queue);
}

/* E and S: an exclusive and a shared entry; `blockers`: the entry that each one waits for. */
static void blockers(void **state)
{
	static const struct {
		const char *queue;
		int blockers[8];
	} rows[] = {
		{"E", {-1}},
		{"S", {-1}},
		{"EE", {-1, 0}},
		{"ES", {-1, 0}},
		{"SE", {-1, 0}},
		{"SS", {-1, -1}},
		{"EEEE", {-1, 0, 1, 2}},
		{"SSSS", {-1, -1, -1, -1}},
		/* A writer waits for the last reader; readers behind it wait for the writer. */
		{"SSESS", {-1, -1, 1, 2, 2}},
		/* An entry waits for the nearest one, not for the first. */
		{"ESESE", {-1, 0, 1, 2, 3}},
		{"EESS", {-1, 0, 1, 1}},
		/* Readers never wait for a writer that came later. */
		{"SSSE", {-1, -1, -1, 2}},
		{"ESSSESSS", {-1, 0, 0, 0, 3, 4, 4, 4}},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		size_t count = strlen(rows[i].queue);
		const char *names[8];
		char text[8][32];
		struct queue queue;

		/* The names come in reverse, so the queue has to sort them. */
		for (size_t k = 0; k < count; k++) {
			bool shared = rows[i].queue[k] == 'S';

			snprintf(text[k], sizeof(text[k]), "x-%s-%010zu", shared ? "rlock" : "lock",
			         k);
			names[count - 1 - k] = text[k];
		}
		queue = built(names, count);
		for (size_t k = 0; k < count; k++)
			expect(queue.entries[k].blocker == rows[i].blockers[k],
			       "%s: entry %zu waits for %zd", rows[i].queue, k,
			       queue.entries[k].blocker);
		queue_finish(&queue);
	}
}

static void other_clients_are_waited_for(void **state)
{
	static const char *const names[] = {
		"a__lock__0000000001",       OF_MOUNT "lock-0000000002",  "x-7-0000000003",
		"b__READ__0000000004",       OF_MOUNT "rlock-0000000005", "c__WRIT__0000000006",
		OF_MOUNT "rlock-0000000007",
	};
	static const ssize_t wanted[] = {-1, 0, 1, 2, 2, 4, 5};
	struct queue queue = built(names, LENGTH(names));

	(void)state;
	for (size_t i = 0; i < LENGTH(names); i++)
		assert_int_equal(queue.entries[i].blocker, wanted[i]);
	queue_finish(&queue);
}

static void who_does_not_wait_for_us(void **state)
{
	static const char *const semaphore[] = {"leases", "x-lock-0000000001", "locks"};
	static const char *const leader[] = {"locks", "x-lock-0000000001", "x-latch-0000000002",
	                                     "leases"};
	struct queue queue = built(semaphore, LENGTH(semaphore));

	(void)state;
	assert_ptr_equal(queue.incompatible, semaphore[0]);
	assert_string_equal(queue.client, "Curator's InterProcessSemaphoreV2 or SemaphoreMutex");
	queue_finish(&queue);

	queue = built(semaphore, 2);
	assert_null(queue.incompatible);
	queue_finish(&queue);

	queue = built(leader, LENGTH(leader));
	assert_ptr_equal(queue.incompatible, leader[2]);
	assert_string_equal(queue.client, "Curator's LeaderLatch");
	queue_finish(&queue);
}

/* No order is known to clients of other projects where numbers repeat. */
static void strangers_in_the_zone(void **state)
{
	static const char *const names[] = {"_c_0123456789ab-lock-2147483647", "x-lock-2147483000"};
	static const char *const ours[] = {
		"_c_01234567-89ab-cdef-fedc-ba9876543210-a.1-lock-2147483647",
		"_c_01234567-89ab-cdef-fedc-ba9876543211-a.1-lock-2147483647"};
	struct queue queue = built(names, LENGTH(names));

	(void)state;
	assert_ptr_equal(queue.incompatible, names[1]);
	assert_true(queue.entries[0].incompatible && queue.entries[1].incompatible);
	assert_non_null(strstr(queue.client, "make the lock anew"));
	queue_finish(&queue);
	queue = built(ours, LENGTH(ours));
	assert_null(queue.incompatible);
	queue_finish(&queue);
}

static void other_families(void **state)
{
	static const char *const names[] = {
		"_c_01234567-89ab-cdef-fedc-ba9876543210-a.1__lock__0000000001",
		"x-lock-0000000002", "0123456789abcdeffedcba9876543210__lock__0000000003"};
	static const struct {
		const char *clients, *why;
		bool incompatible[3];
	} rows[] = {
		{"curator", "zklockfs with other clients=", {true, false, true}},
		{"kazoo", "Curator's or go-zookeeper's mutex", {false, true, false}},
		{"ruby", "zklockfs with other clients=", {true, true, true}},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct queue queue;

		assert_int_equal(queue_build(clients_find(rows[i].clients), names, 3, &queue), 0);
		assert_string_equal(queue.client, rows[i].why);
		for (size_t k = 0; k < 3; k++)
			expect(queue.entries[k].incompatible == rows[i].incompatible[k], "%s: %s",
			       rows[i].clients, names[k]);
		queue_finish(&queue);
	}
}

static void the_zone(void **state)
{
	static const struct {
		const char *name;
		bool in_zone;
	} rows[] = {
		{"x-0000000000", false},
		{"x-2147418111", false},
		{"x-2147418112", true},
		{"x-2147483647", true},
		{"x--2147483648", true},
		{"x-2147483648", true},
		{"x--1000000000", true},
		/* This is no entry. */
		{"x-214748364", false},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const char *const names[] = {"a-0000000001", rows[i].name, "b-0000000002"};
		struct queue queue = built(names, 3), alone = built(names + 1, 1);

		expect(queue.in_zone == rows[i].in_zone, "%s", rows[i].name);
		expect(alone.in_zone == rows[i].in_zone, "%s alone", rows[i].name);
		queue_finish(&queue);
		queue_finish(&alone);
	}
}

static void negative_numbers_come_first(void **state)
{
	static const char *const names[] = {"x-0000000000", "x--2147483647", "x--2147483648"};
	struct queue queue = built(names, 3);

	(void)state;
	assert_int_equal(queue.entries[0].name.number, INT32_MIN);
	assert_int_equal(queue.entries[1].name.number, -INT32_MAX);
	assert_int_equal(queue.entries[2].name.number, 0);
	queue_finish(&queue);
}

/* A stuck counter or a vandal makes equal numbers: all mounts see the same order. */
static void equal_numbers_have_one_order(void **state)
{
	static const char *const names[] = {"d-2147483647", "b-2147483647", "a-2147483647",
	                                    "c-2147483647"};
	const char *turned[4];

	(void)state;
	for (size_t shift = 0; shift < 4; shift++) {
		struct queue queue;

		for (size_t i = 0; i < 4; i++)
			turned[i] = names[(i + shift) % 4];
		queue = built(turned, 4);
		assert_int_equal(queue.count, 4);
		assert_true(queue.in_zone);
		for (size_t i = 0; i < 4; i++) {
			assert_int_equal(queue.entries[i].znode[0], "abcd"[i]);
			assert_int_equal(queue.entries[i].blocker, (ssize_t)i - 1);
		}
		queue_finish(&queue);
	}
}

#define MANY 10000

static void ten_thousand(void **state)
{
	char(*text)[80] = calloc(MANY, sizeof(*text));
	const char **names = calloc(MANY, sizeof(*names));
	struct queue queue;

	(void)state;
	assert_non_null(text);
	assert_non_null(names);
	/* 7919 is prime to 10,000: each number comes once, in a mixed order. */
	for (size_t i = 0; i < MANY; i++) {
		size_t number = i * 7919 % MANY;

		snprintf(text[i], sizeof(text[i]), OF_MOUNT "%s-%010zu",
		         number % 10 == 0 ? "lock" : "rlock", number);
		names[i] = text[i];
	}
	queue = built(names, MANY);
	assert_int_equal(queue.count, MANY);
	assert_false(queue.in_zone);
	for (size_t i = 0; i < MANY; i++) {
		ssize_t wanted = i == 0 ? -1 : i % 10 == 0 ? (ssize_t)i - 1 : (ssize_t)(i - i % 10);

		expect(queue.entries[i].name.number == (int64_t)i, "place %zu", i);
		expect(queue.entries[i].blocker == wanted, "entry %zu", i);
	}
	queue_finish(&queue);
	free(names);
	free(text);
}

/* The rule, word by word, and slow. */
static bool may_hold(const struct queue *queue, size_t i, unsigned slots)
{
	bool shared = queue->entries[i].name.mode == LC_SHARED;
	size_t before = 0;

	for (size_t k = 0; k < i; k++) {
		const struct entry_name *name = &queue->entries[k].name;

		if (shared && name->mode == LC_EXCLUSIVE)
			return false;
		if (!shared && (name->mode == LC_SHARED || !name->of_mount))
			return false;
		before++;
	}
	return shared || before < slots;
}

/* All queues of six entries, of three kinds, with up to four slots. */
static void slots(void **state)
{
	static const char *const kinds[] = {OF_MOUNT "lock-", OF_MOUNT "rlock-", "other-"};
	int queues = 0;

	(void)state;
	for (int code = 0; code < 729; code++)
		for (unsigned slots = 1; slots <= 4; slots++) {
			char text[6][80];
			const char *names[6];
			struct queue queue;
			bool waits = false;

			for (int i = 0, rest = code; i < 6; i++, rest /= 3) {
				snprintf(text[i], sizeof(text[i]), "%s%010d", kinds[rest % 3], i);
				names[i] = text[i];
			}
			queue = built(names, 6);
			queue_judge(&queue, slots);
			for (size_t i = 0; i < 6; i++) {
				bool may = may_hold(&queue, i, slots);

				expect((queue.entries[i].blocker < 0) == may,
				       "queue %d, %u slots, entry %zu", code, slots, i);
				expect(queue.entries[i].blocker < (ssize_t)i, "queue %d, entry %zu",
				       code, i);
				/* Behind an entry that waits, all wait. */
				expect(!(waits && may), "queue %d, %u slots: %zu passes", code,
				       slots, i);
				waits |= !may;
			}
			queue_finish(&queue);
			queues++;
		}
	assert_int_equal(queues, 729 * 4);
}

/* All entries behind an entry that fills no slot wait for it. */
static void behind_one_that_fills_no_slot(void **state)
{
	const char *const names[] = {OF_MOUNT "lock-0000000001", "other-0000000002",
	                             OF_MOUNT "lock-0000000003", OF_MOUNT "lock-0000000004"};
	struct queue queue = built(names, 4);

	(void)state;
	queue_judge(&queue, 4);
	assert_int_equal(queue.entries[0].blocker, -1);
	assert_int_equal(queue.entries[2].blocker, 1);
	assert_int_equal(queue.entries[3].blocker, 1);
	queue_finish(&queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing),
		cmocka_unit_test(ordered_by_number_only),
		cmocka_unit_test(blockers),
		cmocka_unit_test(other_clients_are_waited_for),
		cmocka_unit_test(who_does_not_wait_for_us),
		cmocka_unit_test(strangers_in_the_zone),
		cmocka_unit_test(other_families),
		cmocka_unit_test(the_zone),
		cmocka_unit_test(negative_numbers_come_first),
		cmocka_unit_test(equal_numbers_have_one_order),
		cmocka_unit_test(ten_thousand),
		cmocka_unit_test(slots),
		cmocka_unit_test(behind_one_that_fills_no_slot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
