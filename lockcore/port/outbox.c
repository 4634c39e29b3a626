/* SPDX-License-Identifier: MIT
 *
 * outbox.c - see outbox.h.
 *
 * All kept requests are treated alike: they will be sent, or they are answered without being sent.
 * When the connection ends, or there is no memory for a request, their fate changes: they are
 * answered before the next connection begins. These answers come behind those of all requests that
 * were sent before, so the order is kept.
 */
#include "port/outbox.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The size of one piece of memory. A small turn needs one, which is kept from turn to turn. */
#define CHUNK (64 * 1024)
#define ALIGN 8

struct outbox_request {
	struct outbox_request *next;
	ensemble_answer_fn *answer;
	void *ctx;
	int count; /* 0: it will not be sent */
	struct ensemble_op ops[];
	/* Then come their texts. */
};

struct outbox_chunk {
	struct outbox_chunk *next;
	size_t size, used;
	char bytes[];
};

static struct outbox *as_outbox(struct ensemble *ensemble)
{
	return (struct outbox *)ensemble;
}

bool outbox_is_empty(const struct outbox *outbox)
{
	return !outbox->first && outbox->reserve_used == 0;
}

/* ---- memory ---- */

/* NULL: no memory. */
static struct outbox_chunk *make_chunk(size_t size)
{
	struct outbox_chunk *chunk = malloc(sizeof(*chunk) + size);

	if (chunk)
		*chunk = (struct outbox_chunk){.size = size};
	return chunk;
}

static struct outbox_chunk *add_chunk(struct outbox *outbox, size_t need)
{
	struct outbox_chunk *chunk = outbox->spare;

	if (chunk && chunk->size >= need)
		outbox->spare = NULL;
	else
		chunk = make_chunk(need > CHUNK ? need : CHUNK);
	if (!chunk)
		return NULL;
	chunk->next = outbox->chunks;
	outbox->chunks = chunk;
	return chunk;
}

/* NULL: there is none. */
static void *get_memory(struct outbox *outbox, size_t need)
{
	struct outbox_chunk *chunk = outbox->chunks;
	char *bytes;

	need = (need + ALIGN - 1) / ALIGN * ALIGN;
	if (!chunk || chunk->size - chunk->used < need)
		chunk = add_chunk(outbox, need);
	if (!chunk)
		return NULL;
	bytes = chunk->bytes + chunk->used;
	chunk->used += need;
	return bytes;
}

/* One chunk is kept for the next turn: requests have room in it even if there is no memory then. */
static void free_chunks(struct outbox *outbox, struct outbox_chunk *chunks)
{
	while (chunks) {
		struct outbox_chunk *chunk = chunks;

		chunks = chunk->next;
		if (!outbox->spare && chunk->size == CHUNK) {
			chunk->used = 0;
			outbox->spare = chunk;
		} else {
			free(chunk);
		}
	}
}

/* ---- keeping ---- */

static size_t text_room(const struct ensemble_op *op)
{
	return strlen(op->path) + 1 + (op->data ? (size_t)op->data_len : 0);
}

static char *copy_op(struct ensemble_op *copy, const struct ensemble_op *op, char *text)
{
	size_t len = strlen(op->path) + 1;

	*copy = *op;
	copy->path = memcpy(text, op->path, len);
	text += len;
	if (!op->data)
		return text;
	if (op->data_len > 0)
		memcpy(text, op->data, (size_t)op->data_len);
	copy->data = text;
	return text + op->data_len;
}

static struct outbox_request *copy_request(struct outbox *outbox, const struct ensemble_op *ops,
                                           int count)
{
	struct outbox_request *request;
	size_t room = sizeof(*request) + (size_t)count * sizeof(*ops);
	char *text;

	for (int i = 0; i < count; i++)
		room += text_room(&ops[i]);
	request = get_memory(outbox, room);
	if (!request)
		return NULL;
	*request = (struct outbox_request){.count = count};
	text = (char *)&request->ops[count];
	for (int i = 0; i < count; i++)
		text = copy_op(&request->ops[i], &ops[i], text);
	return request;
}

static void keep_bare(struct outbox *outbox, ensemble_answer_fn *answer, void *ctx)
{
	if (outbox->reserve_used == OUTBOX_RESERVE)
		abort(); /* a request that is never answered would block a lock for ever */
	outbox->reserve[outbox->reserve_used].answer = answer;
	outbox->reserve[outbox->reserve_used++].ctx = ctx;
}

static void keep_request(struct ensemble *ensemble, const struct ensemble_op *ops, int count,
                         ensemble_answer_fn *answer, void *ctx)
{
	struct outbox *outbox = as_outbox(ensemble);
	struct outbox_request *request = NULL;

	assert(count >= 1 && count <= ENSEMBLE_OPS_MAX);
	if (outbox->reserve_used == 0)
		request = copy_request(outbox, ops, outbox->fate == ENSEMBLE_OK ? count : 0);
	if (!request) {
		/* Nothing may go out behind a request that is left out. */
		if (outbox->fate == ENSEMBLE_OK) {
			outbox->fate = ENSEMBLE_UNKNOWN;
			outbox->below->port->drop(outbox->below);
		}
		keep_bare(outbox, answer, ctx);
		return;
	}
	request->answer = answer;
	request->ctx = ctx;
	if (outbox->last)
		outbox->last->next = request;
	else
		outbox->first = request;
	outbox->last = request;
}

/* ---- letting go ---- */

/* The outbox is empty from here on; the caller frees the chunks. */
static struct outbox_request *take_all(struct outbox *outbox, struct outbox_chunk **ret_chunks)
{
	struct outbox_request *first = outbox->first;

	*ret_chunks = outbox->chunks;
	outbox->first = outbox->last = NULL;
	outbox->chunks = NULL;
	return first;
}

void outbox_send(struct outbox *outbox)
{
	struct outbox_chunk *chunks;
	struct outbox_request *request;

	if (outbox->fate != ENSEMBLE_OK)
		return; /* process() answers them */
	for (request = take_all(outbox, &chunks); request; request = request->next)
		outbox->below->port->submit(outbox->below, request->ops, request->count,
		                            request->answer, request->ctx);
	free_chunks(outbox, chunks);
}

static void answer_bare(struct outbox *outbox, const struct ensemble_answer *answer)
{
	unsigned count = outbox->reserve_used;

	for (unsigned i = 0; i < count; i++)
		outbox->reserve[i].answer(outbox->reserve[i].ctx, answer);
	outbox->reserve_used -= count;
	memmove(outbox->reserve, outbox->reserve + count,
	        outbox->reserve_used * sizeof(outbox->reserve[0]));
}

/* Answers all requests that will not be sent, when the engine knows that there is no connection. A
 * callback may make another request, which is answered as well. */
static void answer_all(struct outbox *outbox)
{
	while (!outbox->connected && !outbox_is_empty(outbox)) {
		struct ensemble_answer answer = {.result = outbox->fate};
		struct outbox_chunk *chunks;
		struct outbox_request *request = take_all(outbox, &chunks);

		for (; request; request = request->next)
			request->answer(request->ctx, &answer);
		free_chunks(outbox, chunks);
		answer_bare(outbox, &answer);
	}
}

/* ---- what the port below tells ---- */

static void on_connected(void *ctx, const struct ensemble_session *session, int64_t timeout_us,
                         int64_t connect_us)
{
	struct outbox *outbox = ctx;

	answer_all(outbox);
	outbox->connected = true;
	outbox->fate = ENSEMBLE_OK;
	outbox->events->connected(outbox->ctx, session, timeout_us, connect_us);
}

static void on_disconnected(void *ctx)
{
	struct outbox *outbox = ctx;

	outbox->connected = false;
	outbox->fate = ENSEMBLE_UNKNOWN;
	outbox->events->disconnected(outbox->ctx);
}

static bool on_needs_scout(void *ctx)
{
	struct outbox *outbox = ctx;

	return outbox->events->needs_scout(outbox->ctx);
}

static void on_renews(void *ctx)
{
	struct outbox *outbox = ctx;

	outbox->events->renews(outbox->ctx);
}

static void on_turned_away(void *ctx, const char *server)
{
	struct outbox *outbox = ctx;

	outbox->events->turned_away(outbox->ctx, server);
}

static void on_ended(void *ctx, bool refused)
{
	struct outbox *outbox = ctx;

	outbox->connected = false;
	outbox->fate = ENSEMBLE_UNKNOWN;
	answer_all(outbox);
	outbox->fate = refused ? ENSEMBLE_UNKNOWN : ENSEMBLE_GONE;
	outbox->events->ended(outbox->ctx, refused);
}

static void on_changed(void *ctx, const char *path, enum ensemble_change change)
{
	struct outbox *outbox = ctx;

	outbox->events->changed(outbox->ctx, path, change);
}

/* ---- the port ---- */

static int open_below(struct ensemble *ensemble, int64_t timeout_us,
                      const struct ensemble_session *session, const struct ensemble_events *events,
                      void *ctx)
{
	static const struct ensemble_events mine = {
		.connected = on_connected,
		.disconnected = on_disconnected,
		.needs_scout = on_needs_scout,
		.renews = on_renews,
		.turned_away = on_turned_away,
		.ended = on_ended,
		.changed = on_changed,
	};
	struct outbox *outbox = as_outbox(ensemble);
	int r = outbox->below->port->open(outbox->below, timeout_us, session, &mine, outbox);

	outbox->events = events;
	outbox->ctx = ctx;
	outbox->fate = r == 0 ? ENSEMBLE_UNKNOWN : ENSEMBLE_GONE;
	return r;
}

static void close_below(struct ensemble *ensemble, bool end_session)
{
	struct outbox *outbox = as_outbox(ensemble);

	outbox->connected = false;
	outbox->fate = ENSEMBLE_GONE;
	outbox->below->port->close(outbox->below, end_session);
	answer_all(outbox);
}

/* What is kept is answered UNKNOWN, as after any loss of a connection. */
static void rest_below(struct ensemble *ensemble)
{
	struct ensemble *below = as_outbox(ensemble)->below;

	assert(!as_outbox(ensemble)->connected);
	below->port->rest(below);
}

static void drop_below(struct ensemble *ensemble)
{
	struct ensemble *below = as_outbox(ensemble)->below;

	below->port->drop(below);
}

static int64_t prepare_below(struct ensemble *ensemble, struct pollfd *ret_pollfd)
{
	struct outbox *outbox = as_outbox(ensemble);
	int64_t wait = outbox->below->port->prepare(outbox->below, ret_pollfd);

	return outbox_is_empty(outbox) ? wait : 0;
}

static void process_below(struct ensemble *ensemble, short revents)
{
	struct outbox *outbox = as_outbox(ensemble);

	answer_all(outbox);
	outbox->below->port->process(outbox->below, revents);
	answer_all(outbox);
}

static const char *server_below(struct ensemble *ensemble)
{
	struct ensemble *below = as_outbox(ensemble)->below;

	return below->port->server(below);
}

static const char *given_up_below(struct ensemble *ensemble)
{
	struct ensemble *below = as_outbox(ensemble)->below;

	return below->port->given_up ? below->port->given_up(below) : NULL;
}

int outbox_begin(struct outbox *outbox, struct ensemble *below)
{
	static const struct ensemble_port port = {
		.open = open_below,
		.close = close_below,
		.rest = rest_below,
		.drop = drop_below,
		.submit = keep_request,
		.prepare = prepare_below,
		.process = process_below,
		.server = server_below,
		.given_up = given_up_below,
	};

	outbox->ensemble.port = &port;
	outbox->below = below;
	outbox->fate = ENSEMBLE_GONE;
	outbox->spare = make_chunk(CHUNK);
	return outbox->spare ? 0 : -ENOMEM;
}

void outbox_finish(struct outbox *outbox)
{
	struct outbox_chunk *chunks;

	assert(outbox_is_empty(outbox));
	(void)take_all(outbox, &chunks);
	free_chunks(outbox, chunks);
	free(outbox->spare);
}
