/* SPDX-License-Identifier: MIT
 *
 * A state as a hostile predecessor would leave it (libFuzzer). The input makes a possible state and
 * spoils bytes of it; the state is sealed again. If it passes the check, an engine must go on from
 * it: here on a port that answers some requests OK and others with errors. The engine must never
 * crash, and the states that it saves must pass the check.
 */
#include "lockcore.h"
#include "pure/name.h"
#include "pure/state.h"

#include "port/ensemble.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(condition)                                               \
	do {                                                          \
		if (!(condition)) {                                   \
			fprintf(stderr, "%s is false\n", #condition); \
			abort();                                      \
		}                                                     \
	} while (0)

#define HALF UINT64_C(0x0123456789abcdef)
#define SESSION 77
#define SECOND INT64_C(1000000)
#define HEAD 32
#define TAKERS_MAX 12
#define REQUESTS_MAX 4096

/* ---- the input ---- */

static const uint8_t *input;
static size_t input_left;

static unsigned next_byte(void)
{
	if (input_left == 0)
		return 0;
	input_left--;
	return *input++;
}

static unsigned below(unsigned n)
{
	return next_byte() % n;
}

/* ---- a possible state ---- */

static const int64_t saved_us = 5000 * SECOND;

static void write_session(struct state_writer *writer)
{
	struct state_record record = {.kind = STATE_SESSION, .texts = {"/locks"}};

	record.fixed.session = (struct state_session){
		.saved_us = saved_us,
		.id = SESSION,
		.half = HALF,
		.granted_us = 15 * SECOND,
		.lease = {.timeout_us = 15 * SECOND,
	                  .deadline_us = saved_us + (int64_t)below(15) * SECOND,
	                  .sent_us = {saved_us - 3, saved_us - 2, saved_us - 1},
	                  .answered_us = saved_us,
	                  .void_us = INT64_MIN,
	                  .doubt_us = below(8) ? INT64_MAX : saved_us + SECOND,
	                  .steps = (int)below(4)},
		.flags = next_byte() & 127,
	};
	state_write(writer, &record);
}

static void write_taker(struct state_writer *writer, uint64_t id)
{
	static const char *const locks[] = {"a", "a/b", "c", ""};
	struct state_record record = {.kind = STATE_TAKER};
	struct state_taker *taker = &record.fixed.taker;
	char name[NAME_PREFIX_MAX + 10];

	*taker = (struct state_taker){
		.id = id,
		.replaces = below(4) ? 0 : id - 1,
		.asked_us = saved_us - 1,
		.wait_until_us = below(2) ? LC_FOREVER : saved_us + (int64_t)below(20) * SECOND,
		.hold_until_us = LC_FOREVER,
		.limit_at_us = below(2) ? LC_FOREVER : saved_us + (int64_t)below(20) * SECOND,
		.recheck_at_us = below(2) ? LC_FOREVER : saved_us + (int64_t)below(20) * 10000,
		.held_since_ms = -1,
		.charged_bytes = 100,
		.error = -11,
		.state = (uint8_t)(1 + below(5)),
		.loss = (uint8_t)below(3),
		.entry = (uint8_t)below(3),
		.flags = next_byte(),
	};
	if (taker->entry == STATE_ABSENT && taker->state == STATE_WAITING)
		taker->wait = (uint8_t)below(3);
	if (taker->state == STATE_HELD)
		taker->entry = STATE_PRESENT;
	if (taker->state != STATE_HELD || taker->flags & STATE_TAKER_SHARED)
		taker->flags &= ~(uint32_t)STATE_TAKER_UNSEEN;
	if (taker->state == STATE_WAITING || taker->state == STATE_HELD ||
	    taker->state == STATE_LEFT)
		taker->flags &= ~(uint32_t)STATE_TAKER_DUE;
	if (taker->state == STATE_HELD || taker->entry != STATE_PRESENT)
		taker->flags &= ~(uint32_t)STATE_TAKER_GONE;
	name_format(name, HALF, id, "web1", 42,
	            taker->flags & STATE_TAKER_SHARED ? LC_SHARED : LC_EXCLUSIVE);
	if (taker->entry == STATE_PRESENT)
		snprintf(name + strlen(name), 11, "%010u", below(3) ? (unsigned)id : 2147483647u);
	record.texts[0] = locks[below(4)];
	record.texts[1] = taker->entry == STATE_ABSENT ? "" : name;
	record.texts[2] = below(2) ? "" : "why not";
	state_write(writer, &record);
}

static void write_eviction(struct state_writer *writer)
{
	struct state_record record = {.kind = STATE_EVICTION,
	                              .texts = {"/locks/a/x-lock-0000000009"}};

	record.fixed.eviction.due_us = saved_us + (int64_t)below(20) * SECOND;
	record.fixed.eviction.wait_us = (int64_t)below(2) * 20 * SECOND;
	state_write(writer, &record);
}

static char *make_state(size_t *ret_len)
{
	struct state_writer writer;
	unsigned takers = below(TAKERS_MAX + 1);
	void *state;

	state_begin(&writer);
	write_session(&writer);
	for (unsigned i = 1; i <= takers; i++)
		write_taker(&writer, i);
	if (below(2))
		write_eviction(&writer);
	MUST(state_end(&writer, &state, ret_len) == 0);
	return state;
}

static void seal(char *state, size_t len)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325), length = len, part;

	memcpy(state + 16, &length, sizeof(length));
	memset(state + 24, 0, sizeof(sum));
	for (size_t i = 0; i + sizeof(part) <= len; i += sizeof(part)) {
		memcpy(&part, state + i, sizeof(part));
		sum = (sum ^ part) * UINT64_C(0x100000001b3);
	}
	memcpy(state + 24, &sum, sizeof(sum));
}

static void spoil(char *state, size_t len)
{
	for (unsigned count = below(8); count > 0; count--) {
		size_t at = (size_t)next_byte() << 8 | next_byte();

		state[HEAD + at % (len - HEAD)] = (char)next_byte();
	}
	seal(state, len);
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

static struct ensemble_session port_session(struct ensemble *ensemble)
{
	(void)ensemble;
	return (struct ensemble_session){.id = session_id};
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

static void port_close(struct ensemble *ensemble, bool farewell)
{
	(void)ensemble;
	(void)farewell;
	answer_all(ENSEMBLE_GONE);
}

static void port_rest(struct ensemble *ensemble)
{
	port_close(ensemble, false);
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
		events->connected(events_ctx, session_id, 15 * SECOND, now_us);
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

static void go_on(const void *state, size_t len)
{
	static const struct ensemble_port port = {
		.open = port_open,
		.session = port_session,
		.close = port_close,
		.rest = port_rest,
		.drop = port_drop,
		.submit = port_submit,
		.prepare = port_prepare,
		.process = port_process,
		.server = port_server,
	};
	struct ensemble ensemble = {&port};
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
	};
	struct lc *lc;
	void *again;
	size_t again_len;
	int r;

	now_us = saved_us + 1;
	request_count = 0;
	r = lc_adopt(&config, &ensemble, state, len, &lc);
	MUST(r == 0 || r == -EINVAL);
	if (r < 0)
		return;
	claim_some(lc);
	for (int i = 0; i < 40; i++) {
		lc_process(lc, 0);
		lc_send(lc);
		r = lc_save(lc, &again, &again_len);
		MUST(r == 0 || r == -EAGAIN);
		if (r == 0) {
			MUST(lc_check_state(again, again_len) == 0);
			free(again);
		}
		now_us += i < 10 ? 1000 : SECOND / 2;
	}
	lc_destroy(lc, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *state;
	size_t len;

	input = data;
	input_left = size;
	state = make_state(&len);
	spoil(state, len);
	if (lc_check_state(state, len) == 0)
		go_on(state, len);
	free(state);
	return 0;
}
