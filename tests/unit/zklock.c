/* SPDX-License-Identifier: MIT
 *
 * The parts of zklock(1) and zklocktop(1) that read texts of other users: no such text acts on a
 * terminal, and no table is misread or read beyond its end.
 */
#include "clean.h"
#include "health.h"
#include "scroll.h"
#include "span.h"
#include "table.h"
#include "words.h"

#include "unit.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wctype.h>

static void texts(void **state)
{
	static const struct {
		const char *text, *shown;
	} cases[] = {
		{"", ""},
		{"deploy v42", "deploy v42"},
		{"größer 漢字", "größer 漢字"},
		{"a\x1b[2Jb\a\r\n\tc", "a?[2Jb????c"},
		{"right\u202eleft", "right?left"},
		{"zero\u200bwidth\u0301\ufeff", "zero?width??"},
		{"filler\u3164\u00ad\u2800.", "filler???."},
		{"nbsp\u00a0em\u2003wide\u3000next\xc2\x85.", "nbsp?em?wide?next?."},
		{"private\ue000tag\U000e0041", "private?tag?"},
		{"bad \xff\xc3) \xe6\xbc", "bad ?"
	                                   "?) ?"
	                                   "?"},
		{"c1 \xc2\x9b"
	         "31m",
	         "c1 ?31m"},
	};
	char shown[100];

	(void)state;
	for (size_t i = 0; i < LENGTH(cases); i++)
		expect(strcmp(clean(shown, sizeof(shown), cases[i].text), cases[i].shown) == 0,
		       "row %zu: %s", i, shown);
	assert_string_equal(clean(shown, 5, "漢字"), "漢"); /* not half a character */
	assert_string_equal(clean(shown, 1, "x"), "");
}

static void escapes(void **state)
{
	static const struct {
		const char *text, *plain;
	} cases[] = {
		{"schema\\04017", "schema 17"},
		{"\\055", "-"},
		{"a\\134b", "a\\b"},
		{"\\342\\200\\250", "\u2028"},
		{"\\000", "?"},
		{"\\0", "\\0"},
		{"\\04", "\\04"},
		{"\\089", "\\089"},
		{"end\\", "end\\"},
		{"\\\\040", "\\ "},
		{"\\777", "\xff"},
	};
	char text[40];

	(void)state;
	for (size_t i = 0; i < LENGTH(cases); i++) {
		strcpy(text, cases[i].text);
		clean_unescape(text);
		expect(strcmp(text, cases[i].plain) == 0, "row %zu: %s", i, text);
	}
}

static void spans(void **state)
{
	static const struct {
		const char *text;
		int64_t ms; /* -1: none */
	} times[] = {
		{"0", 0},
		{"30", 30000},
		{"250ms", 250},
		{"90s", 90000},
		{"10m", 600000},
		{"2h", 7200000},
		{"1d", 86400000},
		{"366d", 31622400000},
		{"367d", -1},
		{"", -1},
		{"s", -1},
		{"-1", -1},
		{"1.5s", -1},
		{"1 s", -1},
		{"1h30m", -1},
		{"99999999999999999999", -1},
		{"31622400000ms", 31622400000},
	};
	static const struct {
		int64_t ms;
		const char *text;
	} ages[] = {
		{-1, "-"},
		{0, "0ms"},
		{999, "999ms"},
		{1000, "1s"},
		{59999, "59s"},
		{60000, "1m00s"},
		{3599999, "59m59s"},
		{3600000, "1h00m"},
		{86399999, "23h59m"},
		{86400000, "1d00h"},
		{999 * 86400000LL, "999d00h"},
	};
	static const struct {
		const char *text, *shown; /* NULL: it is not kept */
	} reasons[] = {
		{"kept until 2020-01-31T23:10:00.000Z, released: a, b",
	         "kept until 2020-02-01 01:10:00, released: a, b"},
		{"kept until 2020-01-31T23:10:00Z", "kept until 2020-02-01 01:10:00"},
		{"kept until 2020-01-31T23:10:0", "kept until 2020-01-31T23:10:0"},
		{"kept until noon, or so", "kept until noon, or so"},
		{"kept until ", "kept until "},
		{"kept", NULL},
	};
	char buffer[SPAN_MAX], reason[100];
	int64_t ms;

	(void)state;
	setenv("TZ", "CAT-2", 1);
	tzset();
	for (size_t i = 0; i < LENGTH(reasons); i++) {
		strcpy(reason, reasons[i].text);
		assert_int_equal(span_kept(reason), reasons[i].shown != NULL);
		if (reasons[i].shown)
			assert_string_equal(reason, reasons[i].shown);
	}
	for (size_t i = 0; i < LENGTH(times); i++) {
		ms = -1;
		expect(span_parse(times[i].text, &ms) == (times[i].ms >= 0) && ms == times[i].ms,
		       "%s: %lld", times[i].text, (long long)ms);
	}
	for (size_t i = 0; i < LENGTH(ages); i++)
		expect(strcmp(span_format(buffer, ages[i].ms), ages[i].text) == 0, "%s and not %s",
		       buffer, ages[i].text);
	assert_true(span_since("2020-01-01T00:00:00.000Z") > 0);
	assert_true(span_since("2999-01-01T00:00:00.000Z") == 0);
	assert_true(span_since("-") == -1 && span_since("") == -1 && span_since("2020") == -1);
}

#define HEAD "LOCK MODE HOLDERS WAITERS HELD WAITED HOST PID UID COMMAND SINCE TOKEN REASON"

static void tables(void **state)
{
	char text[] = HEAD
		" LATER\n"
		"build exclusive 1 2 373.0 12.4 web1 4242 0 deploy.sh 2026-01-31T12:00:00.000Z "
		"4967301 deploying\\040v42 more\n"
		"closed - - - - - - - - - - - -\n"
		"\n"
		"short\n";
	char other[] = "REASON WAITED HELD WAITERS HOLDERS LOCK\nwhy - 0.5 0 1 build";
	char past[] = "ENDED LOCK HELD WAITED END BY\n"
		      "2026-01-31T03:02:11.400Z two\\040words 1 - evicted uid\\0400\n";
	char bad[] = "LOCK HELD WAITED WAITERS\nbuild 1 2 3\n", empty[] = HEAD "\n", none[] = "";
	struct table table = {0};

	(void)state;
	assert_true(table_parse(text, &table));
	assert_int_equal(table.count, 3);
	assert_string_equal(table.rows[0].lock, "build");
	assert_string_equal(table.rows[0].reason, "deploying v42");
	assert_string_equal(table.rows[0].waiters, "2");
	assert_int_equal(table.rows[0].held_ms, 373000);
	assert_int_equal(table.rows[0].waited_ms, 12400);
	assert_string_equal(table.rows[1].holders, "?"); /* not known is not 0 */
	assert_int_equal(table.rows[1].held_ms, -1);
	assert_string_equal(table.rows[2].lock, "short");
	assert_string_equal(table.rows[2].host, "-");
	free(table.rows);
	/* The head says where a column is. */
	assert_true(table_parse(other, &table));
	assert_int_equal(table.count, 1);
	assert_string_equal(table.rows[0].lock, "build");
	assert_string_equal(table.rows[0].reason, "why");
	assert_int_equal(table.rows[0].held_ms, 500);
	free(table.rows);
	errno = 0;
	assert_true(table_parse(past, &table));
	assert_string_equal(table.rows[0].lock, "two words");
	assert_string_equal(table.rows[0].end, "evicted");
	assert_string_equal(table.rows[0].by, "uid 0");
	assert_string_equal(table.rows[0].reason, "-");
	assert_int_equal(table.rows[0].held_ms, 1000);
	free(table.rows);

	assert_false(table_parse(bad, &table));
	assert_int_equal(errno, EINVAL);
	assert_false(table_parse(none, &table));
	assert_true(table_parse(empty, &table));
	assert_int_equal(table.count, 0);
	free(table.rows);
}

/* Any bytes at all: mainly for the sanitizers of the other build. */
static void anything(void **state)
{
	static const char pieces[] = " \n\\0414-\x1b\xe2\x80\xae"
				     "ab.\t";
	uint32_t random = 1;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		size_t length = (size_t)round % 60;
		char *text = malloc(sizeof(HEAD) + length + 1), shown[32];
		struct table table;

		strcpy(text, round % 2 ? HEAD "\n" : "");
		for (size_t i = strlen(text), end = i + length; i <= end; i++) {
			random = random * 1103515245 + 12345;
			text[i] = (char)(i < end ? pieces[random / 65536 % (sizeof(pieces) - 1)]
			                         : '\0');
		}
		clean(shown, sizeof(shown), text);
		for (const char *c = shown; *c; c++)
			assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
		if (table_parse(text, &table)) {
			for (size_t i = 0; i < table.count; i++)
				assert_non_null(table.rows[i].lock);
			free(table.rows);
		}
		free(text);
	}
}

static const char *name_of(const void *list, size_t i)
{
	return ((const char *const *)list)[i];
}

static void scrolling(void **state)
{
	static const char *const first[] = {"a", "b", "c", "d", "e"};
	static const char *const second[] = {"e", "c", "b"};
	struct scroll scroll = {.name_of = name_of};

	(void)state;
	scroll_update(&scroll, first, 5);
	assert_string_equal(scroll.name, "a");
	scroll_move(&scroll, 1);
	scroll_update(&scroll, second, 3);
	assert_string_equal(scroll.name, "b"); /* the choice follows the line */
	assert_int_equal(scroll.chosen, 2);
	scroll_update(&scroll, first, 1);
	assert_string_equal(scroll.name, "a"); /* the chosen line has gone */
	scroll_update(&scroll, first, 0);
	scroll_move(&scroll, 5);
	assert_string_equal(scroll.name, "");
	assert_int_equal(scroll.chosen, 0);
	scroll_update(&scroll, first, 5);
	scroll_move(&scroll, 1000000);
	scroll_show(&scroll, 2);
	assert_int_equal(scroll.chosen, 4);
	assert_int_equal(scroll.first, 3);
	scroll_show(&scroll, 0);
	assert_int_equal(scroll.first, 4);
	scroll_show(&scroll, 100); /* a larger screen shows all of it */
	assert_int_equal(scroll.first, 0);
	scroll_move(&scroll, -1000000);
	assert_string_equal(scroll.name, "a");
}

/* One server's answer does not hide what the others do. Each is named once, by the newest word. */
static void outage(void **state)
{
#define STATE "state: suspended\nlease_left: -\nno_contact_since: -\n"
#define MET(who) "no_contact_why: " who " closes each connection\n"
	static const struct {
		const char *text, *why;
	} rows[] = {
		{STATE MET("zk1:1") "servers_tried: zk1:1: answers; zk2:1: no quorum\n",
	         "zk1:1 closes each connection; zk2:1: no quorum"},
		{STATE MET("zk2:1") "servers_tried: zk1:1: no quorum; zk2:1: answers\n",
	         "zk2:1 closes each connection; zk1:1: no quorum"},
		{STATE MET("zk1:1") "servers_tried: zk1:1: Connection refused; zk2:1: no quorum\n",
	         "zk1:1: Connection refused; zk2:1: no quorum"},
		{STATE MET("zk1:1") "servers_tried: zk11:1: no quorum; azk1:1: no quorum\n",
	         "zk1:1 closes each connection; zk11:1: no quorum; azk1:1: no quorum"},
		{STATE MET("zk1:1") "servers_tried: -\n", "zk1:1 closes each connection"},
		{STATE "no_contact_why: -\nservers_tried: zk1:1: no quorum\n", "zk1:1: no quorum"},
	};
#undef STATE
#undef MET
	char why[HEALTH_MAX], wanted[HEALTH_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct health health = {.text = strdup(rows[i].text)};

		assert_non_null(health.text);
		assert_false(health_is_good(&health, why));
		snprintf(wanted, sizeof(wanted),
		         "the ensemble does not answer; no lock is held here; %s", rows[i].why);
		assert_string_equal(why, wanted);
		free(health.text);
	}
}

/* tests/unit/nearest.c has more: the daemon has a function of its own for this. */
static void mistyped(void **state)
{
	static const char *const names[] = {"history", "status", "why", NULL};
	static const struct {
		const char *word, *name;
	} rows[] = {
		{"histroy", "history"}, {"hystori", "history"}, {"stats", "status"},
		{"statuss", "status"},  {"stauts=1", "status"}, {"wy", NULL},
		{"whyy", "why"},        {"hi", NULL},           {"", NULL},
		{"state", NULL},        {"hisstoory1", NULL},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const char *name = words_nearest(rows[i].word, names, sizeof(*names));

		expect(name == rows[i].name ||
		               (name && rows[i].name && strcmp(name, rows[i].name) == 0),
		       "'%s' is %s", rows[i].word, name ? name : "nothing");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts),  cmocka_unit_test(escapes),  cmocka_unit_test(spans),
		cmocka_unit_test(tables), cmocka_unit_test(anything), cmocka_unit_test(scrolling),
		cmocka_unit_test(outage), cmocka_unit_test(mistyped),
	};

	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
