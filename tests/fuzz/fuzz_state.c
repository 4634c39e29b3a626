/* SPDX-License-Identifier: MIT
 *
 * Possible records, in any combination (libFuzzer). The input may spoil bytes of the records of the
 * session, the counters and the evictions. If all pass the check, an engine must go on from them:
 * here on a port that answers some requests OK and others with errors. The engine must never crash,
 * and the records that it writes must pass the check.
 */
#include "fuzz.h"

#include "forged.h"
#include "notes.h"
#include "pure/name.h"

#include "port/ensemble.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HALF UINT64_C(0x0123456789abcdef)
#define SESSION 77
#define SECOND INT64_C(1000000)
#define TAKERS_MAX 12
#define REQUESTS_MAX 4096

/* ---- the input ---- */

static unsigned below(unsigned n)
{
	return next_byte() % n;
}

/* ---- possible records ---- */

static const int64_t recorded_us = 5000 * SECOND;

/* Some bytes of the record may be others. */
static void put_spoilt(struct notes *notes, unsigned kind, uint64_t key, struct codec *codec)
{
	for (unsigned count = below(16) ? 0 : below(4); count > 0; count--)
		codec->data[(next_byte() << 8 | next_byte()) % codec->len] =
			(unsigned char)next_byte();
	notes_put(notes, kind, key, codec);
}

/* The names of takers' entries tell the session, so it is spoilt only without takers. */
static void write_session(struct notes *notes, bool spoils)
{
	struct codec codec = {0};
	struct forged_session session = {
		.root = "/locks",
		.draining = below(8) == 1,
		.id = SESSION,
		.half = HALF,
		.password = "0123456789abcde",
		.password_len = 16,
		.granted_us = 15 * SECOND,
		.node_made = below(2),
		.was_ready = below(2),
		.home_root = below(3),
		.tick_us = 2 * SECOND,
		.timeout_us = 15 * SECOND,
		.deadline_us = recorded_us + (int64_t)below(15) * SECOND,
		.sent_us = {recorded_us - 3, recorded_us - 2, recorded_us - 1},
		.answered_us = recorded_us,
		.steps = below(4),
		.void_us = INT64_MIN,
		.doubt_us = below(8) ? LC_FOREVER : recorded_us + SECOND,
		.renews_us = below(4) ? LC_FOREVER : recorded_us,
		.late_us = below(4) ? LC_FOREVER : recorded_us,
		.pokes_lost = below(2),
		.pokes_made = below(2),
	};

	forge_session(&codec, &session);
	if (spoils)
		put_spoilt(notes, LC_KIND_SESSION, 1, &codec);
	else
		notes_put(notes, LC_KIND_SESSION, 1, &codec);
	forge_counters(&codec, 10, 3);
	forge_counter(&codec, "takes", 0, 7);
	forge_counter(&codec, "failures", EAGAIN, 5);
	forge_counter(&codec, "waits", 1000, 2);
	put_spoilt(notes, LC_KIND_COUNTERS, 1, &codec);
}

static int64_t some_time(int64_t unit_us)
{
	return below(2) ? LC_FOREVER : recorded_us + (int64_t)below(20) * unit_us;
}

/* The takers that were made; a later one may replace an earlier one. */
static struct forged_taker made[TAKERS_MAX + 1];
static const char *const locks[] = {"a", "a/b", "c", ""};
static bool has_unseen[4];

/* `lock`: which one. */
static struct forged_taker some_taker(uint64_t id, unsigned lock)
{
	static const int64_t entries[] = {FORGED_ABSENT, FORGED_UNKNOWN, FORGED_PRESENT};
	struct forged_taker taker = {
		.lock = locks[lock],
		.reason = below(2) ? NULL : "why not",
		.name = "",
		.id = (int64_t)id,
		.state = below(5),
		.loss = below(3),
		.entry = entries[below(3)],
		.flags = next_byte() & 127,
		.error = -11,
		.asked_us = recorded_us - 1,
		.wait_until_us = some_time(SECOND),
		.hold_until_us = LC_FOREVER,
		.limit_us = some_time(SECOND),
		.recheck_us = some_time(10000),
		.held_since_ms = -1,
		.charged = 100,
		.command = "prog",
	};

	if (taker.entry == FORGED_ABSENT && taker.state == FORGED_WAITING)
		taker.wait = below(3);
	if (taker.state == FORGED_HELD ||
	    (taker.state == FORGED_LEFT && taker.entry == FORGED_ABSENT))
		taker.entry = FORGED_PRESENT;
	if (taker.state != FORGED_HELD || taker.flags & FORGED_SHARED || has_unseen[lock])
		taker.flags &= ~FORGED_UNSEEN;
	has_unseen[lock] |= taker.flags & FORGED_UNSEEN;
	if (taker.state == FORGED_WAITING || taker.state == FORGED_HELD ||
	    taker.state == FORGED_LEFT)
		taker.flags &= ~FORGED_DUE;
	if (taker.state == FORGED_HELD || taker.entry != FORGED_PRESENT)
		taker.flags &= ~FORGED_GONE;
	return taker;
}

static bool may_replace(const struct forged_taker *taker, const struct forged_taker *old)
{
	return taker->state == FORGED_WAITING && !(taker->flags & FORGED_SHARED) &&
	       old->state == FORGED_HELD && old->flags & FORGED_SHARED && old->lock == taker->lock;
}

static void write_taker(struct notes *notes, uint64_t id)
{
	struct forged_taker taker = some_taker(id, below(4));
	char name[NAME_PREFIX_MAX + 10];
	struct codec codec = {0};

	name_format(name, &clients_all[0], HALF, id, "web1", 42,
	            taker.flags & FORGED_SHARED ? LC_SHARED : LC_EXCLUSIVE);
	if (taker.entry == FORGED_PRESENT)
		snprintf(name + strlen(name), 11, "%010u", below(3) ? (unsigned)id : 2147483647u);
	if (taker.entry != FORGED_ABSENT)
		taker.name = name;
	if (may_replace(&taker, &made[id - 1]) && below(2))
		taker.replaces = (int64_t)id - 1;
	made[id] = taker;
	forge_taker(&codec, &taker);
	notes_put(notes, LC_KIND_TAKER, id, &codec);
}

static void write_records(struct notes *notes)
{
	unsigned takers = below(TAKERS_MAX + 1);
	struct codec codec = {0};

	memset(made, 0, sizeof(made));
	memset(has_unseen, 0, sizeof(has_unseen));
	write_session(notes, takers == 0);
	for (unsigned i = 1; i <= takers; i++)
		write_taker(notes, i);
	if (!below(2))
		return;
	forge_eviction(&codec, "/locks/a/x-lock-0000000009",
	               recorded_us + (int64_t)below(20) * SECOND, (int64_t)below(2) * 20 * SECOND);
	put_spoilt(notes, LC_KIND_EVICTION, 1, &codec);
}

/* ---- a port that answers anything ---- */

static int64_t now_us;
static const struct ensemble_events *events;
static void *events_ctx;
static bool connected;
static int64_t session_id;
static struct {
	ensemble_answer_fn *answer;
	void *ctx;
	struct ensemble_op op;
} requests[REQUESTS_MAX];
static size_t request_count;

static int port_open(struct ensemble *ensemble, int64_t timeout_us,
                     const struct ensemble_session *session, const struct ensemble_events *to,
                     void *ctx)
{
	(void)ensemble;
	(void)timeout_us;
	session_id = session ? session->id : SESSION;
	events = to;
	events_ctx = ctx;
	connected = false;
	return 0;
}

static void port_submit(struct ensemble *ensemble, const struct ensemble_op *ops, int count,
                        ensemble_answer_fn *answer, void *ctx)
{
	(void)ensemble;
	MUST(request_count < REQUESTS_MAX);
	requests[request_count].answer = answer;
	requests[request_count].ctx = ctx;
	requests[request_count].op = ops[0];
	/* A transaction is never done, so that no paths must be made up for it. */
	if (count > 1)
		requests[request_count].op.kind = ENSEMBLE_CHECK;
	request_count++;
}

static void answer_first(enum ensemble_result error)
{
	struct ensemble_stat stat = {.czxid = 5, .ephemeral_owner = session_id, .version = 3};
	struct ensemble_answer answer = {.result = error, .stat = &stat};
	ensemble_answer_fn *fn = requests[0].answer;
	bool named = requests[0].op.kind == ENSEMBLE_CHECK || requests[0].op.sequence;
	void *ctx = requests[0].ctx;

	memmove(requests, requests + 1, --request_count * sizeof(requests[0]));
	/* Creates of entries are refused, too: the entry's name would have to be made up. */
	if (error == ENSEMBLE_OK && named)
		answer.result = ENSEMBLE_REFUSED;
	if (answer.result != ENSEMBLE_OK)
		answer.stat = NULL;
	fn(ctx, &answer);
}

static void answer_all(enum ensemble_result result)
{
	while (request_count > 0)
		answer_first(result);
}

static void port_close(struct ensemble *ensemble, bool end_session)
{
	(void)ensemble;
	(void)end_session;
	answer_all(ENSEMBLE_GONE);
}

static void port_rest(struct ensemble *ensemble)
{
	port_close(ensemble, false);
}

/* Each request was taken as sent. */
static void port_flush(struct ensemble *ensemble)
{
	(void)ensemble;
}

static void port_drop(struct ensemble *ensemble)
{
	(void)ensemble;
}

static int64_t port_prepare(struct ensemble *ensemble, struct pollfd *ret_pollfd)
{
	(void)ensemble;
	*ret_pollfd = (struct pollfd){.fd = -1};
	return INT64_MAX;
}

static void port_process(struct ensemble *ensemble, short revents)
{
	static const enum ensemble_result results[] = {ENSEMBLE_OK, ENSEMBLE_OK, ENSEMBLE_NONODE,
	                                               ENSEMBLE_REFUSED};

	(void)ensemble;
	(void)revents;
	if (!connected) {
		connected = true;
		events->renews(events_ctx);
		events->connected(events_ctx, &(struct ensemble_session){.id = session_id},
		                  15 * SECOND, now_us);
		return;
	}
	for (int i = 0; i < 64 && request_count > 0; i++)
		answer_first(results[below(4)]);
	if (below(16) == 1) {
		connected = false;
		events->disconnected(events_ctx);
		answer_all(ENSEMBLE_UNKNOWN);
	}
}

static const char *port_server(struct ensemble *ensemble)
{
	(void)ensemble;
	return "-";
}

/* ---- an engine on it ---- */

static int64_t clock_us(void *ctx)
{
	(void)ctx;
	return now_us;
}

static int64_t wall_ms(void *ctx)
{
	(void)ctx;
	return now_us / 1000;
}

static void random_bytes(void *ctx, void *ret_bytes, size_t len)
{
	static unsigned char value = 128;

	(void)ctx;
	for (size_t i = 0; i < len; i++)
		((unsigned char *)ret_bytes)[i] = value++ | 128;
}

static void report(void *ctx, enum lc_level level, const char *text)
{
	(void)ctx;
	(void)level;
	(void)text;
}

static void taken(void *ctx, int err)
{
	(void)ctx;
	(void)err;
}

static void lost(void *ctx)
{
	(void)ctx;
}

static void claim_some(struct lc *lc)
{
	for (uint64_t id = 1; id <= TAKERS_MAX; id++)
		if (below(4))
			(void)lc_claim(lc, id, taken, lost, NULL);
	lc_claimed(lc);
}

static int adopt(struct notes *notes, struct ensemble *ensemble, bool checks, struct lc **ret_lc)
{
	struct lc_config config = {
		.root = "/locks",
		.host = "web1",
		.session_timeout_us = 15 * SECOND,
		.tick_time_us = 2 * SECOND,
		.loss_lead_us = below(2) ? 800000 : 0,
		.clock_us = clock_us,
		.wall_ms = wall_ms,
		.random = random_bytes,
		.report = report,
		.records = &notes->records,
	};
	struct codec codec = {.loads = true, .checks = checks};

	return lc_adopt(&config, ensemble, &codec, ret_lc);
}

/* Its records are those of its objects, and another engine could go on from them. */
static void record(struct notes *notes, struct lc *lc)
{
	struct notes copy;
	struct note *note;
	const char *why;
	unsigned kind;

	MUST(notes_record(notes, lc, &kind, &why));
	notes_begin(&copy);
	for (note = notes->notes; note; note = note->next)
		notes_set(&copy, (unsigned)note->id.kind, note->id.key, note->bytes, note->len);
	MUST(adopt(&copy, NULL, true, NULL) == 0);
	notes_finish(&copy);
}

/* An eviction that is of no use has none. */
static void drop_evictions_without_objects(struct notes *notes)
{
	const struct record *record;

	for (record = notes->records.clean; record; record = record->next)
		if (record->kind == LC_KIND_EVICTION)
			return;
	notes_set(notes, LC_KIND_EVICTION, 1, NULL, 0);
}

static void go_on(struct notes *notes)
{
	static const struct ensemble_port port = {
		.open = port_open,
		.close = port_close,
		.rest = port_rest,
		.drop = port_drop,
		.submit = port_submit,
		.flush = port_flush,
		.prepare = port_prepare,
		.process = port_process,
		.server = port_server,
	};
	struct ensemble ensemble = {&port};
	struct lc *lc;

	request_count = 0;
	notes->records.as_recorded = true;
	MUST(adopt(notes, &ensemble, false, &lc) == 0);
	drop_evictions_without_objects(notes);
	claim_some(lc);
	for (int i = 0; i < 40; i++) {
		lc_process(lc, 0);
		record(notes, lc);
		lc_send(lc);
		now_us += i < 10 ? 1000 : SECOND / 2;
	}
	lc_destroy(lc, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct notes notes;
	int r;

	input = data;
	input_left = size;
	now_us = recorded_us + 1;
	notes_begin(&notes);
	write_records(&notes);
	r = adopt(&notes, NULL, true, NULL);
	MUST(r == 0 || r == -EPROTO);
	if (r == 0)
		go_on(&notes);
	notes_finish(&notes);
	return 0;
}
