/* SPDX-License-Identifier: MIT
 *
 * batch.h - creates and deletes of entries: those of one turn go out together. See batch.c.
 */
#ifndef LOCKCORE_BATCH_H
#define LOCKCORE_BATCH_H

#include "session/base.h"

struct entry;

struct batch {
	struct entry **entries; /* CREATING or DELETING, and not sent yet */
	size_t count, room;
	unsigned flights; /* requests and transactions that are not answered */
	uint64_t multis;  /* so far */
};

/* Keeps the create or the delete of an entry, as its state says. False: no memory. */
bool batch_add(struct entry *entry);
/* Sends what is unsent, unless much is under way and no other mount waits for it. */
void batch_flush(struct lc *lc);
void batch_send(struct lc *lc);
/* The connection is lost: requests that are unsent count as not done. */
void batch_clear(struct lc *lc);
/* Does as lc_submit(), behind all that is unsent. */
void batch_submit(struct lc *lc, struct ensemble_op op, ensemble_answer_fn *answer, void *ctx);

#endif
