/* SPDX-License-Identifier: MIT
 *
 * The data of locks: written and read back, and read as vandals may have left it.
 */
#include "pure/node_data.h"

#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool read_lock(const void *data, size_t len, struct lc_attributes *ret_attributes)
{
	void *copy = malloc(len ? len : 1);
	bool known;

	assert_non_null(copy);
	memcpy(copy, data, len);
	known = node_data_parse_lock(copy, len, ret_attributes);
	free(copy);
	return known;
}

static void lock_text(void **state)
{
	char data[NODE_DATA_LOCK_MAX];
	size_t len;
	struct lc_attributes attributes = {
		.uid = 1000,
		.gid = 100,
		.mode = 0755,
		.lock_file_mode = 0644,
	};

	(void)state;
	len = node_data_format_lock(data, &attributes);
	assert_int_equal(len, strlen(data));
	assert_string_equal(data,
	                    "zklockfs: 1\nuid: 1000\ngid: 100\nmode: 755\ndoor_mode: 644\n\n");
	/* Only the bits that belong to each mode are written. */
	attributes = (struct lc_attributes){
		.uid = UINT32_MAX - 1,
		.gid = UINT32_MAX - 1,
		.mode = 0107777,
		.lock_file_mode = 0107777,
	};
	len = node_data_format_lock(data, &attributes);
	assert_int_equal(len, strlen(data));
	assert_string_equal(data, "zklockfs: 1\nuid: 4294967294\ngid: 4294967294\nmode: 2777\n"
	                          "door_mode: 666\n\n");
}

/* The mount alone says which directories are sticky. */
static void bits_of_others(void **state)
{
	static const char text[] = "zklockfs: 1\nuid: 1\ngid: 2\nmode: 7777\ndoor_mode: 666\n\n";
	struct lc_attributes out;

	(void)state;
	assert_true(read_lock(text, sizeof(text) - 1, &out));
	assert_int_equal(out.mode, 02777);
}

static void lock_both_ways(void **state)
{
	static const struct lc_attributes rows[] = {
		{0, 0, 0, 0},
		{1000, 100, 0755, 0644},
		{1, 2, 02777, 0666},
		{65534, 65534, 0700, 0600},
		{UINT32_MAX - 1, UINT32_MAX - 1, 02775, 0664},
		{5, 6, 0, 0222},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		char data[NODE_DATA_LOCK_MAX];
		struct lc_attributes out;
		size_t len = node_data_format_lock(data, &rows[i]);

		assert_true(read_lock(data, len, &out));
		assert_int_equal(out.uid, rows[i].uid);
		assert_int_equal(out.gid, rows[i].gid);
		assert_int_equal(out.mode, rows[i].mode);
		assert_int_equal(out.lock_file_mode, rows[i].lock_file_mode);
		/* Text after the empty line is the value, and does no harm. */
		memcpy(data + len, "uid: x\n", 7);
		assert_true(read_lock(data, len + 7, &out));
		assert_int_equal(out.uid, rows[i].uid);
	}
}

#define MAGIC "zklockfs: 1\n"

static void locks_of_others(void **state)
{
	static const char *const rows[] = {
		"",
		"10.0.0.1",
		"zklockfs: 1",
		MAGIC,
		MAGIC "\nuid: 1\ngid: 2\nmode: 755\ndoor_mode: 644\n",
		"uid: 1\ngid: 2\nmode: 755\ndoor_mode: 644\n",
		"zklockfs: 2\nuid: 1\ngid: 2\nmode: 755\ndoor_mode: 644\n",
		"zklockfs: 11\nuid: 1\ngid: 2\nmode: 755\ndoor_mode: 644\n",
		" " MAGIC "uid: 1\ngid: 2\nmode: 755\ndoor_mode: 644\n",
		MAGIC "gid: 2\nmode: 755\ndoor_mode: 644\n",
		MAGIC "uid: 1\nmode: 755\ndoor_mode: 644\n",
		MAGIC "uid: 1\ngid: 2\ndoor_mode: 644\n",
		MAGIC "uid: 1\ngid: 2\nmode: 755\n",
		MAGIC "uid: 4294967295\ngid: 2\nmode: 755\ndoor_mode: 644\n",
		MAGIC "uid: 1\ngid: 4294967295\nmode: 755\ndoor_mode: 644\n",
		MAGIC "uid: 1\ngid: 2\nmode: 10000\ndoor_mode: 644\n",
		MAGIC "uid: 1\ngid: 2\nmode: 788\ndoor_mode: 644\n",
		MAGIC "uid: 1\ngid: 2\nmode: 755\ndoor_mode: 667\n",
		MAGIC "uid: 1\ngid: 2\nmode: 755\ndoor_mode: 1666\n",
		MAGIC "uid: 1\ngid: 2\nmode: -1\ndoor_mode: 644\n",
		MAGIC "uid: 1\ngid: 2\nmode: 99999999999999999999\ndoor_mode: 644\n",
		MAGIC "uid: x\nuid: 1\ngid: 2\nmode: 755\ndoor_mode: 644\n",
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct lc_attributes out, before;

		memset(&out, 0x55, sizeof(out));
		before = out;
		expect(!read_lock(rows[i], strlen(rows[i]), &out), "row %zu is a mount's lock", i);
		assert_memory_equal(&out, &before, sizeof(out));
	}
}

static void truncated_locks(void **state)
{
	char data[NODE_DATA_LOCK_MAX];
	struct lc_attributes attributes = {
		.uid = 1, .gid = 2, .mode = 0755, .lock_file_mode = 0644};
	struct lc_attributes out;
	size_t len = node_data_format_lock(data, &attributes);
	size_t last = (size_t)(strstr(data, "door_mode: ") - data) + strlen("door_mode: ");

	(void)state;
	for (size_t n = 0; n <= len; n++)
		expect(read_lock(data, n, &out) == (n > last), "%zu bytes", n);
}

/* ---- other parts of a lock's data ---- */

#define ATTRIBUTES "uid: 1\ngid: 2\nmode: 755\ndoor_mode: 644\n"

static void kinds(void **state)
{
	static char big[NODE_DATA_MAX + 1];

	(void)state;
	assert_false(node_data_is_foreign("", 0));
	assert_false(node_data_is_foreign(MAGIC, strlen(MAGIC)));
	assert_true(node_data_is_foreign(MAGIC, strlen(MAGIC) - 1));
	assert_true(node_data_is_foreign("10.0.0.1", 8));
	assert_true(node_data_is_foreign("\n", 1));
	memcpy(big, MAGIC, strlen(MAGIC));
	assert_false(node_data_is_foreign(big, sizeof(big) - 1));
	assert_true(node_data_is_foreign(big, sizeof(big)));
}

static void slots(void **state)
{
	static const struct {
		const char *data;
		unsigned slots;
	} rows[] = {
		{"", 1},
		{"slots: 5\n", 1},
		{MAGIC, 1},
		{MAGIC "slots: 5\n", 5},
		{MAGIC "slots: 5", 5},
		{MAGIC ATTRIBUTES "slots: 1\n\n", 1},
		{MAGIC ATTRIBUTES "slots: 10000\n\n", LC_SLOTS_MAX},
		/* a bad number of slots counts as 1 */
		{MAGIC ATTRIBUTES "slots: 10001\n\n", 1},
		{MAGIC "slots: 0\n", 1},
		{MAGIC "slots: -2\n", 1},
		{MAGIC "slots: \n", 1},
		{MAGIC "slots: 5x\n", 1},
		{MAGIC "slots:5\n", 1},
		{MAGIC "slots: 99999999999999999999\n", 1},
		/* the first of two counts */
		{MAGIC "slots: 3\nslots: 4\n", 3},
		{MAGIC "slots: x\nslots: 4\n", 1},
		/* lines of the value do not count */
		{MAGIC ATTRIBUTES "\nslots: 5\n", 1},
		{"zklockfs: 2\nslots: 5\n", 1},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		size_t len = strlen(rows[i].data);
		char *copy = malloc(len ? len : 1);
		unsigned out;

		assert_non_null(copy);
		memcpy(copy, rows[i].data, len);
		out = node_data_slots(copy, len);
		free(copy);
		expect(out == rows[i].slots, "row %zu: %u", i, out);
	}
}

static void values(void **state)
{
	static const struct {
		const char *data, *value;
	} rows[] = {
		{"", ""},
		{MAGIC, ""},
		{MAGIC "\n", ""},
		{MAGIC ATTRIBUTES, ""},
		{MAGIC "\nv42\n", "v42\n"},
		{MAGIC ATTRIBUTES "\nv42", "v42"},
		{MAGIC ATTRIBUTES "future: x\n\n\n\na\n", "\n\na\n"},
		/* another client's data is a value as a whole */
		{"10.0.0.1", "10.0.0.1"},
		{"\n\nx", "\n\nx"},
		{"zklockfs: 1", "zklockfs: 1"},
		{"zklockfs: 2\n\nx", "zklockfs: 2\n\nx"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const char *value;
		size_t len;

		node_data_value(rows[i].data, strlen(rows[i].data), &value, &len);
		expect(len == strlen(rows[i].value) && memcmp(value, rows[i].value, len) == 0,
		       "row %zu: '%.*s'", i, (int)len, value);
	}
}

/* Rewrites data in memory of exactly that size. Returns a static string. */
static const char *rewritten(const char *data, size_t data_len,
                             const struct lc_attributes *attributes, unsigned wanted_slots,
                             const char *value)
{
	static char text[1000];
	struct node_data_lock lock = {attributes, wanted_slots, value, strlen(value)};
	char *copy = malloc(data_len ? data_len : 1), *out;
	size_t len;

	assert_non_null(copy);
	memcpy(copy, data, data_len);
	assert_int_equal(node_data_rewrite_lock(copy, data_len, &lock, &out, &len), 0);
	free(copy);
	assert_true(len < sizeof(text));
	memcpy(text, out, len);
	text[len] = '\0';
	free(out);
	return text;
}

static void rewriting(void **state)
{
	static const struct lc_attributes attributes = {
		.uid = 7,
		.gid = 8,
		.mode = 02770,
		.lock_file_mode = 0660,
	};
	static const struct {
		const char *data;
		unsigned slots;
		const char *value, *wanted;
	} rows[] = {
#define WANTED MAGIC "uid: 7\ngid: 8\nmode: 2770\ndoor_mode: 660\n"
		{"", 1, "", WANTED "\n"},
		{"", 3, "v", WANTED "slots: 3\n\nv"},
		{MAGIC ATTRIBUTES "\n", 1, "", WANTED "\n"},
		{MAGIC ATTRIBUTES "slots: 9\n\nold", 1, "new", WANTED "\nnew"},
		{MAGIC ATTRIBUTES "slots: 9\n\n", 10000, "\nx\n", WANTED "slots: 10000\n\n\nx\n"},
		/* later versions' lines stay, in their order and as they are */
		{MAGIC "future: 1\n" ATTRIBUTES "uids: 5\nslots:4\n more\n\nold", 2, "",
	         WANTED "slots: 2\nfuture: 1\nuids: 5\nslots:4\n more\n\n"},
		{MAGIC "future: 1", 1, "v", WANTED "future: 1\n\nv"},
		/* repeated and bad lines of a mount are replaced by one good line each */
		{MAGIC "uid: x\nuid: 5\nslots: 2\nslots: 3\n", 1, "", WANTED "\n"},
		/* lines of the value are dropped with it */
		{MAGIC ATTRIBUTES "\nfuture: 1\n", 1, "v", WANTED "\nv"},
		{"other: 1\n\nx", 1, "", WANTED "\n"},
#undef WANTED
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const char *out = rewritten(rows[i].data, strlen(rows[i].data), &attributes,
		                            rows[i].slots, rows[i].value);
		struct lc_attributes back;
		const char *value;
		size_t len;

		expect(strcmp(out, rows[i].wanted) == 0, "row %zu: '%s'", i, out);
		assert_true(node_data_parse_lock(out, strlen(out), &back));
		assert_memory_equal(&back, &attributes, sizeof(back));
		assert_int_equal(node_data_slots(out, strlen(out)), rows[i].slots);
		node_data_value(out, strlen(out), &value, &len);
		assert_string_equal(value, rows[i].value);
	}
}

/* The owner and the modes stay as they are, or unknown. */
static void rewriting_without_attributes(void **state)
{
	static const struct {
		const char *data, *wanted;
	} rows[] = {
		{"", MAGIC "slots: 3\n\nv"},
		{MAGIC ATTRIBUTES "slots: 7\nfuture: 1\n\nold",
	         MAGIC "slots: 3\n" ATTRIBUTES "future: 1\n\nv"},
		{MAGIC "uid: 5\n", MAGIC "slots: 3\nuid: 5\n\nv"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const char *out = rewritten(rows[i].data, strlen(rows[i].data), NULL, 3, "v");

		expect(strcmp(out, rows[i].wanted) == 0, "row %zu: '%s'", i, out);
	}
}

static void longest_data(void **state)
{
	static char data[NODE_DATA_MAX], value[LC_VALUE_MAX];
	static const struct lc_attributes attributes = {.uid = 7};
	struct node_data_lock lock = {&attributes, 1, value, sizeof(value)};
	const char *back;
	char *out;
	size_t len, back_len, longest;

	(void)state;
	memset(data, 'x', sizeof(data));
	memcpy(data, MAGIC, strlen(MAGIC));
	for (size_t i = 0; i < sizeof(value); i++)
		value[i] = (char)i;
	assert_int_equal(node_data_rewrite_lock(data, 16 * 1024, &lock, &out, &len), -EFBIG);
	assert_int_equal(node_data_rewrite_lock(data, 15 * 1024, &lock, &out, &len), 0);
	assert_false(node_data_is_foreign(out, len));
	node_data_value(out, len, &back, &back_len);
	assert_int_equal(back_len, sizeof(value));
	assert_memory_equal(back, value, sizeof(value));
	free(out);
	/* To the byte. */
	longest = 15 * 1024 + NODE_DATA_MAX - len;
	assert_int_equal(node_data_rewrite_lock(data, longest, &lock, &out, &len), 0);
	assert_int_equal(len, NODE_DATA_MAX);
	free(out);
	assert_int_equal(node_data_rewrite_lock(data, longest + 1, &lock, &out, &len), -EFBIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lock_text),       cmocka_unit_test(bits_of_others),
		cmocka_unit_test(lock_both_ways),  cmocka_unit_test(locks_of_others),
		cmocka_unit_test(truncated_locks), cmocka_unit_test(kinds),
		cmocka_unit_test(slots),           cmocka_unit_test(values),
		cmocka_unit_test(rewriting),       cmocka_unit_test(rewriting_without_attributes),
		cmocka_unit_test(longest_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
