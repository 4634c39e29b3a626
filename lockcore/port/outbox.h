/* SPDX-License-Identifier: MIT
 *
 * outbox.h - a port in front of the port: it keeps all requests until they may leave.
 *
 * The requests of one turn leave at its end, by outbox_send(), when the caller has recorded the
 * turn. If the process dies before that, no request of the turn was sent.
 *
 *   engine ──submit()──► kept ──outbox_send()──► the port below
 *
 * When the connection ends, the kept requests are answered as if they had been sent, UNKNOWN or
 * GONE, and never leave. So are requests that come while there is no connection.
 */
#ifndef LOCKCORE_OUTBOX_H
#define LOCKCORE_OUTBOX_H

#include "port/ensemble.h"

/* Room for the answers of requests for which there was no memory: enough for all requests that an
 * engine can make in one turn. Pages of it that were never used take no memory. */
#define OUTBOX_RESERVE 32768

struct outbox_request;
struct outbox_chunk;

struct outbox {
	struct ensemble ensemble; /* first: the engine's port */
	struct ensemble *below;
	const struct ensemble_events *events;
	void *ctx;
	bool connected; /* as the engine was told last */
	/* OK: the kept requests are to be sent. Otherwise: their answer. */
	enum ensemble_result fate;
	struct outbox_request *first, *last;
	struct outbox_chunk *chunks; /* the memory of the kept requests; the newest first */
	struct outbox_chunk *spare;
	unsigned reserve_used;
	struct {
		ensemble_answer_fn *answer;
		void *ctx;
	} reserve[OUTBOX_RESERVE];
};

/* `outbox` is all 0 before. 0 or -ENOMEM; outbox_finish() must follow in either case. */
int outbox_begin(struct outbox *outbox, struct ensemble *below);
/* After close(). */
void outbox_finish(struct outbox *outbox);
/* Hands on the kept requests, in their order. Not to be called in a callback. */
void outbox_send(struct outbox *outbox);
bool outbox_is_empty(const struct outbox *outbox);

#endif
