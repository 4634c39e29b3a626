/* SPDX-License-Identifier: MIT
 *
 * outbox.h - a port in front of the port: it keeps all requests until they may leave.
 *
 * What an engine asks in one turn leaves at the end of it, by outbox_send(): when the caller has
 * recorded that it was asked. If the process dies before that, nothing of the turn was sent.
 *
 *   engine ──submit()──► kept ──outbox_send()──► the port below
 *
 * When the connection ends, what is kept is answered as if it had been sent, UNKNOWN or GONE, and
 * it never leaves. So it is with what is asked while there is no connection.
 */
#ifndef LOCKCORE_OUTBOX_H
#define LOCKCORE_OUTBOX_H

#include "ensemble.h"

/* Answers that are owed for requests for which there was no memory: all that an engine can ask
 * for in one turn has room. Pages that were never needed are no memory. */
#define OUTBOX_RESERVE 32768

struct outbox_request;
struct outbox_chunk;

struct outbox {
	struct ensemble ensemble; /* first: what the engine uses */
	struct ensemble *below;
	const struct ensemble_events *events;
	void *ctx;
	bool connected; /* as told by connected() and disconnected() */
	/* OK: what is kept is to be sent; otherwise what it is answered. */
	enum ensemble_result fate;
	struct outbox_request *first, *last;
	struct outbox_chunk *chunks; /* the memory of those that are kept; the newest first */
	struct outbox_chunk *spare;
	unsigned reserve_used;
	struct {
		ensemble_answer_fn *answer;
		void *ctx;
	} reserve[OUTBOX_RESERVE];
};

/* In memory that is all 0. 0 or -ENOMEM; outbox_finish() follows in either case. */
int outbox_begin(struct outbox *outbox, struct ensemble *below);
/* After close(). */
void outbox_finish(struct outbox *outbox);
/* Hands on what is kept, in its order. Not from a callback. */
void outbox_send(struct outbox *outbox);
/* Nothing is kept. */
bool outbox_is_empty(const struct outbox *outbox);

#endif
