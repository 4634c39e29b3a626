/* SPDX-License-Identifier: MIT
 *
 * batch.c - creates and deletes of entries, several in one transaction.
 *
 * A transaction costs the ensemble little more than one write, so what comes up while
 * the answers of earlier ones are outstanding is kept and goes out together: with little to do
 * everything is sent at once, with much to do the batches grow by themselves.
 *
 * What must not get lost by that:
 *  - The order. Deletes go before creates, since a taker that leaves may stand in the way of
 *    the next one. The creates of a lock keep their order, also where a transaction fails and
 *    they are sent again: so the next one waits until it is answered, and where several
 *    are kept they go singly. Whatever else is written (lc_submit) sends what is
 *    kept first, and a lock is listed only when nothing of it is kept.
 *  - The token. Nodes made by one transaction share a czxid, so there is one create of a
 *    lock in each. It gives no Stat back: the token is asked for when it is wanted.
 *  - The others. A transaction fails as a whole, and nothing of it has happened. Each of it
 *    goes alone then, and so does what follows in its lock until that has proved good.
 *  - The unknown outcome, which is each one's for itself, as if it had been sent alone.
 */
#include "engine.h"
#include "record.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Unanswered at a time. One thread's release, and its next take, wait for nothing. */
#define FLIGHTS_MAX 4
/* Fewer go singly: that gives the Stat. */
#define TOGETHER_MIN 3

struct transaction {
	struct lc *lc;
	int count;
	struct lc_taker *takers[];
};

struct parcel {
	struct ensemble_op ops[ENSEMBLE_OPS_MAX];
	struct lc_taker *takers[ENSEMBLE_OPS_MAX];
	int count;
	size_t bytes;
};

static bool make_room(struct batch *batch)
{
	size_t room = batch->room ? 2 * batch->room : 64;
	struct lc_taker **takers;

	if (batch->count < batch->room)
		return true;
	takers = realloc(batch->takers, room * sizeof(*takers));
	if (!takers)
		return false;
	batch->takers = takers;
	batch->room = room;
	return true;
}

static void keep(struct lc_taker *taker, size_t place)
{
	taker->lc->batch.takers[place] = taker;
	taker->lc->batch.count++;
	taker->lock->kept++;
	taker->lock->kept_creates += taker->znode == ZNODE_CREATING;
}

bool batch_add(struct lc_taker *taker)
{
	struct batch *batch = &taker->lc->batch;

	assert(taker->znode == ZNODE_CREATING || taker->znode == ZNODE_DELETING);
	if (!make_room(batch))
		return false;
	keep(taker, batch->count);
	taker->pending++;
	return true;
}

/* It certainly did not happen: before all that came later. */
static void again(struct lc_taker *taker)
{
	struct batch *batch = &taker->lc->batch;

	taker->lock->proven = false;
	taker->alone = true;
	if ((taker->znode == ZNODE_CREATING && !taker_wants(taker)) || !make_room(batch)) {
		taker_unsent(taker);
		return;
	}
	memmove(batch->takers + 1, batch->takers, batch->count * sizeof(batch->takers[0]));
	keep(taker, 0);
}

static void answer_one(struct lc_taker *taker, const struct ensemble_answer *answer)
{
	if (taker->znode == ZNODE_CREATING)
		taker_created(taker, answer);
	else
		taker_deleted(taker, answer);
}

static void answered_alone(void *ctx, const struct ensemble_answer *answer)
{
	struct lc_taker *taker = ctx;

	taker->lc->batch.flights--;
	answer_one(taker, answer);
}

static void answered(void *ctx, const struct ensemble_answer *answer)
{
	struct transaction *transaction = ctx;
	bool definite = answer->result != ENSEMBLE_OK && answer->result != ENSEMBLE_UNKNOWN &&
	                answer->result != ENSEMBLE_GONE;

	transaction->lc->batch.flights--;
	for (int i = 0; i < transaction->count; i++)
		if (transaction->takers[i]->znode == ZNODE_CREATING)
			transaction->takers[i]->lock->together = false;
	for (int i = transaction->count - 1; i >= 0 && definite; i--)
		again(transaction->takers[i]);
	for (int i = 0; i < transaction->count && !definite; i++) {
		struct ensemble_answer one = {
			.result = answer->result, .path = answer->paths ? answer->paths[i] : NULL,
		};

		answer_one(transaction->takers[i], &one);
	}
	free(transaction);
}

/* ---- sending ---- */

static void send_alone(struct lc_taker *taker, const struct ensemble_op *op)
{
	taker->lc->batch.flights++;
	lc_submit_beside(taker->lc, op, 1, answered_alone, taker);
}

static void free_op(struct ensemble_op *op)
{
	free((char *)op->path);
	free((void *)op->data);
}

static bool make_op(struct lc_taker *taker, struct ensemble_op *ret_op)
{
	bool create = taker->znode == ZNODE_CREATING;
	char data[RECORD_ENTRY_MAX], *copy = NULL;
	size_t len = 0;

	if (create) {
		len = entry_format(taker, data);
		copy = malloc(len);
	}
	*ret_op = (struct ensemble_op){
		.kind = create ? ENSEMBLE_CREATE : ENSEMBLE_DELETE, .path = taker_path(taker),
		.data = copy, .data_len = (int)len, .version = ENSEMBLE_ANY_VERSION,
		.ephemeral = create, .sequence = create,
	};
	if (copy)
		memcpy(copy, data, len);
	if (ret_op->path && (copy || !create))
		return true;
	free_op(ret_op);
	return false;
}

static void send_parcel(struct lc *lc, struct parcel *parcel)
{
	struct transaction *transaction = NULL;

	if (parcel->count >= TOGETHER_MIN)
		transaction = malloc(sizeof(*transaction) + (size_t)parcel->count * sizeof(parcel->takers[0]));
	if (transaction) {
		transaction->lc = lc;
		transaction->count = parcel->count;
		memcpy(transaction->takers, parcel->takers, (size_t)parcel->count * sizeof(parcel->takers[0]));
		for (int i = 0; i < parcel->count; i++)
			parcel->takers[i]->lock->together |= parcel->ops[i].kind == ENSEMBLE_CREATE;
		lc->batch.flights++;
		lc_submit_beside(lc, parcel->ops, parcel->count, answered, transaction);
	} else {
		for (int i = 0; i < parcel->count; i++)
			send_alone(parcel->takers[i], &parcel->ops[i]);
	}
	for (int i = 0; i < parcel->count; i++)
		free_op(&parcel->ops[i]);
	parcel->count = 0;
	parcel->bytes = 0;
}

static void take(struct parcel *parcel, struct lc_taker *taker, struct ensemble_op *op)
{
	size_t bytes = strlen(op->path) + (size_t)op->data_len + 64;

	if (parcel->count == ENSEMBLE_OPS_MAX || parcel->bytes + bytes > ENSEMBLE_BYTES_MAX)
		send_parcel(taker->lc, parcel);
	parcel->ops[parcel->count] = *op;
	parcel->takers[parcel->count++] = taker;
	parcel->bytes += bytes;
}

/* False: it has to wait for the one before it. */
static bool go(struct lc_taker *taker, struct parcel *parcel)
{
	struct lock *lock = taker->lock;
	bool create = taker->znode == ZNODE_CREATING;
	bool alone = taker->alone || !lock->proven || (create && lock->kept_creates > 1);
	struct ensemble_op op;

	if (create && lock->together)
		return false;
	lock->kept--;
	lock->kept_creates -= create;
	taker->alone = false;
	taker->sent_us = lc_now(taker->lc);
	if (create)
		taker->created_at = lock->list_sent;
	if (!make_op(taker, &op)) {
		taker_unsent(taker);
	} else if (alone) {
		send_alone(taker, &op);
		free_op(&op);
	} else {
		take(parcel, taker, &op);
	}
	return true;
}

static void go_all(struct lc *lc, size_t count, enum znode_state which, struct parcel *parcel)
{
	for (size_t i = 0; i < count; i++) {
		/* Which may move when one that could not go is added again. */
		struct lc_taker *taker = lc->batch.takers[i];

		if (taker && taker->znode == which && go(taker, parcel))
			lc->batch.takers[i] = NULL;
	}
}

void batch_send(struct lc *lc)
{
	struct batch *batch = &lc->batch;
	struct parcel parcel;
	size_t left = 0;

	if (batch->count == 0)
		return;
	parcel.count = 0;
	parcel.bytes = 0;
	go_all(lc, batch->count, ZNODE_DELETING, &parcel);
	go_all(lc, batch->count, ZNODE_CREATING, &parcel);
	send_parcel(lc, &parcel);
	for (size_t i = 0; i < batch->count; i++)
		if (batch->takers[i])
			batch->takers[left++] = batch->takers[i];
	batch->count = left;
}

void batch_flush(struct lc *lc)
{
	if (lc->batch.flights < FLIGHTS_MAX && session_ready(lc))
		batch_send(lc);
}

void batch_clear(struct lc *lc)
{
	struct lc_taker **takers = lc->batch.takers;
	size_t count = lc->batch.count;

	lc->batch.takers = NULL;
	lc->batch.count = lc->batch.room = 0;
	for (size_t i = 0; i < count; i++) {
		takers[i]->lock->kept--;
		takers[i]->lock->kept_creates -= takers[i]->znode == ZNODE_CREATING;
		taker_unsent(takers[i]);
	}
	free(takers);
}
