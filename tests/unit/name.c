/* SPDX-License-Identifier: MIT
 *
 * Names: our entries both ways, other clients' entries, and the names that a lock may have.
 */
#include "pure/name.h"

#include "unit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SESSION UINT64_C(0x0123456789abcdef)
#define TAKER UINT64_C(0xfedcba9876543210)
#define UUID "01234567-89ab-cdef-fedc-ba9876543210"

static struct entry_name parsed(const char *name)
{
	struct entry_name out;

	memset(&out, 0xaa, sizeof(out));
	expect(name_parse(name, &out), "%s is no entry", name);
	return out;
}

static void our_prefix(void **state)
{
	static const struct {
		const char *host;
		pid_t pid;
		enum lc_mode mode;
		const char *prefix;
	} rows[] = {
		{"web1", 4242, LC_EXCLUSIVE, "_c_" UUID "-web1.4242-lock-"},
		{"web1", 4242, LC_SHARED, "_c_" UUID "-web1.4242-rlock-"},
		{"a-b_c", 0, LC_EXCLUSIVE, "_c_" UUID "-a-b_c.0-lock-"},
		{"fifteen-bytes-x", INT32_MAX, LC_SHARED,
	         "_c_" UUID "-fifteen-bytes-x.2147483647-rlock-"},
		/* Never longer than the name that limits on entry bytes assume. */
		{"sixteen-bytes-xy", 1, LC_EXCLUSIVE, "_c_" UUID "-sixteen-bytes-x.1-lock-"},
	};
	char prefix[NAME_PREFIX_MAX];

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		name_format(prefix, &clients_all[0], SESSION, TAKER, rows[i].host, rows[i].pid,
		            rows[i].mode);
		assert_string_equal(prefix, rows[i].prefix);
	}
	/* The longest prefix fills the buffer; a whole name is short enough for 10,000 waiters. */
	name_format(prefix, clients_find("kazoo"), 0, UINT64_MAX, "fifteen-bytes-x", INT32_MAX,
	            LC_SHARED);
	assert_int_equal(strlen(prefix), NAME_PREFIX_MAX - 1);
	assert_true(strlen(prefix) + 10 <= 90);
}

static void both_ways(void **state)
{
	static const uint64_t halves[] = {0, 1, SESSION, TAKER, UINT64_MAX, UINT64_C(1) << 63};
	static const char *const hosts[] = {"a", "web1",           "0", "1_2", "x-lock-",
	                                    "-", "fifteen-bytes-x"};
	static const pid_t pids[] = {0, 1, 4242, INT32_MAX};
	static const int64_t numbers[] = {0, 42, NAME_NUMBER_ZONE, INT32_MAX};

	(void)state;
	for (size_t i = 0; i < 2 * 6 * 7 * 4 * 4; i++) {
		enum lc_mode mode = i % 2 ? LC_SHARED : LC_EXCLUSIVE;
		const struct clients *clients = &clients_all[i / 7 % CLIENTS_COUNT];
		uint64_t session = halves[i / 2 % 6], taker = halves[(i / 2 + 1) % 6];
		const char *host = hosts[i / 12 % 7];
		pid_t pid = pids[i / 84 % 4];
		int64_t number = numbers[i / 336 % 4];
		char prefix[NAME_PREFIX_MAX], name[NAME_PREFIX_MAX + 10];
		struct entry_name out;

		name_format(prefix, clients, session, taker, host, pid, mode);
		snprintf(name, sizeof(name), "%s%010" PRId64, prefix, number);
		out = parsed(name);
		expect(out.of_mount && out.mode == mode && out.session_half == session &&
		               out.taker_half == taker && strcmp(out.host, host) == 0 &&
		               out.pid == pid && out.number == number && out.home & clients->bit,
		       "%s", name);
	}
}

static void foreign_entries(void **state)
{
	static const struct {
		const char *name;
		enum lc_mode mode;
		int64_t number;
		bool incompatible;
	} rows[] = {
		/* Curator: mutex, leader, semaphore, read-write lock */
		{"_c_" UUID "-lock-0000000007", LC_EXCLUSIVE, 7, false},
		{"_c_" UUID "-latch-0000000007", LC_EXCLUSIVE, 7, true},
		{"_c_" UUID "-lease-0000000007", LC_SHARED, 7, false},
		{"_c_" UUID "-__WRIT__0000000008", LC_EXCLUSIVE, 8, true},
		{"_c_" UUID "-__READ__0000000009", LC_SHARED, 9, true},
		/* go-zookeeper */
		{"_c_0123456789abcdeffedcba9876543210-lock-0000000010", LC_EXCLUSIVE, 10, false},
		/* kazoo */
		{"0123456789abcdeffedcba9876543210__lock__0000000011", LC_EXCLUSIVE, 11, true},
		{"0123456789abcdeffedcba9876543210__rlock__0000000012", LC_SHARED, 12, true},
		/* the recipes in Java and in C */
		{"x-72057594037927936-0000000013", LC_EXCLUSIVE, 13, false},
		{"x-100000000000000-0000000014", LC_EXCLUSIVE, 14, false},
		/* .NET's and npm's, by their whole names; zk-ruby's */
		{"lock-0000000015", LC_EXCLUSIVE, 15, true},
		{"write-0000000015", LC_EXCLUSIVE, 15, true},
		{"read-0000000015", LC_SHARED, 15, true},
		{"semaphore-0000000015", LC_EXCLUSIVE, 15, true},
		{"sh0000000015", LC_SHARED, 15, true},
		{"ex0000000015", LC_EXCLUSIVE, 15, false},
		/* any client */
		{"x-read-0000000015", LC_EXCLUSIVE, 15, false},
		{"flush0000000015", LC_EXCLUSIVE, 15, false},
		{"block-0000000015", LC_EXCLUSIVE, 15, false},
		{"0000000000", LC_EXCLUSIVE, 0, false},
		{"x-rlock-0000000016", LC_SHARED, 16, false},
		{"rlock-0000000017", LC_EXCLUSIVE, 17, false},
		{"__READ_0000000018", LC_EXCLUSIVE, 18, false},
		{"__read__0000000019", LC_EXCLUSIVE, 19, false},
		{"__READ__x0000000020", LC_EXCLUSIVE, 20, false},
		{"x-rlock-x-lock-0000000021", LC_EXCLUSIVE, 21, false},
		{"__READ__0000000022", LC_SHARED, 22, true},
		{"__rlock__0000000023", LC_SHARED, 23, true},
		{"-rlock-0000000024", LC_SHARED, 24, false},
		{"\xff\xfe 0000000025", LC_EXCLUSIVE, 25, false},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct entry_name out = parsed(rows[i].name);

		expect(out.mode == rows[i].mode, "%s: mode", rows[i].name);
		expect(!(out.home & clients_all[0].bit) == rows[i].incompatible,
		       "%s: whether it waits for ours", rows[i].name);
		expect(!rows[i].incompatible || strcmp(out.client, "-") != 0, "%s: whose",
		       rows[i].name);
		expect(out.number == rows[i].number, "%s: %lld", rows[i].name,
		       (long long)out.number);
		expect(!out.of_mount && out.pid == 0 && strcmp(out.host, "-") == 0 &&
		               out.session_half == 0 && out.taker_half == 0,
		       "%s is no mount's", rows[i].name);
	}
}

/* Almost a mount's name: takers wait for the entry, but nothing in its name is believed. */
static void not_quite_ours(void **state)
{
	static const char *const names[] = {
		"_c_" UUID "-web1.42-rlocks-0000000001",
		"_c_" UUID "-web1.42-lock0000000001",
		"_c_" UUID "-web1.42-lock-x0000000001",
		"_c_" UUID "-web1-42-lock-0000000001",
		"_c_" UUID "-web1.-lock-0000000001",
		"_c_" UUID "-web1.4x2-lock-0000000001",
		"_c_" UUID "-web1.-42-lock-0000000001",
		"_c_" UUID "-.42-lock-0000000001",
		"_c_" UUID "-web1.example.42-lock-0000000001",
		"_c_" UUID "-42-lock-0000000001",
		"_c_" UUID "-sixteen-bytes-xy.42-lock-0000000001",
		"_c_" UUID "-web1.2147483648-lock-0000000001",
		"_c_" UUID "-web1.00000000042-lock-0000000001",
		"_c_" UUID ".web1.42-lock-0000000001",
		"_c-" UUID "-web1.42-lock-0000000001",
		"x_c_" UUID "-web1.42-lock-0000000001",
		"_c_01234567-89AB-cdef-fedc-ba9876543210-web1.42-lock-0000000001",
		"_c_01234567-89ab-cdef-fedc-ba987654321g-web1.42-lock-0000000001",
		"_c_01234567089ab-cdef-fedc-ba9876543210-web1.42-lock-0000000001",
		"_c_012345678-9ab-cdef-fedc-ba9876543210-web1.42-lock-0000000001",
		"_c_01234567-89ab-cdef-fedc-ba987654321-web1.42-lock-0000000001",
		"_c_-web1.42-lock-0000000001",
		"_c_" UUID "-lock-0000000001",
		"_c_" UUID "lock-0000000001",
		"-lock-0000000001",
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(names); i++) {
		struct entry_name out = parsed(names[i]);

		expect(out.number == 1 && out.mode == LC_EXCLUSIVE, "%s", names[i]);
		expect(!out.of_mount && out.pid == 0 && strcmp(out.host, "-") == 0 &&
		               out.session_half == 0 && out.taker_half == 0,
		       "%s is no mount's", names[i]);
	}
}

/* A client that may write below the lock may forge the shape of a name. The host goes into file
 * names and into `holder`, where a blank would begin another field. */
static void forged_hosts(void **state)
{
	static const char *const hosts[] = {
		"web1 pid=1", "a b", "a=b",      "web1\t", "web1\n",
		"\x1b[2J",    "a/b", "\xc2\x85", "\xff",
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(hosts); i++) {
		char name[128];
		struct entry_name out;

		snprintf(name, sizeof(name), "_c_" UUID "-%s.42-lock-0000000001", hosts[i]);
		out = parsed(name);
		for (const char *c = out.host; *c; c++)
			expect(strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			              "0123456789-_",
			              *c) != NULL,
			       "host '%s'", out.host);
	}
}

static void not_entries(void **state)
{
	static const char *const names[] = {
		"",
		"1",
		"build",
		"000000001",
		"lock-000000001",
		"lock-",
		"0000000001x",
		"0000000001-",
		"00000 0001",
		"lock-00000-00001",
		"+000000001",
		"lock-0x00000001",
		"000000000\xb9",
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(names); i++) {
		struct entry_name out, before;

		memset(&out, 0xaa, sizeof(out));
		before = out;
		expect(!name_parse(names[i], &out), "%s is an entry", names[i]);
		expect(!name_is_numbered(names[i]), "%s is numbered", names[i]);
		assert_memory_equal(&out, &before, sizeof(out));
	}
}

static void numbers(void **state)
{
	static const struct {
		const char *name;
		int64_t number;
	} rows[] = {
		{"0000000000", 0},
		{"lock-0000000001", 1},
		{"lock-2147418111", NAME_NUMBER_ZONE - 1},
		{"lock-2147418112", NAME_NUMBER_ZONE},
		{"lock-2147483646", INT32_MAX - 1},
		{"lock-2147483647", INT32_MAX},
		/* 11 digits: the last ten are the number, whatever stands before. */
		{"lock-10000000001", 1},
		/* A wrapped counter: a sign, with or without the prefix's own '-' before it. */
		{"lock--2147483648", INT32_MIN},
		{"lock-2147483648", INT32_MIN},
		{"-2147483648", INT32_MIN},
		{"--2147483648", INT32_MIN},
		{"lock--2147483647", -INT32_MAX},
		{"lock--1000000000", -1000000000},
	};

	(void)state;
	assert_int_equal(NAME_NUMBER_ZONE, 2147418112);
	for (size_t i = 0; i < LENGTH(rows); i++)
		expect(parsed(rows[i].name).number == rows[i].number, "%s: %lld", rows[i].name,
		       (long long)parsed(rows[i].name).number);
}

/* The sign belongs to the number, so that mode and shape are still seen before it. */
static void wrapped_entries_keep_their_mode(void **state)
{
	struct entry_name out;

	(void)state;
	out = parsed("_c_" UUID "-web1.42-rlock--2147483648");
	assert_true(out.of_mount);
	assert_int_equal(out.mode, LC_SHARED);
	assert_int_equal(out.number, INT32_MIN);
	assert_int_equal(out.pid, 42);
	out = parsed("_c_" UUID "-web1.42-lock--2147483648");
	assert_true(out.of_mount);
	assert_int_equal(out.mode, LC_EXCLUSIVE);
	assert_int_equal(parsed("x__rlock__-2147483648").mode, LC_SHARED);
	assert_int_equal(parsed("x__rlock__-2147483648").number, INT32_MIN);
	assert_int_equal(parsed("x__READ__-2147483648").mode, LC_SHARED);
}

static void numbered(void **state)
{
	(void)state;
	assert_true(name_is_numbered("0123456789"));
	assert_true(name_is_numbered("order-1700000000"));
	assert_true(name_is_numbered("01234567890"));
	assert_false(name_is_numbered("order-170000000"));
	assert_false(name_is_numbered("012345678"));
	assert_false(name_is_numbered(""));
	assert_false(name_is_numbered("0123456789a"));
	assert_false(name_is_numbered("012345678a9"));
}

static void host_names(void **state)
{
	static const struct {
		const char *host, *wanted;
	} rows[] = {
		{"web1", "web1"},
		{"web1.example.com", "web1"},
		{"Web_1-a", "Web_1-a"},
		{"fifteen-bytes-x", "fifteen-bytes-x"},
		{"sixteen-bytes-xy", "sixteen-bytes-x"},
		{"fifteen-bytes-x.example.com", "fifteen-bytes-x"},
		{"", "_"},
		{".", "_"},
		{".example.com", "_"},
		{"a b", "a_b"},
		{"a/b", "a_b"},
		{"a\nb\x7f", "a_b_"},
		{"m\xc3\xbcller", "m__ller"},
		{"[::1]", "___1_"},
		{"a@b:c=d", "a_b_c_d"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		char host[LC_HOST_MAX + 1];

		name_host(host, rows[i].host);
		assert_string_equal(host, rows[i].wanted);
	}
}

static void good_lock_names(void **state)
{
	static const char *const names[] = {
		"build",
		"b",
		"a b",
		" ",
		"-",
		"-f",
		"_",
		"@",
		"a.",
		"a..b",
		"a.b",
		"~",
		"\\",
		"*",
		"$(id)",
		"backup@home.service",
		"user@host",
		"order-17",
		"order-170000000",
		"0123456789x",
		"zookeeper",
		"locks",
		"lock2",
		"Lock",
		"LOCK",
		"locked",
		"xlock",
		"lock ",
		"mylock@30s",
		"@lock",
		"shared2",
		"trying",
		"queues",
		"holders",
		"values",
		"slot",
		"flocks",
		"\xc3\xbc",
		"gr\303\266\303\237e",
		"\xe6\x97\xa5\xe6\x9c\xac",
		"\xc2\xa0",     /* U+00A0 */
		"\xdf\xbf",     /* U+07FF */
		"\xe0\xa0\x80", /* U+0800 */
		"\xe2\x80\xa8", /* U+2028 */
		"\xed\x9f\xbf", /* U+D7FF */
		"\xef\xa4\x80", /* U+F900 */
		"\xef\xbf\xaf", /* U+FFEF */
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(names); i++) {
		const char *why = "untouched";

		expect(name_check(names[i], &why) == 0, "'%s': %s", names[i], why);
		assert_string_equal(why, "untouched");
	}
}

static void bad_lock_names(void **state)
{
	static const char *const names[] = {
		"",
		".",
		"..",
		"...",
		".x",
		".zklockfs",
		".zklockfs2",
		"/",
		"a/b",
		"/a",
		"a/",
		"0000000001",
		"order-1700000000",
		"12345678901",
		"\x01",
		"a\x1f",
		"a\nb",
		"a\tb",
		"\x7f",
		"a\x7f",
		"\xc2\x80",
		"\xc2\x85",
		"a\xc2\x9f", /* U+0080 to U+009F */
		"\xed\xa0\x80",
		"\xed\xbf\xbf",             /* surrogates */
		"\xed\xa0\xbd\xed\xb4\x92", /* a pair of them */
		"\xee\x80\x80",
		"\xef\xa3\xbf", /* U+E000 to U+F8FF */
		"\xef\xbf\xb0",
		"\xef\xbf\xbd",
		"\xef\xbf\xbe",
		"\xef\xbf\xbf", /* U+FFF0 on */
		"\xf0\x9f\x94\x92",
		"a\xf0\x90\x80\x80", /* beyond the BMP */
		"\xf4\x90\x80\x80",
		"\xf8\x88\x80\x80\x80",
		"\xc0\x80",
		"\xc0\xaf",
		"\xc1\xbf", /* overlong: NUL, '/', DEL */
		"\xe0\x80\xaf",
		"\xe0\x9f\xbf",
		"\xf0\x80\x80\xaf",
		"\xc3",
		"a\xc3",
		"\xc3z",
		"\xc3\xc3\xbc", /* cut short */
		"\xe6",
		"\xe6\x97",
		"\xe6\x97z",
		"a\xe6z\xa5",
		"\x80",
		"\xbf",
		"a\x80",
		"\xfe",
		"\xff",
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(names); i++) {
		const char *why = NULL;

		expect(name_check(names[i], &why) == -EINVAL, "'%s' (row %zu) is allowed", names[i],
		       i);
		expect(why && strlen(why) > 10 && !strchr(why, '\n'), "'%s': no reason", names[i]);
	}
}

/* Each refusal says what is wrong, so the log line helps. */
static void reasons(void **state)
{
	static const struct {
		const char *name, *word;
	} rows[] = {
		{".x", "dot"},
		{"order-1700000000", "ten digits"},
		{"\xf0\x9f\x94\x92", "emoji"},
		{"a\nb", "control characters"},
		{"\xff", "UTF-8"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const char *why = "";

		name_check(rows[i].name, &why);
		expect(strstr(why, rows[i].word) != NULL, "%s: %s", rows[i].name, why);
	}
}

static void longest_lock_name(void **state)
{
	char name[LC_NAME_MAX + 2];
	const char *why = NULL;

	(void)state;
	assert_int_equal(LC_NAME_MAX, 255);
	memset(name, 'x', sizeof(name));
	name[255] = '\0';
	assert_int_equal(name_check(name, &why), 0);
	name[255] = 'x';
	name[256] = '\0';
	assert_int_equal(name_check(name, &why), -ENAMETOOLONG);
	assert_non_null(why);
	/* Bytes count, not characters. */
	for (size_t i = 0; i < 254; i += 2)
		memcpy(name + i, "\xc3\xbc", 2);
	strcpy(name + 254, "x");
	assert_int_equal(name_check(name, &why), 0);
	strcpy(name + 254, "\xc3\xbc");
	assert_int_equal(name_check(name, &why), -ENAMETOOLONG);
}

/* In whose locks an entry is at home: the families' names, in the order of the table. */
static void expect_home(const char *name, const char *wanted)
{
	char home[100] = "";

	for (size_t i = 0; i < CLIENTS_COUNT; i++)
		if (parsed(name).home & clients_all[i].bit)
			strcat(strcat(home, *home ? " " : ""), clients_all[i].name);
	expect(strcmp(home, wanted) == 0, "%s: at home with %s and not %s", name, home, wanted);
}

static void families(void **state)
{
	static const char *const ours[][2] = {
		{"_c_" UUID "-a.1-lock-0000000001", "_c_" UUID "-a.1-rlock-0000000001"},
		{"_c_" UUID "-a.1__WRIT__0000000001", "_c_" UUID "-a.1__READ__0000000001"},
		{"_c_" UUID "-a.1__lock__0000000001", "_c_" UUID "-a.1r__lock__0000000001"},
		{"_c_" UUID "-a.1__lock__0000000001", "_c_" UUID "-a.1__rlock__0000000001"},
		{"ex_c_" UUID "-a.1-lock-0000000001", "sh_c_" UUID "-a.1-rlock-0000000001"},
	};
	char prefix[NAME_PREFIX_MAX], name[NAME_PREFIX_MAX + 10], all[200] = "";

	(void)state;
	for (size_t i = 0; i < CLIENTS_COUNT; i++) {
		const struct clients *clients = &clients_all[i];

		strcat(strcat(all, i ? ", " : ""), clients->name);
		assert_ptr_equal(clients_find(clients->name), clients);
		for (int mode = LC_EXCLUSIVE; mode <= LC_SHARED; mode++) {
			bool both = strcmp(clients->ours[mode].tail, "__lock__") == 0;

			name_format(prefix, clients, SESSION, TAKER, "a", 1, (enum lc_mode)mode);
			snprintf(name, sizeof(name), "%s0000000001", prefix);
			assert_string_equal(name, ours[i][mode]);
			assert_true(parsed(name).of_mount && (int)parsed(name).mode == mode);
			expect_home(name, both ? "kazoo kazoo-rw" : clients->name);
		}
	}
	assert_string_equal(all, LC_CLIENTS);
	assert_null(clients_find("Curator"));
	assert_null(clients_find(""));
}

static void at_home(void **state)
{
	(void)state;
	expect_home("_c_" UUID "-lock-0000000001", "curator");
	expect_home("x-123-0000000001", "curator");
	expect_home("_c_" UUID "-lease-0000000001", "curator");
	expect_home("_c_" UUID "-__WRIT__0000000001", "curator-rw");
	expect_home("_c_" UUID "-__READ__0000000001", "curator-rw");
	expect_home("_c_" UUID "-latch-0000000001", "");
	expect_home("0123456789abcdeffedcba9876543210__lock__0000000001", "kazoo kazoo-rw");
	expect_home("0123456789abcdeffedcba9876543210__rlock__0000000001", "kazoo kazoo-rw");
	expect_home("ex0000000001", "curator ruby");
	expect_home("sh0000000001", "ruby");
	expect_home("lock-0000000001", "");
	/* The text before the pid of a mount's entry means nothing in others' names. */
	expect_home("worker__lock__0000000001", "kazoo kazoo-rw");
	assert_int_equal(parsed("worker__lock__0000000001").mode, LC_EXCLUSIVE);
	expect_home("sh_c_" UUID "-rlock-0000000001", "curator");
	assert_false(parsed("sh_c_" UUID "-rlock-0000000001").of_mount);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_prefix),
		cmocka_unit_test(both_ways),
		cmocka_unit_test(foreign_entries),
		cmocka_unit_test(families),
		cmocka_unit_test(at_home),
		cmocka_unit_test(not_quite_ours),
		cmocka_unit_test(forged_hosts),
		cmocka_unit_test(not_entries),
		cmocka_unit_test(numbers),
		cmocka_unit_test(wrapped_entries_keep_their_mode),
		cmocka_unit_test(numbered),
		cmocka_unit_test(host_names),
		cmocka_unit_test(good_lock_names),
		cmocka_unit_test(bad_lock_names),
		cmocka_unit_test(reasons),
		cmocka_unit_test(longest_lock_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
