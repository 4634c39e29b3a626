/* SPDX-License-Identifier: MIT
 *
 * The state that one engine hands to the next: every byte may be broken, or may have been written
 * by an attacker.
 */
#include "pure/state.h"

#include "pure/name.h"
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HALF UINT64_C(0x0123456789abcdef)
#define NOW INT64_C(5000000000)
#define HEAD 32        /* of the whole state */
#define CHECKSUM 24    /*   in it */
#define RECORD_HEAD 16 /* of each record: kind, length, of the fixed part, of the texts */

static struct state_record a_session(void)
{
	struct state_record record = {.kind = STATE_SESSION, .texts = {"/locks"}};

	record.fixed.session = (struct state_session){
		.saved_us = NOW,
		.id = 77,
		.half = HALF,
		.password = "0123456789abcde",
		.granted_us = 15000000,
		.lease = {.timeout_us = 15000000,
	                  .deadline_us = NOW + 14000000,
	                  .sent_us = {NOW - 1, NOW - 2, NOW - 3},
	                  .answered_us = NOW,
	                  .void_us = INT64_MIN,
	                  .doubt_us = INT64_MAX,
	                  .steps = 3},
		.flags = STATE_SESSION_READY,
	};
	return record;
}

/* The name of its node is that of an exclusive entry. */
static struct state_record a_taker(uint64_t id, uint8_t state, uint8_t entry)
{
	static char names[8][NAME_PREFIX_MAX + 10];
	static unsigned next;
	struct state_record record = {.kind = STATE_TAKER};
	char *name = names[next++ % 8];

	name_format(name, HALF, id, "web1", 42, LC_EXCLUSIVE);
	if (entry == STATE_PRESENT)
		strcat(name, "0000000007");
	record.texts[0] = "team/build";
	record.texts[1] = entry == STATE_ABSENT ? "" : name;
	record.texts[2] = "why not";
	record.fixed.taker = (struct state_taker){
		.id = id,
		.asked_us = NOW - 5,
		.wait_until_us = LC_FOREVER,
		.hold_until_us = LC_FOREVER,
		.limit_at_us = LC_FOREVER,
		.recheck_at_us = LC_FOREVER,
		.held_since_ms = -1,
		.pid = 42,
		.state = state,
		.entry = entry,
		.command = "prog",
	};
	return record;
}

static struct state_record an_eviction(const char *path)
{
	struct state_record record = {.kind = STATE_EVICTION, .texts = {path}};

	record.fixed.eviction.due_us = NOW + 1;
	return record;
}

static int check_records(const struct state_record *records, size_t count)
{
	struct state_writer writer;
	void *state;
	size_t len;
	int r;

	state_begin(&writer);
	for (size_t i = 0; i < count; i++)
		state_write(&writer, &records[i]);
	assert_int_equal(state_end(&writer, &state, &len), 0);
	r = state_check(state, len);
	free(state);
	return r;
}

/* One of each kind. */
static void *whole_state(size_t *ret_len)
{
	struct state_record records[] = {
		a_session(),
		{.kind = STATE_COUNTERS},
		a_taker(1, STATE_HELD, STATE_PRESENT),
		a_taker(2, STATE_WAITING, STATE_UNKNOWN),
		an_eviction("/locks/team/x-lock-0000000001"),
	};
	struct state_writer writer;
	void *state;

	state_begin(&writer);
	for (size_t i = 0; i < LENGTH(records); i++)
		state_write(&writer, &records[i]);
	assert_int_equal(state_end(&writer, &state, ret_len), 0);
	assert_int_equal(state_check(state, *ret_len), 0);
	return state;
}

/* Makes length and checksum right, as an attacker would. */
static void seal(char *state, size_t len)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325), length = len, part;

	memcpy(state + 16, &length, sizeof(length));
	memset(state + CHECKSUM, 0, sizeof(sum));
	for (size_t i = 0; i + sizeof(part) <= len; i += sizeof(part)) {
		memcpy(&part, state + i, sizeof(part));
		sum = (sum ^ part) * UINT64_C(0x100000001b3);
	}
	memcpy(state + CHECKSUM, &sum, sizeof(sum));
}

/* ---- bytes ---- */

static void read_back(void **unused)
{
	size_t len, offset = 0;
	void *state = whole_state(&len);
	struct state_record record, session = a_session();
	static const enum state_kind kinds[] = {STATE_SESSION, STATE_COUNTERS, STATE_TAKER,
	                                        STATE_TAKER, STATE_EVICTION};

	(void)unused;
	for (size_t i = 0; i < LENGTH(kinds); i++) {
		assert_true(state_read(state, len, &offset, &record));
		assert_int_equal(record.kind, kinds[i]);
		if (i == 0) {
			assert_memory_equal(&record.fixed.session, &session.fixed.session,
			                    sizeof(session.fixed.session));
			assert_string_equal(record.texts[0], "/locks");
		} else if (i == 2) {
			assert_int_equal(record.fixed.taker.id, 1);
			assert_string_equal(record.texts[0], "team/build");
			assert_string_equal(record.texts[2], "why not");
			assert_string_equal(record.fixed.taker.command, "prog");
		}
	}
	assert_false(state_read(state, len, &offset, &record));
	free(state);
}

static void every_bit_counts(void **unused)
{
	size_t len;
	char *state = whole_state(&len);

	(void)unused;
	for (size_t i = 0; i < len * 8; i++) {
		int r;

		state[i / 8] = (char)(state[i / 8] ^ 1 << i % 8);
		r = state_check(state, len);
		expect(r == -EPROTO || (r == -ENOTSUP && i / 8 >= 8 && i / 8 < 16), "bit %zu: %d",
		       i, r);
		state[i / 8] = (char)(state[i / 8] ^ 1 << i % 8);
	}
	free(state);
}

static void every_byte_counts(void **unused)
{
	size_t len;
	char *state = whole_state(&len);

	(void)unused;
	for (size_t shorter = 0; shorter < len; shorter++) {
		char *copy = malloc(shorter + 1); /* valgrind sees reads beyond the end */

		assert_non_null(copy);
		memcpy(copy, state, shorter);
		assert_int_equal(state_check(copy, shorter), -EPROTO);
		if (shorter >= HEAD) {
			seal(copy, shorter);
			(void)state_check(copy, shorter);
		}
		free(copy);
	}
	free(state);
}

/* Each byte gets each of some values, and the state is sealed again: it is refused or accepted. */
static void sealed_lies(void **unused)
{
	static const unsigned char values[] = {0, 1, 7, 8, 15, 16, 64, 127, 128, 254, 255};
	size_t len;
	char *state = whole_state(&len);

	(void)unused;
	for (size_t i = HEAD; i < len; i++)
		for (size_t k = 0; k < LENGTH(values); k++) {
			char old = state[i];
			int r;

			state[i] = (char)values[k];
			seal(state, len);
			r = state_check(state, len);
			assert_true(r == 0 || r == -EPROTO);
			state[i] = old;
		}
	free(state);
}

/* ---- other versions ---- */

static void put_u32(char *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
}

static uint32_t get_u32(const char *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static void of_another_version(void **unused)
{
	size_t len;
	char *state = whole_state(&len);

	(void)unused;
	put_u32(state + 8, 99); /* a newer version, which we may read */
	seal(state, len);
	assert_int_equal(state_check(state, len), 0);
	put_u32(state + 12, STATE_VERSION + 1); /* or may not read */
	seal(state, len);
	assert_int_equal(state_check(state, len), -ENOTSUP);
	free(state);
}

/* A record gets eight more bytes of 1 at that place; `field`: the length that they belong to. */
static char *insert_bytes(const char *state, size_t *len, size_t record, size_t at, int field)
{
	char *longer = malloc(*len + 8);

	assert_non_null(longer);
	memcpy(longer, state, record + at);
	memset(longer + record + at, 1, 8);
	memcpy(longer + record + at + 8, state + record + at, *len - record - at);
	put_u32(longer + record + 4, get_u32(state + record + 4) + 8);
	put_u32(longer + record + field, get_u32(state + record + field) + 8);
	*len += 8;
	seal(longer, *len);
	return longer;
}

static void with_more_in_it(void **unused)
{
	size_t len, longer_len, offset = 0;
	char *state = whole_state(&len), *longer;
	struct state_record record;

	(void)unused;
	longer_len = len;
	longer = insert_bytes(state, &longer_len, HEAD, RECORD_HEAD + sizeof(struct state_session),
	                      8);
	assert_int_equal(state_check(longer, longer_len), 0);
	assert_true(state_read(longer, longer_len, &offset, &record));
	assert_int_equal(record.fixed.session.flags, STATE_SESSION_READY);
	assert_string_equal(record.texts[0], "/locks");
	free(longer);

	/* A record of an unknown kind, in front of the others. */
	longer_len = len + 24;
	longer = calloc(1, longer_len);
	assert_non_null(longer);
	memcpy(longer, state, HEAD);
	put_u32(longer + HEAD, 1000);
	put_u32(longer + HEAD + 4, 24);
	put_u32(longer + HEAD + 8, 8);
	memcpy(longer + HEAD + 24, state + HEAD, len - HEAD);
	seal(longer, longer_len);
	assert_int_equal(state_check(longer, longer_len), 0);
	free(longer);
	free(state);
}

/* The fixed part is longer than the record, though the record is good in all else. */
static void with_too_long_a_part(void **unused)
{
	static const uint32_t lens[] = {9, 16, 24, 40, UINT32_MAX - 7, UINT32_MAX};
	size_t len;
	char *state = whole_state(&len), *longer;

	(void)unused;
	longer = calloc(1, len + 24);
	assert_non_null(longer);
	memcpy(longer, state, len);
	put_u32(longer + len, 1000); /* an unknown kind: nobody looks into it */
	put_u32(longer + len + 4, 24);
	put_u32(longer + len + 8, 8);
	seal(longer, len + 24);
	assert_int_equal(state_check(longer, len + 24), 0);
	for (size_t i = 0; i < LENGTH(lens); i++) {
		put_u32(longer + len + 8, lens[i]);
		seal(longer, len + 24);
		expect(state_check(longer, len + 24) == -EPROTO, "%u", (unsigned)lens[i]);
	}
	free(longer);
	free(state);
}

static void with_less_in_it(void **unused)
{
	size_t len, offset = 0;
	char *state = whole_state(&len);
	struct state_record record;
	uint32_t fixed_len = get_u32(state + HEAD + 8);
	uint32_t less = offsetof(struct state_session, flags);

	(void)unused;
	/* The flags, and what stands behind them, are not there; the text moves up. */
	put_u32(state + HEAD + 8, less);
	memmove(state + HEAD + RECORD_HEAD + less, state + HEAD + RECORD_HEAD + fixed_len, 8);
	seal(state, len);
	assert_int_equal(state_check(state, len), 0);
	assert_true(state_read(state, len, &offset, &record));
	assert_int_equal(record.fixed.session.flags, 0);
	assert_int_equal(record.fixed.session.home_czxid, 0);
	assert_int_equal(record.fixed.session.home_number, 0);
	assert_int_equal(record.fixed.session.id, 77);
	assert_string_equal(record.texts[0], "/locks");
	free(state);
}

/* A version without the last text has written the state: the bytes behind are not that text. */
static void with_fewer_texts(void **unused)
{
	size_t len, offset = 0, at = HEAD;
	char *state = whole_state(&len);
	struct state_record record;

	(void)unused;
	for (int i = 0; i < 2; i++)
		at += get_u32(state + at + 4);
	put_u32(state + at + 12, get_u32(state + at + 12) - (uint32_t)sizeof("why not"));
	seal(state, len);
	assert_int_equal(state_check(state, len), 0);
	for (int i = 0; i < 3; i++)
		assert_true(state_read(state, len, &offset, &record));
	assert_string_equal(record.texts[0], "team/build");
	assert_string_equal(record.texts[2], "");
	free(state);
}

/* ---- the contents ---- */

/* Each changes one thing of a good session or taker. */
#define SESSION(change)                                                            \
	do {                                                                       \
		struct state_record record = a_session();                          \
		struct state_session *session = &record.fixed.session;             \
                                                                                   \
		change;                                                            \
		(void)session;                                                     \
		expect(check_records(&record, 1) == -EPROTO, "session: " #change); \
	} while (0)
#define TAKER(state, entry, change)                                                              \
	do {                                                                                     \
		struct state_record records[] = {a_session(), a_taker(5, STATE_##state, entry)}; \
		struct state_taker *taker = &records[1].fixed.taker;                             \
		const char **texts = records[1].texts;                                           \
                                                                                                 \
		expect(check_records(records, 2) == 0, #state ": " #change " before");           \
		change;                                                                          \
		(void)texts;                                                                     \
		(void)taker;                                                                     \
		expect(check_records(records, 2) == -EPROTO, #state ": " #change);               \
	} while (0)

static void bad_sessions(void **unused)
{
	struct state_record twice[] = {a_session(), a_session()};
	struct state_record counters[] = {
		a_session(), {.kind = STATE_COUNTERS}, {.kind = STATE_COUNTERS}};
	struct state_record late[] = {a_taker(1, STATE_FAILED, STATE_ABSENT), a_session()};

	(void)unused;
	assert_int_equal(check_records(NULL, 0), -EPROTO);
	assert_int_equal(check_records(twice, 1), 0);
	assert_int_equal(check_records(twice, 2), -EPROTO);
	assert_int_equal(check_records(counters, 2), 0);
	assert_int_equal(check_records(counters, 3), -EPROTO);
	assert_int_equal(check_records(late, 2), -EPROTO);
	SESSION(record.texts[0] = "locks");
	SESSION(record.texts[0] = "/");
	SESSION(record.texts[0] = "/a//b");
	SESSION(record.texts[0] = "/a/../b");
	SESSION(session->saved_us = -1);
	SESSION(session->saved_us = INT64_MAX);
	SESSION(session->away_us = NOW + 1);
	SESSION(session->granted_us = -1);
	SESSION(session->home_czxid = -1);
	SESSION(session->granted_us = INT64_MAX);
	SESSION(session->tick_us = -1);
	SESSION(session->tick_us = INT64_MAX);
	SESSION(session->lease.timeout_us = -1);
	SESSION(session->lease.timeout_us = INT64_MAX);
	SESSION(session->lease.timeout_us = 0); /* and a deadline */
	SESSION(session->lease.steps = 4);
	SESSION(session->lease.steps = -1);
	SESSION(session->lease.sent_us[1] = NOW + 1);
	SESSION(session->lease.answered_us = NOW + 1);
	SESSION(session->lease.deadline_us = NOW + 15000001);
	SESSION(session->lease.deadline_us = INT64_MIN + 1);
	SESSION(session->lease.void_us = NOW + 1);
	SESSION(session->lease.doubt_us = -1);
}

static void bad_takers(void **unused)
{
	char longest[LC_REASON_MAX + 2];

	(void)unused;
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	TAKER(WAITING, STATE_PRESENT, taker->id = 6);
	TAKER(WAITING, STATE_ABSENT, taker->id = 0);
	TAKER(WAITING, STATE_ABSENT, texts[0] = "team//build");
	TAKER(WAITING, STATE_ABSENT, texts[0] = "../build");
	TAKER(WAITING, STATE_ABSENT, texts[0] = longest);
	TAKER(WAITING, STATE_ABSENT, texts[2] = longest);
	TAKER(WAITING, STATE_ABSENT, texts[1] = "something");
	TAKER(WAITING, STATE_PRESENT, texts[1] = "something-0000000001");
	TAKER(WAITING, STATE_PRESENT, texts[1] = longest);
	TAKER(WAITING, STATE_UNKNOWN, texts[1] = longest);
	TAKER(WAITING, STATE_PRESENT,
	      taker->flags = STATE_TAKER_SHARED); /* its name is exclusive */
	TAKER(WAITING, STATE_ABSENT, taker->state = 0);
	TAKER(WAITING, STATE_ABSENT, taker->state = STATE_LEFT + 1);
	TAKER(WAITING, STATE_ABSENT, taker->wait = STATE_MISSING + 1);
	TAKER(WAITING, STATE_ABSENT, taker->loss = STATE_GIVEN_UP + 1);
	TAKER(WAITING, STATE_ABSENT, taker->entry = STATE_PRESENT + 1);
	TAKER(WAITING, STATE_PRESENT, taker->wait = STATE_MISSING);
	TAKER(WAITING, STATE_PRESENT, taker->wait = STATE_PROBING);
	TAKER(WAITING, STATE_PRESENT, taker->flags = STATE_TAKER_DUE);
	TAKER(WAITING, STATE_UNKNOWN, taker->flags = STATE_TAKER_GONE);
	TAKER(WAITING, STATE_PRESENT, taker->flags = STATE_TAKER_UNSEEN);
	TAKER(WAITING, STATE_ABSENT, taker->replaces = 7);
	TAKER(WAITING, STATE_ABSENT, taker->replaces = 5);
	TAKER(WAITING, STATE_ABSENT, taker->asked_us = NOW + 1);
	TAKER(WAITING, STATE_ABSENT, taker->wait_until_us = -1);
	TAKER(WAITING, STATE_ABSENT, taker->hold_until_us = INT64_MAX - 1);
	TAKER(WAITING, STATE_ABSENT, taker->limit_at_us = INT64_MAX - 1);
	TAKER(WAITING, STATE_ABSENT, taker->recheck_at_us = INT64_MIN);
	TAKER(WAITING, STATE_ABSENT, taker->held_since_ms = 1);
	TAKER(WAITING, STATE_ABSENT, taker->charged_bytes = 1 << 20);
	TAKER(WAITING, STATE_ABSENT, memset(taker->command, 'x', sizeof(taker->command)));
	TAKER(HELD, STATE_PRESENT, taker->flags = STATE_TAKER_GONE);
	TAKER(HELD, STATE_PRESENT, taker->flags = STATE_TAKER_DUE);
	TAKER(HELD, STATE_PRESENT, taker->wait = STATE_MISSING);
	TAKER(HELD, STATE_PRESENT, records[0].fixed.session.lease.deadline_us = INT64_MIN);
	TAKER(HELD, STATE_PRESENT, records[0].fixed.session.id = 0);
	TAKER(HELD, STATE_PRESENT, records[0].fixed.session.half++);
	TAKER(HELD, STATE_PRESENT, taker->held_since_ms = INT64_MAX);
	TAKER(LEFT, STATE_PRESENT, taker->flags = STATE_TAKER_DUE);
	TAKER(LEFT, STATE_PRESENT, (taker->entry = STATE_ABSENT, texts[1] = ""));
}

static void bad_errors(void **unused)
{
	static const int errors[] = {0, 1, -4096, INT32_MIN};
	struct state_record records[] = {a_session(), a_taker(5, STATE_FAILED, STATE_ABSENT)};

	(void)unused;
	records[1].fixed.taker.error = -ENOENT;
	assert_int_equal(check_records(records, 2), 0);
	records[1].fixed.taker.error = -4095; /* the last one that the kernel takes for an error */
	assert_int_equal(check_records(records, 2), 0);
	for (size_t i = 0; i < LENGTH(errors); i++) {
		records[1].fixed.taker.error = errors[i];
		assert_int_equal(check_records(records, 2), -EPROTO);
	}
}

static void bad_evictions(void **unused)
{
	static const char *const paths[] = {
		"",
		"/",
		"x-lock-0000000001",
		"/x-lock-0000000001",
		"/locksmith/x-lock-0000000001",
		"/locks/build",
		"/locks",
	};
	struct state_record records[] = {a_session(), an_eviction("/locks/x-lock-0000000001")};

	(void)unused;
	assert_int_equal(check_records(records, 2), 0);
	assert_true(state_is_good_eviction(&records[1], "/locks"));
	records[1].fixed.eviction.due_us = -1;
	assert_false(state_is_good_eviction(&records[1], "/locks"));
	assert_int_equal(check_records(records, 2), 0); /* it costs no other record */
	records[1] = an_eviction("/locks/x-lock-0000000001");
	records[1].fixed.eviction.wait_us = -1;
	assert_false(state_is_good_eviction(&records[1], "/locks"));
	for (size_t i = 0; i < LENGTH(paths); i++) {
		records[1] = an_eviction(paths[i]);
		expect(!state_is_good_eviction(&records[1], "/locks"), "%s", paths[i]);
		expect(check_records(records, 2) == 0, "%s", paths[i]);
	}
}

/* ---- takers and each other ---- */

static struct state_record a_reader(uint64_t id)
{
	struct state_record record = a_taker(id, STATE_HELD, STATE_PRESENT);
	static char names[4][NAME_PREFIX_MAX + 10];
	static unsigned next;
	char *name = names[next++ % 4];

	name_format(name, HALF, id, "web1", 42, LC_SHARED);
	strcat(name, "0000000003");
	record.texts[1] = name;
	record.fixed.taker.flags = STATE_TAKER_SHARED;
	return record;
}

static void replacing(void **unused)
{
	struct state_record records[] = {
		a_session(),
		a_reader(9),
		a_taker(3, STATE_WAITING, STATE_PRESENT),
		a_taker(4, STATE_WAITING, STATE_PRESENT),
	};

	(void)unused;
	records[2].fixed.taker.replaces = 9;
	assert_int_equal(check_records(records, 4), 0);
	records[3].fixed.taker.replaces = 9; /* only one successor */
	assert_int_equal(check_records(records, 4), -EPROTO);
	records[3].fixed.taker.replaces = 3; /* only of a shared holder */
	assert_int_equal(check_records(records, 4), -EPROTO);
	records[3].fixed.taker.replaces = 0;
	records[1].texts[0] = "another"; /* only of the same lock */
	assert_int_equal(check_records(records, 4), -EPROTO);
	records[1].texts[0] = records[2].texts[0];
	records[1].fixed.taker.state = STATE_LOST;
	assert_int_equal(check_records(records, 4), -EPROTO);
}

/* The second successor is found wherever it stands among others. */
static void replacing_among_others(void **unused)
{
	struct state_record records[] = {
		a_session(),
		a_reader(8),
		a_reader(9),
		a_taker(3, STATE_WAITING, STATE_PRESENT),
		a_taker(4, STATE_WAITING, STATE_PRESENT),
		a_taker(5, STATE_WAITING, STATE_PRESENT),
	};

	(void)unused;
	records[3].fixed.taker.replaces = 8;
	records[4].fixed.taker.replaces = 9;
	assert_int_equal(check_records(records, 6), 0);
	records[5].fixed.taker.replaces = 8;
	assert_int_equal(check_records(records, 6), -EPROTO);
}

static void twice_the_same(void **unused)
{
	struct state_record records[] = {
		a_session(),
		a_taker(3, STATE_WAITING, STATE_PRESENT),
		a_taker(4, STATE_HELD, STATE_PRESENT),
		a_taker(3, STATE_WAITING, STATE_PRESENT),
	};

	(void)unused;
	assert_int_equal(check_records(records, 3), 0);
	assert_int_equal(check_records(records, 4), -EPROTO);
	records[3] = a_taker(6, STATE_HELD, STATE_PRESENT);
	records[2].fixed.taker.flags = STATE_TAKER_UNSEEN;
	assert_int_equal(check_records(records, 4), 0);
	records[3].fixed.taker.flags = STATE_TAKER_UNSEEN;
	assert_int_equal(check_records(records, 4), -EPROTO);
	records[3].texts[0] = "another";
	assert_int_equal(check_records(records, 4), 0);
}

/* The keys of takers end where those of evictions begin. */
static void keys(void **state)
{
	static const struct {
		uint64_t key;
		int result;
	} rows[] = {{STATE_KEY_TAKERS, -EPROTO},
	            {STATE_KEY_TAKERS + 1, 0},
	            {STATE_KEY_EVICTIONS - 1, 0},
	            {STATE_KEY_EVICTIONS, -EPROTO}};
	struct state_record session = a_session(), taker = a_taker(1, STATE_WAITING, STATE_ABSENT);
	struct state_writer writers[2] = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lc_record records[2] = {{.key = STATE_KEY_SESSION}, {.key = rows[i].key}};
		void *joined;
		size_t len;

		taker.fixed.taker.key = rows[i].key;
		records[0].bytes = state_write_alone(&writers[0], &session, &records[0].len);
		records[1].bytes = state_write_alone(&writers[1], &taker, &records[1].len);
		assert_int_equal(state_join(records, 2, &joined, &len), rows[i].result);
		if (rows[i].result == 0)
			free(joined);
	}
	free(writers[0].bytes);
	free(writers[1].bytes);
}

/* An eviction has a key of its kind, which is the one that it says. */
static void keys_of_evictions(void **state)
{
	static const struct {
		uint64_t key, says;
		int result;
	} rows[] = {{STATE_KEY_EVICTIONS + 1, STATE_KEY_EVICTIONS + 1, 0},
	            {STATE_KEY_EVICTIONS + 1, STATE_KEY_EVICTIONS + 2, -EPROTO},
	            {STATE_KEY_EVICTIONS, STATE_KEY_EVICTIONS, -EPROTO},
	            {STATE_KEY_TAKERS + 1, STATE_KEY_TAKERS + 1, -EPROTO}};
	struct state_record session = a_session(),
			    eviction = an_eviction("/locks/x-lock-0000000001");
	struct state_writer writers[2] = {0};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct lc_record records[2] = {{.key = STATE_KEY_SESSION}, {.key = rows[i].key}};
		void *joined;
		size_t len;

		eviction.fixed.eviction.key = rows[i].says;
		records[0].bytes = state_write_alone(&writers[0], &session, &records[0].len);
		records[1].bytes = state_write_alone(&writers[1], &eviction, &records[1].len);
		assert_int_equal(state_join(records, 2, &joined, &len), rows[i].result);
		if (rows[i].result == 0)
			free(joined);
	}
	free(writers[0].bytes);
	free(writers[1].bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys),
		cmocka_unit_test(keys_of_evictions),
		cmocka_unit_test(read_back),
		cmocka_unit_test(every_bit_counts),
		cmocka_unit_test(every_byte_counts),
		cmocka_unit_test(sealed_lies),
		cmocka_unit_test(of_another_version),
		cmocka_unit_test(with_more_in_it),
		cmocka_unit_test(with_too_long_a_part),
		cmocka_unit_test(with_less_in_it),
		cmocka_unit_test(with_fewer_texts),
		cmocka_unit_test(bad_sessions),
		cmocka_unit_test(bad_takers),
		cmocka_unit_test(bad_errors),
		cmocka_unit_test(bad_evictions),
		cmocka_unit_test(replacing),
		cmocka_unit_test(replacing_among_others),
		cmocka_unit_test(twice_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
