/* SPDX-License-Identifier: MIT
 *
 * The data of entries: written and read back, and read as vandals may have left it.
 */
#include "pure/node_data.h"

#include "unit.h"

#include <stdlib.h>
#include <string.h>

static const struct node_data_entry full = {
	.host = "web1",
	.pid = 4242,
	.uid = 1000,
	.command = "make",
	.held_since_ms = 1700000000123,
	.reason = "deploying v42",
};

static const char *formatted(const struct node_data_entry *entry)
{
	static char data[NODE_DATA_ENTRY_MAX];
	size_t len;

	memset(data, 'x', sizeof(data));
	len = node_data_format_entry(data, entry);
	assert_true(len < sizeof(data));
	assert_int_equal(strlen(data), len);
	return data;
}

/* Reads memory of exactly that size, so that a sanitizer sees a read beyond its end. */
static struct lc_entry_info *read_entry(const void *data, size_t len)
{
	static struct lc_entry_info info;
	void *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	memcpy(copy, data, len);
	memset(&info, 0x55, sizeof(info));
	node_data_parse_entry(copy, len, &info);
	free(copy);
	return &info;
}

static struct lc_entry_info *read_text(const char *text)
{
	return read_entry(text, strlen(text));
}

static void entry_text(void **state)
{
	struct node_data_entry entry = full;

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
	static const struct node_data_entry rows[] = {
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

/* The longest values fit, and come back whole. */
static void longest_entry(void **state)
{
	static char reason[LC_REASON_MAX + 2];
	struct node_data_entry entry = {
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
	struct node_data_entry entry = full;

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
		/* an empty line ends the record */
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

/* Data cut at every byte: a cut reason is shown as far as it goes, and nothing behind is read. */
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

/* ---- marked to go ---- */

static void timeouts(void **state)
{
	struct node_data_entry entry = full;
	const char *text;

	(void)state;
	text = formatted(&entry);
	assert_int_equal(node_data_timeout_ms(text, strlen(text)), 0);
	entry.timeout_ms = 15000;
	text = formatted(&entry);
	assert_int_equal(node_data_timeout_ms(text, strlen(text)), 15000);
	assert_int_equal(node_data_timeout_ms("session_timeout: x\n", 19), 0);
	assert_int_equal(node_data_timeout_ms("session_timeout: 3600001\n", 25), 0);
}

static void evicted(void **state)
{
	static const char by[] = "uid 0 pid 17 (sh) on web2";
	char data[NODE_DATA_ENTRY_MAX], who[NODE_DATA_BY_MAX + 1], long_by[2 * NODE_DATA_BY_MAX];
	const char *text = formatted(&full);
	struct lc_entry_info *info;
	size_t len;

	(void)state;
	assert_false(node_data_is_evicted(text, strlen(text), who));
	assert_false(node_data_is_evicted("", 0, NULL));
	len = node_data_format_evicted(data, text, strlen(text), by);
	assert_true(node_data_is_evicted(data, len, who));
	assert_true(node_data_is_evicted(data, len, NULL));
	assert_string_equal(who, by);
	/* all else stays */
	info = read_entry(data, len);
	assert_int_equal(info->uid, full.uid);
	assert_string_equal(info->command, full.command);
	assert_string_equal(info->reason, full.reason);
	/* whatever stood there: no data, a leading empty line, far too much */
	len = node_data_format_evicted(data, "", 0, "x\ny");
	assert_true(node_data_is_evicted(data, len, who));
	assert_string_equal(who, "x");
	len = node_data_format_evicted(data, "\n\nreason: x", 11, "");
	assert_true(node_data_is_evicted(data, len, who));
	assert_string_equal(who, "");
	memset(long_by, 'b', sizeof(long_by) - 1);
	long_by[sizeof(long_by) - 1] = '\0';
	len = node_data_format_evicted(data, long_by, 0, long_by);
	assert_true(node_data_is_evicted(data, len, who));
	assert_int_equal(strlen(who), NODE_DATA_BY_MAX);
	{
		static char big[100000];

		assert_int_equal(node_data_format_evicted(data, big, sizeof(big), by),
		                 sizeof(data));
		assert_true(node_data_is_evicted(data, sizeof(data), who));
	}
}

/* A taker cannot mark itself by its command or reason. */
static void nobody_forges_a_mark(void **state)
{
	struct node_data_entry entry = full;
	const char *text;

	(void)state;
	entry.command = entry.reason = "x\nevict: me\n\n";
	text = formatted(&entry);
	assert_false(node_data_is_evicted(text, strlen(text), NULL));
}

/* ---- lines ---- */

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
	         "\xe2\x80\xa7?????????"},
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
		node_data_copy_line(text, rows[i].size, rows[i].text, rows[i].len);
		assert_string_equal(text, rows[i].copy);
		for (size_t k = rows[i].size; k < sizeof(text); k++)
			assert_int_equal(text[k], 'x');
	}
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
		cmocka_unit_test(timeouts),
		cmocka_unit_test(evicted),
		cmocka_unit_test(nobody_forges_a_mark),
		cmocka_unit_test(lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
