/* SPDX-License-Identifier: MIT
 *
 * The records from which an engine goes on: a number or a text beyond its range is refused.
 */
#include "unit.h"

#include "forged.h"
#include "notes.h"
#include "pure/name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define HALF INT64_C(0x0123456789abcdef)
#define NOW INT64_C(5000000000)

static char said[256];

static int64_t clock_us(void *ctx)
{
	(void)ctx;
	return NOW;
}

static void random_bytes(void *ctx, void *ret_bytes, size_t len)
{
	(void)ctx;
	memset(ret_bytes, 5, len);
}

static void report(void *ctx, enum lc_level level, const char *text)
{
	(void)ctx;
	(void)level;
	snprintf(said, sizeof(said), "%s", text);
}

static struct forged_session a_session(void)
{
	return (struct forged_session){
		.root = "/locks",
		.id = 77,
		.half = HALF,
		.password = "0123456789abcde",
		.password_len = 16,
		.granted_us = 15000000,
		.was_ready = 1,
		.tick_us = 2000000,
		.timeout_us = 15000000,
		.deadline_us = NOW + 14000000,
		.sent_us = {NOW - 1, NOW - 2, NOW - 3},
		.answered_us = NOW,
		.void_us = INT64_MIN,
		.doubt_us = LC_FOREVER,
		.renews_us = LC_FOREVER,
		.late_us = LC_FOREVER,
		.steps = 3,
	};
}

static const char *name_of(uint64_t id, int64_t entry, enum lc_mode mode)
{
	static char names[8][NAME_PREFIX_MAX + 10];
	static unsigned next;
	char *name = names[next++ % 8];

	name_format(name, &clients_all[0], (uint64_t)HALF, id, "web1", 42, mode);
	if (entry == FORGED_PRESENT)
		strcat(name, "0000000007");
	return entry == FORGED_ABSENT ? "" : name;
}

/* Its entry is exclusive. */
static struct forged_taker a_taker(int64_t id, int64_t state, int64_t entry)
{
	return (struct forged_taker){
		.lock = "team/build",
		.reason = "why not",
		.name = name_of((uint64_t)id, entry, LC_EXCLUSIVE),
		.id = id,
		.state = state,
		.entry = entry,
		.asked_us = NOW - 5,
		.wait_until_us = LC_FOREVER,
		.hold_until_us = LC_FOREVER,
		.limit_us = LC_FOREVER,
		.recheck_us = LC_FOREVER,
		.held_since_ms = -1,
		.pid = 42,
		.command = "prog",
	};
}

static int check_notes(struct notes *notes)
{
	struct lc_config config = {
		.root = "/locks",
		.host = "web1",
		.session_timeout_us = 15000000,
		.tick_time_us = 2000000,
		.clock_us = clock_us,
		.wall_ms = clock_us,
		.random = random_bytes,
		.report = report,
		.records = &notes->records,
	};
	struct codec codec = {.loads = true, .checks = true};
	struct lc *lc = NULL;
	int r;

	said[0] = '\0';
	r = lc_adopt(&config, NULL, &codec, &lc);
	assert_null(lc);
	assert_true((r == 0) == (codec.bad == NULL));
	return r;
}

static void begin_notes(struct notes *notes, struct forged_session session)
{
	struct codec codec = {0};

	notes_begin(notes);
	forge_session(&codec, &session);
	notes_put(notes, LC_KIND_SESSION, 1, &codec);
	forge_counters(&codec, 0, 0);
	notes_put(notes, LC_KIND_COUNTERS, 1, &codec);
}

static int check(const struct forged_session *session, const struct forged_taker *takers,
                 size_t count)
{
	struct notes notes;
	int r;

	begin_notes(&notes, *session);
	for (size_t i = 0; i < count; i++) {
		struct forged_taker taker = takers[i];
		struct codec codec = {0};

		forge_taker(&codec, &taker);
		notes_put(&notes, LC_KIND_TAKER, i + 1, &codec);
	}
	r = check_notes(&notes);
	notes_finish(&notes);
	return r;
}

static int check_takers(const struct forged_taker *takers, size_t count)
{
	struct forged_session session = a_session();

	return check(&session, takers, count);
}

/* Each changes one thing of a good session or taker. */
#define SESSION(change)                                                           \
	do {                                                                      \
		struct forged_session session = a_session();                      \
                                                                                  \
		change;                                                           \
		expect(check(&session, NULL, 0) == -EPROTO, "session: " #change); \
	} while (0)
#define TAKER(in_state, entry_is, change)                                                  \
	do {                                                                               \
		struct forged_session session = a_session();                               \
		struct forged_taker taker = a_taker(5, FORGED_##in_state, entry_is);       \
                                                                                           \
		expect(check(&session, &taker, 1) == 0, #in_state ": " #change " before"); \
		change;                                                                    \
		expect(check(&session, &taker, 1) == -EPROTO, #in_state ": " #change);     \
	} while (0)

static void bad_sessions(void **unused)
{
	struct forged_session good = a_session();

	(void)unused;
	assert_int_equal(check(&good, NULL, 0), 0);
	SESSION(session.root = "/elsewhere");
	SESSION(session.root = "/locks/");
	SESSION(session.root = NULL);
	SESSION(session.draining = 2);
	SESSION(session.password_len = 15);
	SESSION(session.away_us = NOW + 1);
	SESSION(session.away_us = -1);
	SESSION(session.granted_us = -1);
	SESSION(session.granted_us = INT64_MAX);
	SESSION(session.node_version = INT64_MAX);
	SESSION(session.was_ready = -1);
	SESSION(session.home_root = 3);
	SESSION(session.home_czxid = -1);
	SESSION(session.tick_us = 0);
	SESSION(session.tick_us = INT64_MAX);
	SESSION(session.timeout_us = -1);
	SESSION(session.timeout_us = INT64_MAX);
	SESSION(session.timeout_us = 0); /* and a deadline */
	SESSION(session.steps = 4);
	SESSION(session.steps = -1);
	SESSION(session.sent_us[1] = NOW + 1);
	SESSION(session.sent_us[2] = -1);
	SESSION(session.answered_us = NOW + 1);
	SESSION(session.deadline_us = NOW + 15000001);
	SESSION(session.deadline_us = INT64_MIN + 1);
	SESSION(session.void_us = NOW + 1);
	SESSION(session.doubt_us = -2);
	SESSION(session.renews_us = NOW + 1);
	SESSION(session.late_us = NOW + 1);
	SESSION(session.late_us = -2);
	SESSION(session.pokes_seen = INT64_MAX);
	SESSION(session.pokes_made = 2);
}

static void bad_takers(void **unused)
{
	char longest[LC_REASON_MAX + 2];

	(void)unused;
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	TAKER(WAITING, FORGED_ABSENT, taker.name = NULL);
	TAKER(WAITING, FORGED_PRESENT, taker.name = longest);
	TAKER(WAITING, FORGED_PRESENT, taker.flags = 256);
	TAKER(WAITING, FORGED_ABSENT, taker.state = -1);
	TAKER(WAITING, FORGED_ABSENT, taker.state = FORGED_LEFT + 1);
	TAKER(WAITING, FORGED_ABSENT, taker.wait = FORGED_MISSING + 1);
	TAKER(WAITING, FORGED_ABSENT, taker.loss = 3);
	TAKER(WAITING, FORGED_ABSENT, taker.entry = FORGED_DELETING + 1);
	TAKER(WAITING, FORGED_ABSENT, taker.error = 1);
	TAKER(WAITING, FORGED_ABSENT, taker.wait_until_us = -2);
	TAKER(WAITING, FORGED_ABSENT, taker.hold_until_us = INT64_MAX - 1);
	TAKER(WAITING, FORGED_ABSENT, taker.limit_us = INT64_MAX - 1);
	TAKER(WAITING, FORGED_ABSENT, taker.recheck_us = INT64_MIN);
	TAKER(WAITING, FORGED_ABSENT, taker.charged = 1 << 20);
	TAKER(WAITING, FORGED_ABSENT, taker.charged = -1);
	TAKER(WAITING, FORGED_ABSENT, taker.watches_uid = -1);
	TAKER(WAITING, FORGED_ABSENT, taker.uid = INT64_MAX);
	TAKER(WAITING, FORGED_ABSENT, taker.pid = INT64_MAX);
	TAKER(WAITING, FORGED_ABSENT, taker.pid = -33);
	TAKER(WAITING, FORGED_ABSENT, taker.command = "0123456789abcdef");
	TAKER(WAITING, FORGED_ABSENT, taker.command = NULL);
	TAKER(HELD, FORGED_PRESENT, taker.held_since_ms = INT64_MAX);
}

static void bad_errors(void **unused)
{
	static const int64_t errors[] = {1, -4096, INT32_MIN};
	struct forged_taker taker = a_taker(5, FORGED_FAILED, FORGED_ABSENT);

	(void)unused;
	taker.error = -ENOENT;
	assert_int_equal(check_takers(&taker, 1), 0);
	taker.error = -4095; /* the last one that the kernel takes for an error */
	assert_int_equal(check_takers(&taker, 1), 0);
	for (size_t i = 0; i < LENGTH(errors); i++) {
		taker.error = errors[i];
		assert_int_equal(check_takers(&taker, 1), -EPROTO);
	}
}

static int check_eviction(const char *path, int64_t due_us, int64_t wait_us)
{
	struct codec codec = {0};
	struct notes notes;
	int r;

	begin_notes(&notes, a_session());
	forge_eviction(&codec, path, due_us, wait_us);
	notes_put(&notes, LC_KIND_EVICTION, 1, &codec);
	r = check_notes(&notes);
	notes_finish(&notes);
	return r;
}

static void bad_evictions(void **unused)
{
	const char *good = "/locks/a/x-lock-0000000001";

	(void)unused;
	assert_int_equal(check_eviction(good, NOW + 1, 0), 0);
	assert_string_equal(said, "");
	assert_int_equal(check_eviction(good, -2, 0), -EPROTO);
	assert_int_equal(check_eviction(good, LC_FOREVER, 0), -EPROTO);
	assert_int_equal(check_eviction(good, NOW, -2), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_sessions),
		cmocka_unit_test(bad_takers),
		cmocka_unit_test(bad_errors),
		cmocka_unit_test(bad_evictions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
