/* SPDX-License-Identifier: MIT
 *
 * batch.c - creates and deletes of entries, several in one transaction.
 *
 * A transaction costs the ensemble little more than one write, so what comes up while
 * the answers of earlier ones are outstanding waits and goes out together: with little to do
 * everything is sent at once, with much to do the batches grow by themselves. A delete that hands
 * a lock over to another mount takes all with it at once: it would wait for a whole round trip.
 * Batches are transport: no grant relies on what was sent together, but for the guard.
 *
 * This must not break:
 *  - The order. Deletes go before creates, since an entry that leaves may block the next one. The
 *    creates of a lock keep their order, also where a transaction fails and they are sent again: so
 *    the next one waits until it is answered, and where several are unsent they go singly. Writes
 *    of questions (batch_submit) go behind all unsent requests, and a lock is listed only when none
 *    of its requests is unsent.
 *  - The token. Nodes made by one transaction share a czxid, so there is one create of a
 *    lock in each. It returns no Stat: the token is read when it is needed.
 *  - The others. A transaction fails as a whole, and nothing of it has happened. Each of it
 *    goes alone then, and so does what follows in its lock until a write to it is good.
 *  - The guard. When a taker got the lock while own leavers stood before it, they are deleted in
 *    one transaction with the check that the taker's entry is there, also where they go alone. If
 *    that is refused, they are held back until that entry was seen.
 *  - The unknown outcome: each request has its own, as if it had been sent alone.
 */
#include "lock/taker.h"

#include "pure/next.h"
#include "pure/node_data.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* So many requests may be unanswered before others wait. A thread that releases its lock and takes
 * it again waits for none of them. */
#define FLIGHTS_MAX 4
/* Fewer requests go singly: the answer of a single create has the Stat. */
#define TOGETHER_MIN 3

struct batch_item {
	struct entry *entry;
	enum ensemble_kind kind; /* CREATE, DELETE; CHECK: that it is there */
};

struct transaction {
	struct lc *lc;
	int count;
	struct batch_item items[];
};

/* A transaction that is being filled; the ZooKeeper client calls it a multi. */
struct multi {
	struct ensemble_op ops[ENSEMBLE_OPS_MAX];
	struct batch_item items[ENSEMBLE_OPS_MAX];
	int count;
	size_t bytes;
	bool bound; /* its parts depend on each other */
	uint64_t serial;
	int64_t begun_us; /* before any of it is sent */
};

static bool make_batch_room(struct batch *batch)
{
	size_t room = batch->room ? 2 * batch->room : 64;
	struct entry **entries;

	if (batch->count < batch->room)
		return true;
	entries = realloc(batch->entries, room * sizeof(*entries));
	if (!entries)
		return false;
	batch->entries = entries;
	batch->room = room;
	return true;
}

static void place_entry(struct entry *entry, size_t place)
{
	entry->lock->lc->batch->entries[place] = entry;
	entry->lock->lc->batch->count++;
	entry->lock->batch.unsent++;
	entry->lock->batch.creates += entry->state == ENTRY_CREATING;
}

bool batch_add(struct entry *entry)
{
	struct batch *batch = entry->lock->lc->batch;

	assert(entry->state == ENTRY_CREATING || entry->state == ENTRY_DELETING);
	if (!make_batch_room(batch))
		return false;
	place_entry(entry, batch->count);
	entry->pending++;
	return true;
}

/* The request has certainly not happened: it is sent again, alone, before all that came later. */
static void send_again(struct entry *entry)
{
	struct batch *batch = entry->lock->lc->batch;

	entry->lock->batch.last_write_ok = false;
	entry->alone = true;
	if ((entry->state == ENTRY_CREATING && !entry->wanted) || !make_batch_room(batch)) {
		entry_unsent(entry);
		return;
	}
	memmove(batch->entries + 1, batch->entries, batch->count * sizeof(batch->entries[0]));
	place_entry(entry, 0);
}

static void answer_one(struct entry *entry, const struct ensemble_answer *answer)
{
	if (entry->state == ENTRY_CREATING)
		entry_created(entry, answer);
	else
		entry_deleted(entry, answer);
}

static void answered_alone(void *ctx, const struct ensemble_answer *answer)
{
	struct entry *entry = ctx;

	entry->lock->lc->batch->flights--;
	answer_one(entry, answer);
}

/* A transaction has happened that would have failed without this entry. */
static void check_answered(struct entry *entry, const struct ensemble_answer *answer)
{
	entry->pending--;
	if (answer->result == ENSEMBLE_OK)
		taker_proved(taker_of(entry));
	taker_step(taker_of(entry));
}

/* A transaction of one guard's delete and the check of the next holder's entry was refused: one of
 * the two entries is gone, as a rule. What is shown of the next holder's entry from here on is
 * newer than its grant. */
static void guard_refused(struct entry *guard, struct entry *next)
{
	struct lock *lock = guard->lock;
	bool asked = lock->grant.unproved == next;

	lock->grant.held_back |= asked;
	entry_unsent(guard);
	if (asked && entry_is_seen(next))
		taker_proved(taker_of(next));
}

static void transaction_refused(struct transaction *transaction)
{
	const struct batch_item *items = transaction->items;
	bool guard = transaction->count == 2 && items[0].kind == ENSEMBLE_CHECK;

	for (int i = transaction->count - 1; i >= 0; i--) {
		struct entry *entry = items[i].entry;

		if (items[i].kind == ENSEMBLE_CHECK) {
			entry->pending--;
			taker_step(taker_of(entry));
		} else if (guard) {
			guard_refused(entry, items[0].entry);
		} else {
			send_again(entry);
		}
	}
}

static void transaction_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct transaction *transaction = ctx;
	bool definite = answer->result != ENSEMBLE_OK && answer->result != ENSEMBLE_UNKNOWN &&
	                answer->result != ENSEMBLE_GONE;

	transaction->lc->batch->flights--;
	for (int i = 0; i < transaction->count; i++)
		if (transaction->items[i].kind == ENSEMBLE_CREATE)
			transaction->items[i].entry->lock->batch.together = false;
	if (definite)
		transaction_refused(transaction);
	for (int i = 0; i < transaction->count && !definite; i++) {
		struct ensemble_answer one = {
			.result = answer->result,
			.path = answer->paths ? answer->paths[i] : NULL,
		};

		if (transaction->items[i].kind == ENSEMBLE_CHECK)
			check_answered(transaction->items[i].entry, &one);
		else
			answer_one(transaction->items[i].entry, &one);
	}
	free(transaction);
}

/* ---- sending ---- */

static void send_alone(struct entry *entry, const struct ensemble_op *op)
{
	entry->lock->lc->batch->flights++;
	lc_submit(entry->lock->lc, *op, answered_alone, entry);
}

static void free_op(struct ensemble_op *op)
{
	free((char *)op->path);
	free((void *)op->data);
}

static bool make_op(struct entry *entry, struct ensemble_op *ret_op)
{
	bool create = entry->state == ENTRY_CREATING;
	char data[NODE_DATA_ENTRY_MAX], *copy = NULL;
	size_t len = 0;

	if (create) {
		len = entry_format(entry, data);
		copy = malloc(len);
	}
	*ret_op = (struct ensemble_op){
		.kind = create ? ENSEMBLE_CREATE : ENSEMBLE_DELETE,
		.path = entry_path(entry),
		.data = copy,
		.data_len = (int)len,
		.version = ENSEMBLE_ANY_VERSION,
		.ephemeral = create,
		.sequence = create,
	};
	if (copy)
		memcpy(copy, data, len);
	if (ret_op->path && (copy || !create))
		return true;
	free_op(ret_op);
	return false;
}

static void send_together(struct lc *lc, const struct multi *multi, struct transaction *transaction)
{
	transaction->lc = lc;
	transaction->count = multi->count;
	memcpy(transaction->items, multi->items, (size_t)multi->count * sizeof(multi->items[0]));
	for (int i = 0; i < multi->count; i++) {
		multi->items[i].entry->lock->batch.together |=
			multi->items[i].kind == ENSEMBLE_CREATE;
		multi->items[i].entry->pending += multi->items[i].kind == ENSEMBLE_CHECK;
	}
	lc->batch->flights++;
	lc_submit_all(lc, multi->ops, multi->count, transaction_answered, transaction);
}

static void send_multi(struct lc *lc, struct multi *multi)
{
	size_t size = sizeof(struct transaction) + (size_t)multi->count * sizeof(struct batch_item);
	struct transaction *transaction = NULL;

	if (multi->count >= TOGETHER_MIN || multi->bound)
		transaction = malloc(size);
	if (transaction)
		send_together(lc, multi, transaction);
	for (int i = 0; i < multi->count && !transaction; i++) {
		if (!multi->bound)
			send_alone(multi->items[i].entry, &multi->ops[i]);
		else if (multi->items[i].kind != ENSEMBLE_CHECK)
			entry_unsent(multi->items[i].entry); /* no memory */
	}
	for (int i = 0; i < multi->count; i++)
		free_op(&multi->ops[i]);
	multi->count = 0;
	multi->bytes = 0;
	multi->bound = false;
	multi->serial = ++lc->batch->multis;
}

static void take_op(struct multi *multi, struct entry *entry, const struct ensemble_op *op)
{
	multi->ops[multi->count] = *op;
	multi->items[multi->count++] = (struct batch_item){.entry = entry, .kind = op->kind};
	multi->bytes += strlen(op->path) + (size_t)op->data_len + 64;
}

/* Sends the transaction, unless an operation and a check fit into it. */
static void make_place(struct lc *lc, struct multi *multi)
{
	if (multi->count + 2 > ENSEMBLE_OPS_MAX ||
	    multi->bytes + 2 * (LC_PATH_MAX + NODE_DATA_ENTRY_MAX) > ENSEMBLE_BYTES_MAX)
		send_multi(lc, multi);
}

/* Adds the check of the next holder's entry: until that is seen, the leaver's entry guards the
 * lock. False: no memory. */
static bool take_check(struct multi *multi, struct entry *next)
{
	struct ensemble_op op = {
		.kind = ENSEMBLE_CHECK,
		.path = entry_path(next),
		.version = ENSEMBLE_ANY_VERSION,
	};

	if (!op.path)
		return false;
	multi->bound = true;
	take_op(multi, next, &op);
	return true;
}

static enum next_delete how_to_delete(const struct entry *entry)
{
	const struct lock *lock = entry->lock;

	return next_delete(entry->number, lock->grant.unproved ? lock->grant.unproved->number : -1,
	                   lock->grant.held_back);
}

/* One check is enough for all deletes of its lock in a transaction. False: no memory, or the delete
 * is held back. */
static bool take_delete(struct multi *multi, struct entry *entry, const struct ensemble_op *op,
                        enum next_delete how)
{
	struct lock *lock = entry->lock;

	if (how == NEXT_DELETE_NOT)
		return false;
	if (how == NEXT_DELETE_CHECKED && lock->batch.checked_in != multi->serial) {
		if (!take_check(multi, lock->grant.unproved))
			return false;
		lock->batch.checked_in = multi->serial;
	}
	take_op(multi, entry, op);
	return true;
}

/* `alone`: in no transaction with others. A delete that needs a check has a transaction with
 * that. */
static void send_delete(struct multi *multi, struct entry *entry, struct ensemble_op *op,
                        bool alone)
{
	enum next_delete how = how_to_delete(entry);
	bool taken;

	if (how != NEXT_DELETE_NOT) {
		entry->sent = true;
		entry->in_doubt |= how == NEXT_DELETE_SINGLY;
	}
	if (alone && how == NEXT_DELETE_SINGLY) {
		send_alone(entry, op);
		free_op(op);
		return;
	}
	if (alone)
		send_multi(entry->lock->lc, multi);
	taken = take_delete(multi, entry, op, how);
	if (!taken) {
		free_op(op);
		entry_unsent(entry);
	} else if (alone) {
		send_multi(entry->lock->lc, multi);
	}
}

/* False: the create has to wait until the one before it is answered. */
static bool send_entry(struct entry *entry, struct multi *multi)
{
	struct lock *lock = entry->lock;
	bool create = entry->state == ENTRY_CREATING;
	bool alone =
		entry->alone || !lock->batch.last_write_ok || (create && lock->batch.creates > 1);
	struct ensemble_op op;

	if (create && lock->batch.together)
		return false;
	lock->batch.unsent--;
	lock->batch.creates -= create;
	entry->alone = false;
	entry->sent_us = multi->begun_us;
	make_place(entry->lock->lc, multi);
	if (!make_op(entry, &op)) {
		entry_unsent(entry);
		return true;
	}
	if (!create) {
		send_delete(multi, entry, &op, alone);
	} else if (alone) {
		send_alone(entry, &op);
		free_op(&op);
	} else {
		take_op(multi, entry, &op);
	}
	return true;
}

static void send_all(struct lc *lc, size_t count, enum entry_state which, struct multi *multi)
{
	for (size_t i = 0; i < count; i++) {
		/* Looked up anew: the array moves when an entry that could not be sent is added
		 * again. */
		struct entry *entry = lc->batch->entries[i];

		if (entry && entry->state == which && send_entry(entry, multi))
			lc->batch->entries[i] = NULL;
	}
}

void batch_send(struct lc *lc)
{
	struct batch *batch = lc->batch;
	struct multi multi;
	size_t left = 0;

	if (batch->count == 0)
		return;
	multi.count = 0;
	multi.bytes = 0;
	multi.bound = false;
	multi.serial = ++batch->multis;
	multi.begun_us = lc_now(lc);
	send_all(lc, batch->count, ENTRY_DELETING, &multi);
	send_all(lc, batch->count, ENTRY_CREATING, &multi);
	send_multi(lc, &multi);
	for (size_t i = 0; i < batch->count; i++)
		if (batch->entries[i])
			batch->entries[left++] = batch->entries[i];
	batch->count = left;
}

void batch_submit(struct lc *lc, struct ensemble_op op, ensemble_answer_fn *answer, void *ctx)
{
	batch_send(lc);
	lc_submit(lc, op, answer, ctx);
}

/* A delete is unsent that another mount waits for: nobody holds here, and entries of other clients
 * are in the queue. */
static bool hands_over(const struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		const struct entry *entry = batch->entries[i];

		if (entry->state == ENTRY_DELETING && entry->lock->takers.holding == 0 &&
		    entry->lock->known.others > 0)
			return true;
	}
	return false;
}

void batch_flush(struct lc *lc)
{
	if (lc_ready(lc) && (lc->batch->flights < FLIGHTS_MAX || hands_over(lc->batch)))
		batch_send(lc);
}

void batch_clear(struct lc *lc)
{
	struct entry **entries = lc->batch->entries;
	size_t count = lc->batch->count;

	lc->batch->entries = NULL;
	lc->batch->count = lc->batch->room = 0;
	for (size_t i = 0; i < count; i++) {
		entries[i]->lock->batch.unsent--;
		entries[i]->lock->batch.creates -= entries[i]->state == ENTRY_CREATING;
		entry_unsent(entries[i]);
	}
	free(entries);
}
