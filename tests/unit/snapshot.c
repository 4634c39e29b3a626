/* SPDX-License-Identifier: MIT
 *
 * The snapshot of a queue: the names of its files, and finding an entry by its name.
 */
#include "tree/snapshot.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void names(void **state)
{
	static const struct {
		struct lc_entry entry;
		const char *name;
	} rows[] = {
		{{.number = 42,
	          .mode = LC_EXCLUSIVE,
	          .of_mount = true,
	          .host = "web1",
	          .pid = 4242},
	         "0000000042-exclusive-4242-web1"},
		{{.number = 43, .mode = LC_SHARED, .of_mount = true, .host = "web-2", .pid = 991},
	         "0000000043-shared-991-web-2"},
		{{.number = 0, .mode = LC_EXCLUSIVE, .of_mount = true, .host = "h", .pid = 0},
	         "0000000000-exclusive-0-h"},
		{{.number = INT32_MAX,
	          .mode = LC_EXCLUSIVE,
	          .of_mount = true,
	          .host = "fifteen-bytes-x",
	          .pid = INT32_MAX},
	         "2147483647-exclusive-2147483647-fifteen-bytes-x"},
		{{.number = 44, .mode = LC_EXCLUSIVE, .host = "-"}, "0000000044-exclusive-foreign"},
		{{.number = 45, .mode = LC_SHARED, .host = "-"}, "0000000045-shared-foreign"},
		{{.number = INT32_MIN, .mode = LC_EXCLUSIVE, .host = "-"},
	         "-2147483648-exclusive-foreign"},
		{{.number = 46, .repeat = 1, .mode = LC_EXCLUSIVE, .host = "-"},
	         "0000000046-exclusive-foreign.1"},
		{{.number = 46,
	          .repeat = 12,
	          .mode = LC_SHARED,
	          .of_mount = true,
	          .host = "web1",
	          .pid = 7},
	         "0000000046-shared-7-web1.12"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		char name[QUEUE_NAME_MAX + 1];

		snapshot_name(name, &rows[i].entry);
		assert_string_equal(name, rows[i].name);
	}
}

/* Whatever the numbers are, the name stays in its buffer. */
static void longest_name(void **state)
{
	struct lc_entry entry = {.number = INT64_MIN,
	                         .repeat = UINT32_MAX,
	                         .mode = LC_EXCLUSIVE,
	                         .of_mount = true,
	                         .host = "fifteen-bytes-x",
	                         .pid = INT32_MAX};
	char name[QUEUE_NAME_MAX + 1];

	(void)state;
	snapshot_name(name, &entry);
	assert_int_equal(strlen(name), QUEUE_NAME_MAX);
	assert_non_null(strstr(name, "-fifteen-bytes-x.4294967295"));
}

static struct lc_entry queue[] = {
	{.znode = "a__lock__-0000000001",
         .number = 1,
         .mode = LC_EXCLUSIVE,
         .host = "-",
         .held = true},
	{.znode = "_c_x-lock-0000000005",
         .number = 5,
         .mode = LC_EXCLUSIVE,
         .of_mount = true,
         .host = "web1",
         .pid = 42},
	{.znode = "_c_y-rlock-0000000006",
         .number = 6,
         .mode = LC_SHARED,
         .of_mount = true,
         .host = "web2",
         .pid = 43},
	{.znode = "x-0000000900", .number = 900, .mode = LC_EXCLUSIVE, .host = "-"},
	{.znode = "y-2147483647", .number = INT32_MAX, .mode = LC_EXCLUSIVE, .host = "-"},
};

static struct snapshot *take(struct lc_entry *entries, size_t count, int64_t now_us)
{
	struct lc_listing listing = {.entries = entries, .entry_count = count};
	struct snapshot *snapshot = snapshot_take(&listing, now_us);

	assert_non_null(snapshot);
	return snapshot;
}

static void finding(void **state)
{
	static const char *const wanted[] = {
		"0000000001-exclusive-foreign", "0000000005-exclusive-42-web1",
		"0000000006-shared-43-web2",    "0000000900-exclusive-foreign",
		"2147483647-exclusive-foreign",
	};
	struct snapshot *snapshot = take(queue, LENGTH(queue), 0);

	(void)state;
	for (size_t i = 0; i < LENGTH(wanted); i++) {
		const struct lc_entry *entry = snapshot_find(snapshot, wanted[i]);

		expect(entry != NULL, "%s is not found", wanted[i]);
		assert_string_equal(entry->znode, queue[i].znode);
		assert_int_equal(entry->number, queue[i].number);
		assert_int_equal(entry->mode, queue[i].mode);
		assert_int_equal(entry->held, queue[i].held);
		assert_int_equal(entry->pid, queue[i].pid);
	}
	snapshot_free(snapshot);
}

/* Only the whole name is the name: another pid under the number is another file. */
static void not_finding(void **state)
{
	static const char *const others[] = {
		"",
		"x",
		"-",
		"5",
		"0000000005",
		"0000000005-",
		"0000000005-exclusive",
		"5-exclusive-42-web1",
		"00000000005-exclusive-42-web1",
		" 0000000005-exclusive-42-web1",
		"0000000005-exclusive-42-web1 ",
		"0000000005-exclusive-42-web",
		"0000000005-exclusive-42-web2",
		"0000000005-exclusive-43-web1",
		"0000000005-shared-42-web1",
		"0000000005-exclusive-foreign",
		"0000000006-exclusive-42-web1",
		"0000000001-shared-foreign",
		"0000000002-exclusive-foreign",
		"-000000001-exclusive-foreign",
		"99999999999999999999-exclusive-foreign",
		"-99999999999999999999-exclusive-foreign",
		"_c_x-lock-0000000005",
	};
	struct snapshot *snapshot = take(queue, LENGTH(queue), 0);

	(void)state;
	for (size_t i = 0; i < LENGTH(others); i++)
		expect(!snapshot_find(snapshot, others[i]), "'%s' is found", others[i]);
	snapshot_free(snapshot);
}

static void finding_in_an_empty_queue(void **state)
{
	struct snapshot *snapshot = take(NULL, 0, 0);

	(void)state;
	assert_null(snapshot_find(snapshot, "0000000001-exclusive-foreign"));
	assert_null(snapshot_find(snapshot, ""));
	snapshot_free(snapshot);
	snapshot_free(NULL);
}

/* Other clients can make a node with a number that is there already. All names that ls shows can be
 * looked up all the same. */
static void finding_among_equal_numbers(void **state)
{
	static struct lc_entry twins[] = {
		{.znode = "x-0000000004", .number = 4, .mode = LC_EXCLUSIVE, .host = "-"},
		{.znode = "a-0000000005", .number = 5, .mode = LC_EXCLUSIVE, .host = "-"},
		{.znode = "b-0000000005",
	         .number = 5,
	         .repeat = 1,
	         .mode = LC_EXCLUSIVE,
	         .of_mount = true,
	         .host = "web1",
	         .pid = 42},
		{.znode = "c-0000000005",
	         .number = 5,
	         .repeat = 2,
	         .mode = LC_EXCLUSIVE,
	         .host = "-"},
		{.znode = "d-rlock-0000000005",
	         .number = 5,
	         .repeat = 3,
	         .mode = LC_SHARED,
	         .host = "-"},
		{.znode = "e-0000000005",
	         .number = 5,
	         .repeat = 4,
	         .mode = LC_EXCLUSIVE,
	         .host = "-"},
		{.znode = "x-0000000006", .number = 6, .mode = LC_EXCLUSIVE, .host = "-"},
	};
	struct snapshot *snapshot = take(twins, LENGTH(twins), 0);

	(void)state;
	for (size_t i = 0; i < LENGTH(twins); i++) {
		char name[QUEUE_NAME_MAX + 1];
		const struct lc_entry *entry;

		snapshot_name(name, &twins[i]);
		entry = snapshot_find(snapshot, name);
		expect(entry != NULL, "%s is not found", name);
		assert_string_equal(entry->znode, twins[i].znode);
	}
	assert_null(snapshot_find(snapshot, "0000000005-exclusive-foreign.1"));
	assert_null(snapshot_find(snapshot, "0000000005-exclusive-foreign.5"));
	snapshot_free(snapshot);
}

/* The listing is gone when its callback returns. */
static void nothing_of_the_listing_is_kept(void **state)
{
	char *znode = strdup("x-0000000001");
	struct lc_entry *entry = malloc(sizeof(*entry));
	struct snapshot *snapshot;

	(void)state;
	assert_non_null(znode);
	assert_non_null(entry);
	*entry = (struct lc_entry){.znode = znode, .number = 1, .host = "-"};
	snapshot = take(entry, 1, 0);
	memset(znode, 'z', strlen(znode));
	free(znode);
	memset(entry, 0xff, sizeof(*entry));
	free(entry);
	assert_string_equal(snapshot_find(snapshot, "0000000001-exclusive-foreign")->znode,
	                    "x-0000000001");
	snapshot_free(snapshot);
}

static void freshness(void **state)
{
	const int64_t taken = 5000000007;
	struct snapshot *snapshot = take(queue, LENGTH(queue), taken);

	(void)state;
	assert_true(snapshot_fresh(snapshot, taken));
	assert_true(snapshot_fresh(snapshot, taken + 999999));
	assert_false(snapshot_fresh(snapshot, taken + 1000000));
	assert_false(snapshot_fresh(snapshot, taken + 3600000000));
	assert_false(snapshot_fresh(NULL, taken));
	snapshot_free(snapshot);
}

#define MANY 10000

static void ten_thousand(void **state)
{
	struct lc_entry *entries = calloc(MANY, sizeof(*entries));
	struct snapshot *snapshot;

	(void)state;
	assert_non_null(entries);
	for (int i = 0; i < MANY; i++)
		entries[i] = (struct lc_entry){
			.znode = "x",
			.number = 3 * i,
			.of_mount = true,
			.host = "h",
			.pid = i,
		};
	snapshot = take(entries, MANY, 0);
	for (int i = 0; i < MANY; i++) {
		char name[QUEUE_NAME_MAX + 1];

		snapshot_name(name, &entries[i]);
		assert_int_equal(snapshot_find(snapshot, name)->pid, i);
	}
	snapshot_free(snapshot);
	free(entries);
}

/* ---- reading ahead ---- */

static struct snapshot *take_many(struct lc_entry *ret_entries)
{
	for (int i = 0; i < MANY; i++)
		ret_entries[i] = (struct lc_entry){
			.znode = "x",
			.number = i,
			.of_mount = true,
			.host = "h",
			.pid = i,
			.held = i < 3,
		};
	return take(ret_entries, MANY, 0);
}

static const struct lc_entry *find(const struct snapshot *snapshot, const struct lc_entry *entry)
{
	char name[QUEUE_NAME_MAX + 1];

	snapshot_name(name, entry);
	return snapshot_find(snapshot, name);
}

#define ASKED_US 5000000

static void learn(struct snapshot *snapshot, const struct lc_entry *entry, int64_t uid)
{
	static struct lc_entry_info info = {.reason = "why"};

	info.entry = *entry;
	info.uid = uid;
	info.queued_since_ms = 1000 + uid;
	info.held_since_ms = uid == 2 ? -1 : 5000 + uid; /* of a short hold it is not known */
	snapshot_learn(snapshot, &info, ASKED_US);
}

/* In order, as `ls -l` asks: few readings for all, and each entry in one of them only. */
static void one_after_the_other(void **state)
{
	static struct lc_entry entries[MANY];
	struct snapshot *snapshot = take_many(entries);
	unsigned readings = 0;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		const struct lc_entry *entry = find(snapshot, &entries[i]);
		const struct entry_facts *facts = snapshot_facts(snapshot, entry);

		if (!facts) {
			size_t count = snapshot_ahead(snapshot, entry);

			assert_in_range(count, 1, SNAPSHOT_AHEAD);
			assert_true((size_t)i + count <= MANY);
			for (size_t k = 0; k < count; k++) {
				assert_null(snapshot_facts(snapshot, entry + k));
				learn(snapshot, entry + k, i + (int)k);
			}
			readings++;
			facts = snapshot_facts(snapshot, entry);
		}
		assert_non_null(facts);
		assert_int_equal(facts->uid, i);
		assert_int_equal(facts->since_ms, (i < 2 ? 5000 : 1000) + i);
		assert_true(facts->of_mount);
		assert_int_equal(facts->held, i < 3);
	}
	assert_in_range(readings, MANY / SNAPSHOT_AHEAD, MANY / SNAPSHOT_AHEAD + 10);
	snapshot_free(snapshot);
}

/* Entries are asked for here and there: no other entries are read. */
static void here_and_there(void **state)
{
	static struct lc_entry entries[MANY];
	struct snapshot *snapshot = take_many(entries);

	(void)state;
	for (int i = MANY - 1; i > 0; i -= 2)
		assert_int_equal(snapshot_ahead(snapshot, find(snapshot, &entries[i])), 1);
	/* Reading ahead ends before an entry that is known already. */
	learn(snapshot, find(snapshot, &entries[107]), 7);
	assert_int_equal(snapshot_ahead(snapshot, find(snapshot, &entries[100])), 1);
	assert_int_equal(snapshot_ahead(snapshot, find(snapshot, &entries[101])), 2);
	assert_int_equal(snapshot_ahead(snapshot, find(snapshot, &entries[103])), 4);
	assert_int_equal(snapshot_ahead(snapshot, find(snapshot, &entries[108])), 1);
	snapshot_free(snapshot);
}

static const struct lc_entry_info *info_at(const struct snapshot *snapshot,
                                           const struct lc_entry *entry, int64_t now_us)
{
	char name[QUEUE_NAME_MAX + 1];

	snapshot_name(name, entry);
	return snapshot_info(snapshot, name, now_us);
}

static void tell(struct snapshot *snapshot, const struct lc_entry *entry)
{
	char name[QUEUE_NAME_MAX + 1];

	snapshot_name(name, entry);
	snapshot_told(snapshot, name);
}

/* What was read ahead is told to one open, soon. The next reading forgets it. */
static void for_who_opens(void **state)
{
	static struct lc_entry entries[MANY];
	struct snapshot *snapshot = take_many(entries);

	(void)state;
	for (int i = 0; i < 2; i++) {
		size_t count = snapshot_ahead(snapshot, find(snapshot, &entries[i]));

		for (size_t k = 0; k < count; k++)
			learn(snapshot, find(snapshot, &entries[(size_t)i + k]), i + (int)k);
	}
	assert_null(info_at(snapshot, &entries[0], ASKED_US)); /* of the reading before */
	assert_null(info_at(snapshot, &entries[1], ASKED_US + SNAPSHOT_OPEN_US));
	assert_int_equal(info_at(snapshot, &entries[2], ASKED_US + SNAPSHOT_OPEN_US - 1)->uid, 2);
	assert_string_equal(info_at(snapshot, &entries[1], ASKED_US)->reason, "why");
	assert_string_equal(info_at(snapshot, &entries[1], ASKED_US)->entry.znode, "x");
	tell(snapshot, &entries[1]);
	assert_null(info_at(snapshot, &entries[1], ASKED_US));
	assert_non_null(snapshot_facts(snapshot, find(snapshot, &entries[1])));
	assert_non_null(info_at(snapshot, &entries[2], ASKED_US));
	/* An answer that is not of the last reading is not kept. */
	learn(snapshot, find(snapshot, &entries[0]), 0);
	assert_null(info_at(snapshot, &entries[0], ASKED_US));
	learn(snapshot, find(snapshot, &entries[3]), 3);
	assert_null(info_at(snapshot, &entries[3], ASKED_US));
	snapshot_free(snapshot);
}

/* Thousands of long reasons would fill the memory. */
static void without_long_reasons(void **state)
{
	static struct lc_entry entries[MANY];
	static struct lc_entry_info info;
	struct snapshot *snapshot = take_many(entries);

	(void)state;
	assert_int_equal(snapshot_ahead(snapshot, find(snapshot, &entries[0])), 1);
	info.entry = entries[0];
	memset(info.reason, 'r', SNAPSHOT_REASON_MAX);
	snapshot_learn(snapshot, &info, ASKED_US);
	assert_string_equal(info_at(snapshot, &entries[0], ASKED_US)->reason, info.reason);
	info.reason[SNAPSHOT_REASON_MAX] = 'r';
	snapshot_learn(snapshot, &info, ASKED_US);
	assert_null(info_at(snapshot, &entries[0], ASKED_US));
	assert_non_null(snapshot_facts(snapshot, find(snapshot, &entries[0])));
	snapshot_free(snapshot);
}

/* Answers for entries of an older snapshot are not taken. */
static void others_are_not_learnt(void **state)
{
	static struct lc_entry entries[MANY];
	struct snapshot *snapshot = take_many(entries);
	struct lc_entry gone = entries[5], other = entries[6];

	(void)state;
	gone.pid = 4711;
	learn(snapshot, &gone, 1);
	other.znode = "y";
	learn(snapshot, &other, 1);
	assert_null(snapshot_facts(snapshot, find(snapshot, &entries[5])));
	assert_null(snapshot_facts(snapshot, find(snapshot, &entries[6])));
	snapshot_free(snapshot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(longest_name),
		cmocka_unit_test(finding),
		cmocka_unit_test(not_finding),
		cmocka_unit_test(finding_in_an_empty_queue),
		cmocka_unit_test(finding_among_equal_numbers),
		cmocka_unit_test(nothing_of_the_listing_is_kept),
		cmocka_unit_test(freshness),
		cmocka_unit_test(ten_thousand),
		cmocka_unit_test(one_after_the_other),
		cmocka_unit_test(here_and_there),
		cmocka_unit_test(for_who_opens),
		cmocka_unit_test(without_long_reasons),
		cmocka_unit_test(others_are_not_learnt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
