/* SPDX-License-Identifier: MIT
 *
 * What stands in the data of nodes: written and read back, and read as vandals
 * may have left it.
 */
#include "record.h"

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct record_entry full = {
	.host = "web1",
	.pid = 4242,
	.uid = 1000,
	.command = "make",
	.held_since_ms = 1700000000123,
	.reason = "deploying v42",
};

static const char *formatted(const struct record_entry *entry)
{
	static char data[RECORD_ENTRY_MAX];
	size_t len;

	memset(data, 'x', sizeof(data));
	len = record_format_entry(data, entry);
	assert_true(len < sizeof(data));
	assert_int_equal(strlen(data), len);
	return data;
}

/* From memory of exactly that size, so that a sanitizer sees one byte too many. */
static struct lc_entry_info *read_entry(const void *data, size_t len)
{
	static struct lc_entry_info info;
	void *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	memcpy(copy, data, len);
	memset(&info, 0x55, sizeof(info));
	record_parse_entry(copy, len, &info);
	free(copy);
	return &info;
}

static struct lc_entry_info *read_text(const char *text)
{
	return read_entry(text, strlen(text));
}

static bool read_lock(const void *data, size_t len, struct lc_attributes *ret_attributes)
{
	void *copy = malloc(len ? len : 1);
	bool known;

	assert_non_null(copy);
	memcpy(copy, data, len);
	known = record_parse_lock(copy, len, ret_attributes);
	free(copy);
	return known;
}

static void entry_text(void **state)
{
	struct record_entry entry = full;

	(void)state;
	assert_string_equal(formatted(&entry),
	                    "host: web1\npid: 4242\nuid: 1000\ncommand: make\n"
	                    "held_since: 1700000000123\nreason: deploying v42\n");
	entry.held_since_ms = -1;
	assert_string_equal(formatted(&entry), "host: web1\npid: 4242\nuid: 1000\ncommand: make\n"
	                                       "reason: deploying v42\n");
	entry.reason = NULL;
	assert_string_equal(formatted(&entry), "host: web1\npid: 4242\nuid: 1000\ncommand: make\n");
	entry.timeout_ms = 15000;
	assert_string_equal(formatted(&entry), "host: web1\npid: 4242\nuid: 1000\ncommand: make\n"
	                                       "session_timeout: 15000\n");
	entry.timeout_ms = 0;
	entry.reason = entry.command = "";
	entry.uid = -1;
	entry.pid = 0;
	assert_string_equal(formatted(&entry), "host: web1\npid: 0\nuid: -1\ncommand: \n");
	entry.command = NULL;
	assert_string_equal(formatted(&entry), "host: web1\npid: 0\nuid: -1\ncommand: \n");
}

static void entry_both_ways(void **state)
{
	static const struct record_entry rows[] = {
		{.host = "web1",
	         .pid = 4242,
	         .uid = 1000,
	         .command = "make",
	         .held_since_ms = 5,
	         .reason = "deploying v42"},
		{.host = "h", .uid = 0, .command = "a: b", .held_since_ms = 0, .reason = "uid: 7"},
		{.host = "h",
	         .uid = UINT32_MAX - 1,
	         .command = "",
	         .held_since_ms = INT64_MAX,
	         .reason = ""},
		{.host = "h",
	         .uid = -1,
	         .command = "fifteen bytes x",
	         .held_since_ms = -1,
	         .reason = "  gr\xc3\xbc\xc3\x9f"
	                   "e  "},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const struct lc_entry_info *info = read_text(formatted(&rows[i]));

		assert_int_equal(info->uid, rows[i].uid);
		assert_int_equal(info->held_since_ms, rows[i].held_since_ms);
		assert_string_equal(info->command, rows[i].command);
		assert_string_equal(info->reason, rows[i].reason);
	}
}

/* The longest of everything fits, and comes back whole. */
static void longest_entry(void **state)
{
	static char reason[LC_REASON_MAX + 2];
	struct record_entry entry = {
		.host = "fifteen-bytes-x",
		.pid = INT32_MAX,
		.uid = UINT32_MAX - 1,
		.command = "fifteen bytes x",
		.timeout_ms = INT64_MAX,
		.held_since_ms = INT64_MAX,
		.reason = reason,
	};

	(void)state;
	memset(reason, 'r', LC_REASON_MAX);
	assert_string_equal(read_text(formatted(&entry))->reason, reason);
	entry.uid = INT64_MIN;
	entry.pid = INT32_MIN;
	formatted(&entry);
	/* A byte too much is cut, not written. */
	reason[LC_REASON_MAX] = 'x';
	assert_int_equal(strlen(read_text(formatted(&entry))->reason), LC_REASON_MAX);
}

/* Nobody can write a second line with a reason or a command. */
static void reasons_stay_in_their_line(void **state)
{
	static const struct {
		const char *given, *kept;
	} rows[] = {
		{"v42\n", "v42"},
		{"v42\nuid: 0", "v42"},
		{"\nuid: 0", ""},
		{"a\tb\rc", "a?b?c"},
		{"\x1b[31mred\x7f", "?[31mred?"},
		{"\x01\x1f ", "?? "},
		{"\xc3\xbc\xff\xc2\x9b", "\xc3\xbc???"},
	};
	struct record_entry entry = full;

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const struct lc_entry_info *info;

		entry.reason = entry.command = rows[i].given;
		info = read_text(formatted(&entry));
		assert_string_equal(info->reason, rows[i].kept);
		assert_string_equal(info->command, rows[i].kept);
		assert_int_equal(info->uid, 1000);
	}
}

static void entries_of_others(void **state)
{
	static const struct {
		const char *data;
		int64_t uid, held_since_ms;
		const char *command, *reason;
	} rows[] = {
		{"", -1, -1, "", ""},
		{"\n", -1, -1, "", ""},
		{"10.0.0.1", -1, -1, "", ""},
		/* no newline at the end */
		{"uid: 7", 7, -1, "", ""},
		{"reason: x", -1, -1, "", "x"},
		/* order and unknown lines do not matter */
		{"reason: x\nfuture: y\nuid: 7\n", 7, -1, "", "x"},
		/* the first of two counts */
		{"uid: 7\nuid: 8\nreason: a\nreason: b\n", 7, -1, "", "a"},
		{"uid: x\nuid: 8\n", -1, -1, "", ""},
		/* an empty line ends it */
		{"uid: 7\n\nreason: x\n", 7, -1, "", ""},
		/* keys are whole, with a colon and one blank */
		{"xuid: 7\n", -1, -1, "", ""},
		{"uid:7\nuid : 7\nUID: 7\n uid: 7\nuid\nui", -1, -1, "", ""},
		{"uid: ", -1, -1, "", ""},
		{"uid: \n", -1, -1, "", ""},
		{"uid:  7\n", -1, -1, "", ""},
		{"command: \nreason: \n", -1, -1, "", ""},
		{"reason:  x \n", -1, -1, "", " x "},
		/* numbers */
		{"uid: 4294967294\n", 4294967294, -1, "", ""},
		{"uid: 4294967295\n", -1, -1, "", ""},
		{"uid: 4294967296\n", -1, -1, "", ""},
		{"uid: 99999999999999999999999999\n", -1, -1, "", ""},
		{"uid: 000000000000000000000000000007\n", 7, -1, "", ""},
		{"uid: -1\nheld_since: -5\n", -1, -1, "", ""},
		{"uid: +7\n", -1, -1, "", ""},
		{"uid: 7 \n", -1, -1, "", ""},
		{"uid: 7\r\n", -1, -1, "", ""},
		{"uid: 0x7\n", -1, -1, "", ""},
		{"uid: 7a\n", -1, -1, "", ""},
		{"uid: \xb2\n", -1, -1, "", ""},
		{"held_since: 9223372036854775807\n", -1, INT64_MAX, "", ""},
		{"held_since: 9223372036854775808\n", -1, -1, "", ""},
		{"held_since: 92233720368547758070\n", -1, -1, "", ""},
		{"held_since: 0\n", -1, 0, "", ""},
		/* text */
		{"command: sixteen bytes xy\n", -1, -1, "sixteen bytes x", ""},
		{"command: a\x01\x7f\tb\nreason: \x1b[2J\n", -1, -1, "a???b", "?[2J"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const struct lc_entry_info *info = read_text(rows[i].data);

		expect(info->uid == rows[i].uid, "row %zu: uid %lld", i, (long long)info->uid);
		expect(info->held_since_ms == rows[i].held_since_ms, "row %zu: held_since", i);
		expect(strcmp(info->command, rows[i].command) == 0, "row %zu: '%s'", i,
		       info->command);
		expect(strcmp(info->reason, rows[i].reason) == 0, "row %zu: '%s'", i, info->reason);
	}
}

static void binary_entries(void **state)
{
	static const char nul[] = "uid: 7\0\nreason: a\0b\ncommand: c\0";
	static const char only_nul[16];
	static char big[100000];
	const struct lc_entry_info *info;

	(void)state;
	info = read_entry(nul, sizeof(nul) - 1);
	assert_int_equal(info->uid, -1);
	assert_string_equal(info->reason, "a");
	assert_string_equal(info->command, "c");

	info = read_entry(only_nul, sizeof(only_nul));
	assert_int_equal(info->uid, -1);
	assert_string_equal(info->reason, "");

	memset(big, '\xff', sizeof(big));
	memcpy(big, "reason: ", 8);
	info = read_entry(big, sizeof(big));
	assert_int_equal(strlen(info->reason), LC_REASON_MAX);
	assert_int_equal(info->uid, -1);

	memset(big, '9', sizeof(big));
	memcpy(big, "uid: ", 5);
	assert_int_equal(read_entry(big, sizeof(big))->uid, -1);
}

/* Cut at every byte: only what is whole is believed, nothing behind is read. */
static void truncated_entries(void **state)
{
	const char *data = formatted(&full);
	size_t len = strlen(data), reason = (size_t)(strstr(data, "reason: ") - data) + 8;

	(void)state;
	for (size_t n = 0; n <= len; n++) {
		const struct lc_entry_info *info = read_entry(data, n);
		size_t wanted = n > reason ? n - reason : 0;

		if (wanted > strlen(full.reason))
			wanted = strlen(full.reason);
		expect(strlen(info->reason) == wanted &&
		               memcmp(info->reason, full.reason, wanted) == 0,
		       "%zu bytes: '%s'", n, info->reason);
	}
}

static void lock_text(void **state)
{
	char data[RECORD_LOCK_MAX];
	size_t len;
	struct lc_attributes attributes = {
		.uid = 1000,
		.gid = 100,
		.mode = 0755,
		.door_mode = 0644,
	};

	(void)state;
	len = record_format_lock(data, &attributes);
	assert_int_equal(len, strlen(data));
	assert_string_equal(data,
	                    "zklockfs: 1\nuid: 1000\ngid: 100\nmode: 755\ndoor_mode: 644\n\n");
	/* Only what belongs there is written. */
	attributes = (struct lc_attributes){
		.uid = UINT32_MAX - 1,
		.gid = UINT32_MAX - 1,
		.mode = 0107777,
		.door_mode = 0107777,
	};
	len = record_format_lock(data, &attributes);
	assert_int_equal(len, strlen(data));
	assert_string_equal(data, "zklockfs: 1\nuid: 4294967294\ngid: 4294967294\nmode: 7777\n"
	                          "door_mode: 666\n\n");
}

static void lock_both_ways(void **state)
{
	static const struct lc_attributes rows[] = {
		{0, 0, 0, 0},
		{1000, 100, 0755, 0644},
		{1, 2, 07777, 0666},
		{65534, 65534, 0700, 0600},
		{UINT32_MAX - 1, UINT32_MAX - 1, 02775, 0664},
		{5, 6, 0, 0222},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		char data[RECORD_LOCK_MAX];
		struct lc_attributes out;
		size_t len = record_format_lock(data, &rows[i]);

		assert_true(read_lock(data, len, &out));
		assert_int_equal(out.uid, rows[i].uid);
		assert_int_equal(out.gid, rows[i].gid);
		assert_int_equal(out.mode, rows[i].mode);
		assert_int_equal(out.door_mode, rows[i].door_mode);
		/* What later versions add after the empty line does no harm. */
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
	char data[RECORD_LOCK_MAX];
	struct lc_attributes attributes = {.uid = 1, .gid = 2, .mode = 0755, .door_mode = 0644};
	struct lc_attributes out;
	size_t len = record_format_lock(data, &attributes);
	size_t last = (size_t)(strstr(data, "door_mode: ") - data) + strlen("door_mode: ");

	(void)state;
	for (size_t n = 0; n <= len; n++)
		expect(read_lock(data, n, &out) == (n > last), "%zu bytes", n);
}

static void lines(void **state)
{
	static const struct {
		const char *text;
		size_t len, size;
		const char *copy;
	} rows[] = {
		{"abc", 3, 10, "abc"},
		{"abc", 2, 10, "ab"},
		{"abc", 0, 10, ""},
		{"abc", 3, 4, "abc"},
		{"abc", 3, 3, "ab"},
		{"abc", 3, 1, ""},
		{"a\nb", 3, 10, "a"},
		{"\n", 1, 10, ""},
		{"a\0b", 3, 10, "a"},
		{"\x01\x1f\x7f\t", 4, 10, "????"},
		{"\x80\xff\x9b ~", 5, 10, "??? ~"},
		{"\xc2\x80|\xc2\x9b|\xc2\x9f", 8, 10, "??|??|??"},
		{"\xc2\xa0|\xc3\xbc|\xdf\xbf", 8, 10, "\xc2\xa0|\xc3\xbc|\xdf\xbf"},
		{"\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa", 12, 16,
	         "\xe2\x80\xa7??????\xe2\x80\xaa"},
		{"\xf0\x9f\x9a\x80", 4, 10, "\xf0\x9f\x9a\x80"},
		{"\xf0\x9f\x9a\x80", 4, 4, "???"},
		{"\xf0\x9f\x9a\x80", 3, 10, "???"},
		{"\xc3", 1, 10, "?"},
		{"\xc3\n\xbc", 3, 10, "?"},
		{"\xc0\xaf|\xe0\x80\xaf", 6, 10, "??|???"},
		{"\xed\xa0\x80|\xf4\x90\x80\x80", 8, 10, "???|????"},
		{"\xf8\x88\x80\x80\x80", 5, 10, "?????"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		char text[16];

		memset(text, 'x', sizeof(text));
		record_copy_line(text, rows[i].size, rows[i].text, rows[i].len);
		assert_string_equal(text, rows[i].copy);
		for (size_t k = rows[i].size; k < sizeof(text); k++)
			assert_int_equal(text[k], 'x');
	}
}

/* ---- what else stands in a lock's data ---- */

#define ATTRIBUTES "uid: 1\ngid: 2\nmode: 755\ndoor_mode: 644\n"

static void kinds(void **state)
{
	static char big[RECORD_DATA_MAX + 1];

	(void)state;
	assert_int_equal(record_kind("", 0), RECORD_NONE);
	assert_int_equal(record_kind(MAGIC, strlen(MAGIC)), RECORD_OF_MOUNT);
	assert_int_equal(record_kind(MAGIC, strlen(MAGIC) - 1), RECORD_FOREIGN);
	assert_int_equal(record_kind("10.0.0.1", 8), RECORD_FOREIGN);
	assert_int_equal(record_kind("\n", 1), RECORD_FOREIGN);
	memcpy(big, MAGIC, strlen(MAGIC));
	assert_int_equal(record_kind(big, sizeof(big) - 1), RECORD_OF_MOUNT);
	assert_int_equal(record_kind(big, sizeof(big)), RECORD_FOREIGN);
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
		/* what is no number of slots is none: the lock excludes */
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
		/* the value is no head */
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
		out = record_slots(copy, len);
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

		record_value(rows[i].data, strlen(rows[i].data), &value, &len);
		expect(len == strlen(rows[i].value) && memcmp(value, rows[i].value, len) == 0,
		       "row %zu: '%.*s'", i, (int)len, value);
	}
}

/* From memory of exactly that size; as a string of static storage. */
static const char *rewritten(const char *data, size_t data_len,
                             const struct lc_attributes *attributes, unsigned wanted_slots,
                             const char *value)
{
	static char text[1000];
	struct record_lock lock = {attributes, wanted_slots, value, strlen(value)};
	char *copy = malloc(data_len ? data_len : 1), *out;
	size_t len;

	assert_non_null(copy);
	memcpy(copy, data, data_len);
	assert_int_equal(record_rewrite_lock(copy, data_len, &lock, &out, &len), 0);
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
		.door_mode = 0660,
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
		/* twice, incomplete, no numbers: a mount's stand there once */
		{MAGIC "uid: x\nuid: 5\nslots: 2\nslots: 3\n", 1, "", WANTED "\n"},
		/* what is in the value is no line */
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
		assert_true(record_parse_lock(out, strlen(out), &back));
		assert_memory_equal(&back, &attributes, sizeof(back));
		assert_int_equal(record_slots(out, strlen(out)), rows[i].slots);
		record_value(out, strlen(out), &value, &len);
		assert_string_equal(value, rows[i].value);
	}
}

/* Whose lock it is stays open, or as it is. */
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
	static char data[RECORD_DATA_MAX], value[LC_VALUE_MAX];
	static const struct lc_attributes attributes = {.uid = 7};
	struct record_lock lock = {&attributes, 1, value, sizeof(value)};
	const char *back;
	char *out;
	size_t len, back_len;

	(void)state;
	memset(data, 'x', sizeof(data));
	memcpy(data, MAGIC, strlen(MAGIC));
	for (size_t i = 0; i < sizeof(value); i++)
		value[i] = (char)i;
	assert_int_equal(record_rewrite_lock(data, 16 * 1024, &lock, &out, &len), -EFBIG);
	assert_int_equal(record_rewrite_lock(data, 15 * 1024, &lock, &out, &len), 0);
	assert_int_equal(record_kind(out, len), RECORD_OF_MOUNT);
	record_value(out, len, &back, &back_len);
	assert_int_equal(back_len, sizeof(value));
	assert_memory_equal(back, value, sizeof(value));
	free(out);
}

/* ---- marked to go ---- */

static void timeouts(void **state)
{
	struct record_entry entry = full;
	const char *text;

	(void)state;
	text = formatted(&entry);
	assert_int_equal(record_timeout_ms(text, strlen(text)), 0);
	entry.timeout_ms = 15000;
	text = formatted(&entry);
	assert_int_equal(record_timeout_ms(text, strlen(text)), 15000);
	assert_int_equal(record_timeout_ms("session_timeout: x\n", 19), 0);
	assert_int_equal(record_timeout_ms("session_timeout: 3600001\n", 25), 0);
}

static void evicted(void **state)
{
	static const char by[] = "uid 0 pid 17 (sh) on web2";
	char data[RECORD_ENTRY_MAX], who[RECORD_BY_MAX + 1], long_by[2 * RECORD_BY_MAX];
	const char *text = formatted(&full);
	struct lc_entry_info *info;
	size_t len;

	(void)state;
	assert_false(record_is_evicted(text, strlen(text), who));
	assert_false(record_is_evicted("", 0, NULL));
	len = record_format_evicted(data, text, strlen(text), by);
	assert_true(record_is_evicted(data, len, who));
	assert_true(record_is_evicted(data, len, NULL));
	assert_string_equal(who, by);
	/* all else stays */
	info = read_entry(data, len);
	assert_int_equal(info->uid, full.uid);
	assert_string_equal(info->command, full.command);
	assert_string_equal(info->reason, full.reason);
	/* whatever stood there: no data, a leading empty line, far too much */
	len = record_format_evicted(data, "", 0, "x\ny");
	assert_true(record_is_evicted(data, len, who));
	assert_string_equal(who, "x");
	len = record_format_evicted(data, "\n\nreason: x", 11, "");
	assert_true(record_is_evicted(data, len, who));
	assert_string_equal(who, "");
	memset(long_by, 'b', sizeof(long_by) - 1);
	long_by[sizeof(long_by) - 1] = '\0';
	len = record_format_evicted(data, long_by, 0, long_by);
	assert_true(record_is_evicted(data, len, who));
	assert_int_equal(strlen(who), RECORD_BY_MAX);
	{
		static char big[100000];

		assert_int_equal(record_format_evicted(data, big, sizeof(big), by), sizeof(data));
		assert_true(record_is_evicted(data, sizeof(data), who));
	}
}

/* A taker cannot mark itself, nor hide the mark, by what it writes. */
static void nobody_forges_a_mark(void **state)
{
	struct record_entry entry = full;
	const char *text;

	(void)state;
	entry.command = entry.reason = "x\nevict: me\n\n";
	text = formatted(&entry);
	assert_false(record_is_evicted(text, strlen(text), NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entry_text),
		cmocka_unit_test(entry_both_ways),
		cmocka_unit_test(longest_entry),
		cmocka_unit_test(reasons_stay_in_their_line),
		cmocka_unit_test(entries_of_others),
		cmocka_unit_test(binary_entries),
		cmocka_unit_test(truncated_entries),
		cmocka_unit_test(lock_text),
		cmocka_unit_test(lock_both_ways),
		cmocka_unit_test(locks_of_others),
		cmocka_unit_test(truncated_locks),
		cmocka_unit_test(kinds),
		cmocka_unit_test(slots),
		cmocka_unit_test(values),
		cmocka_unit_test(rewriting),
		cmocka_unit_test(rewriting_without_attributes),
		cmocka_unit_test(longest_data),
		cmocka_unit_test(timeouts),
		cmocka_unit_test(evicted),
		cmocka_unit_test(nobody_forges_a_mark),
		cmocka_unit_test(lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
