/* SPDX-License-Identifier: MIT
 *
 * batch.c - creates and deletes of entries, several in one transaction.
 *
 * A transaction costs the ensemble little more than one write, so what comes up while
 * the answers of earlier ones are outstanding is kept and goes out together: with little to do
 * everything is sent at once, with much to do the batches grow by themselves.
 *
 * A release and the next take of the same lock, met here together, need no listing: the new
 * entry is made in the transaction that deletes the old one, and if their numbers follow
 * each other nobody is in between.
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
 *  - The guard. Where a lock was handed to the next of ours, the leaver's entry is deleted in
 *    one transaction with the check that the next one's is there.
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

struct item {
	struct lc_taker *taker;
	enum ensemble_kind kind;     /* CREATE, DELETE; CHECK: that it is there */
};

struct transaction {
	struct lc *lc;
	int count;
	struct item items[];
};

struct parcel {
	struct ensemble_op ops[ENSEMBLE_OPS_MAX];
	struct item items[ENSEMBLE_OPS_MAX];
	int count;
	size_t bytes;
	bool bound;                  /* its parts depend on each other */
	uint64_t serial;
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

/* A transaction has happened that would have failed without this entry. */
static void checked(struct lc_taker *taker, const struct ensemble_answer *answer)
{
	taker->pending--;
	if (answer->result == ENSEMBLE_OK)
		lock_proved(taker->lock, taker);
	taker_step(taker);
}

static void refused(struct transaction *transaction)
{
	for (int i = transaction->count - 1; i >= 0; i--) {
		struct lc_taker *taker = transaction->items[i].taker;

		if (transaction->items[i].kind != ENSEMBLE_CHECK) {
			again(taker);
			continue;
		}
		taker->pending--;
		taker->lock->proven = false;
		taker_step(taker);
	}
}

static void answered(void *ctx, const struct ensemble_answer *answer)
{
	struct transaction *transaction = ctx;
	bool definite = answer->result != ENSEMBLE_OK && answer->result != ENSEMBLE_UNKNOWN &&
	                answer->result != ENSEMBLE_GONE;

	transaction->lc->batch.flights--;
	for (int i = 0; i < transaction->count; i++)
		if (transaction->items[i].kind == ENSEMBLE_CREATE)
			transaction->items[i].taker->lock->together = false;
	if (definite)
		refused(transaction);
	for (int i = 0; i < transaction->count && !definite; i++) {
		struct ensemble_answer one = {
			.result = answer->result, .path = answer->paths ? answer->paths[i] : NULL,
		};

		if (transaction->items[i].kind == ENSEMBLE_CHECK)
			checked(transaction->items[i].taker, &one);
		else
			answer_one(transaction->items[i].taker, &one);
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

static void send_together(struct lc *lc, const struct parcel *parcel, struct transaction *transaction)
{
	transaction->lc = lc;
	transaction->count = parcel->count;
	memcpy(transaction->items, parcel->items, (size_t)parcel->count * sizeof(parcel->items[0]));
	for (int i = 0; i < parcel->count; i++) {
		parcel->items[i].taker->lock->together |= parcel->items[i].kind == ENSEMBLE_CREATE;
		parcel->items[i].taker->pending += parcel->items[i].kind == ENSEMBLE_CHECK;
	}
	lc->batch.flights++;
	lc_submit_beside(lc, parcel->ops, parcel->count, answered, transaction);
}

static void send_parcel(struct lc *lc, struct parcel *parcel)
{
	size_t size = sizeof(struct transaction) + (size_t)parcel->count * sizeof(struct item);
	struct transaction *transaction = NULL;

	if (parcel->count >= TOGETHER_MIN || parcel->bound)
		transaction = malloc(size);
	if (transaction)
		send_together(lc, parcel, transaction);
	for (int i = 0; i < parcel->count && !transaction; i++) {
		if (!parcel->bound)
			send_alone(parcel->items[i].taker, &parcel->ops[i]);
		else if (parcel->items[i].kind != ENSEMBLE_CHECK)
			taker_unsent(parcel->items[i].taker);   /* no memory */
	}
	for (int i = 0; i < parcel->count; i++)
		free_op(&parcel->ops[i]);
	parcel->count = 0;
	parcel->bytes = 0;
	parcel->bound = false;
	parcel->serial = ++lc->batch.parcels;
}

static void take(struct parcel *parcel, struct lc_taker *taker, const struct ensemble_op *op)
{
	parcel->ops[parcel->count] = *op;
	parcel->items[parcel->count++] = (struct item){.taker = taker, .kind = op->kind};
	parcel->bytes += strlen(op->path) + (size_t)op->data_len + 64;
}

/* For an operation and a check. */
static void make_place(struct lc *lc, struct parcel *parcel)
{
	if (parcel->count + 2 > ENSEMBLE_OPS_MAX ||
	    parcel->bytes + 2 * (LC_PATH_MAX + RECORD_ENTRY_MAX) > ENSEMBLE_BYTES_MAX)
		send_parcel(lc, parcel);
}

/* The leaver's entry guards the lock until that of the next one was seen. */
static bool take_check(struct parcel *parcel, struct lc_taker *next)
{
	struct ensemble_op op = {
		.kind = ENSEMBLE_CHECK, .path = taker_path(next), .version = ENSEMBLE_ANY_VERSION,
	};

	if (!op.path)
		return false;
	parcel->bound = true;
	take(parcel, next, &op);
	return true;
}

static bool take_delete(struct parcel *parcel, struct lc_taker *taker, const struct ensemble_op *op)
{
	struct lock *lock = taker->lock;

	if (lock->leaving_in != parcel->serial) {
		if (lock->unproved && !take_check(parcel, lock->unproved))
			return false;
		lock->leaving_in = parcel->serial;
		lock->leaving = -1;
	}
	if (taker->first && taker->number > lock->leaving)
		lock->leaving = taker->number;
	take(parcel, taker, op);
	return true;
}

/* Made in the transaction that deletes the one who was first: if its number is the next, it
 * is first itself. That one was there until then, and nobody came in between. */
static void take_create(struct parcel *parcel, struct lc_taker *taker, const struct ensemble_op *op)
{
	struct lock *lock = taker->lock;

	if (lock->leaving_in == parcel->serial && lock->leaving >= 0) {
		taker->follows = lock->leaving;
		parcel->bound = true;
		/* It is the only one who may want it. */
		if (lock->waiting == 1 && taker->state == TAKER_WAITING && lock->holding == 0 &&
		    !lock->unresolved)
			lock_unwant_list(lock);
	}
	take(parcel, taker, op);
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
	taker->follows = -1;
	taker->sent_us = lc_now(taker->lc);
	if (create)
		taker->created_at = lock->list_sent;
	make_place(taker->lc, parcel);
	if ((alone && !create && lock->unproved) || !make_op(taker, &op)) {
		taker_unsent(taker);
		return true;
	}
	if (!alone && create) {
		take_create(parcel, taker, &op);
	} else if (!alone && take_delete(parcel, taker, &op)) {
		return true;
	} else if (!alone) {
		free_op(&op);
		taker_unsent(taker);
	} else {
		send_alone(taker, &op);
		free_op(&op);
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
	parcel.bound = false;
	parcel.serial = ++batch->parcels;
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
