/* SPDX-License-Identifier: MIT
 *
 * asking.c - see asking.h.
 *
 * Without limits a thousand processes that all read `holder` of a long queue would cause a
 * thousand listings. Takers would wait behind them, since a session's requests are answered in
 * their order. So:
 *
 *  - A question waits at a gate, where users take turns. When its turn comes, one request is sent
 *    for all that wait for the same, whose ever turn it is. A question that comes later never
 *    shares the answer, which may be older than what this process has done in between: it is sent
 *    when this one is answered.
 *  - One list at a time is under way in all, since lists may be long. After it no list is sent for
 *    a time that grows with its length. For other reads each user has a share.
 *  - Users take turns in being told, too. Only some readers are told in a turn of the loop, and
 *    none for a while after it, since each of them may ask again at once.
 *  - Reads go out last in the turn: behind heartbeats, creates and deletes.
 *  - What nobody wants to know any more is not sent, and its answer is dropped.
 */
#include "ask/asking.h"

#include "ask/call.h"
#include "lock/lock_watch.h"
#include "pure/limits.h"
#include "pure/node_data.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static struct known_slots *slots_of(struct lc *lc, const struct ensemble_stat *stat)
{
	return &lc->reads->known_slots[(uint64_t)stat->czxid % LC_KNOWN_SLOTS];
}

void asking_learn_slots(struct lc *lc, const struct ensemble_stat *stat, const void *data,
                        size_t len)
{
	*slots_of(lc, stat) = (struct known_slots){
		.czxid = stat->czxid,
		.mzxid = stat->mzxid,
		.slots = node_data_slots(data, len),
	};
}

/* ---- readings ---- */

/* Lists wait in a queue of their own. */
static struct gate *gate_of(const struct reading *reading)
{
	struct reads *reads = reading->lc->reads;

	return reading->kind == READING_QUEUE ? &reads->lists : &reads->reads;
}

static struct reading *reading_of(struct gate_item *turn)
{
	return (struct reading *)((char *)turn - offsetof(struct reading, turn));
}

/* `list`: NULL for none. */
static void move_to(struct reading *reading, struct reading **list)
{
	if (reading->list)
		DL_DELETE(*reading->list, reading);
	reading->list = list;
	if (list)
		DL_APPEND(*list, reading);
}

static void forget_answer(struct reading *reading)
{
	queue_finish(&reading->queue);
	free(reading->data);
	free(reading->text);
	free(reading->names);
	reading->data = reading->text = NULL;
	reading->names = NULL;
}

static void free_if_unused(struct reading *reading)
{
	if (reading->readers || reading->outstanding > 0)
		return;
	move_to(reading, NULL);
	gate_leave(gate_of(reading), &reading->turn);
	forget_answer(reading);
	free(reading->entries);
	free(reading->locks);
	free(reading);
}

static struct reading *make_reading(struct lc *lc, enum reading_kind kind, const char *path)
{
	size_t size = strlen(path) + 1;
	struct reading *reading = calloc(1, sizeof(*reading) + size);

	if (!reading)
		return NULL;
	reading->lc = lc;
	reading->kind = kind;
	memcpy(reading->path, path, size);
	HASH_VALUE(path, size, reading->hash);
	return reading;
}

static bool reads_the_same(const struct reading *a, const struct reading *b)
{
	return a->kind == b->kind && a->hash == b->hash && strcmp(a->path, b->path) == 0;
}

/* ---- readers ---- */

int reader_ask(struct reader *reader, struct lc_call *call, enum reading_kind kind,
               const char *path)
{
	struct lc *lc = call->lc;
	struct reading *reading = make_reading(lc, kind, path);

	assert(!reader->reading);
	if (!reading)
		return -ENOMEM;
	if (!gate_join(gate_of(reading), call->uid, &reading->turn)) {
		free(reading);
		return -ENOMEM;
	}
	move_to(reading, &lc->reads->waiting[reading->hash % READS_ROWS]);
	DL_APPEND(reading->readers, reader);
	reader->call = call;
	reader->reading = reading;
	call->reads++;
	call->waiting++;
	return 0;
}

/* The reader has nothing to do with its reading any more. */
static void part(struct reader *reader)
{
	struct reading *reading = reader->reading;

	DL_DELETE(reading->readers, reader);
	gate_leave(&reading->lc->reads->due, &reader->told);
	reader->reading = NULL;
	reader->call->reads--;
	if (reading->turn.state == GATE_WAITS)
		reader->call->waiting--;
}

void reader_cancel(struct reader *reader)
{
	struct reading *reading = reader->reading;

	if (!reading)
		return;
	part(reader);
	free_if_unused(reading);
}

bool reader_is_answered(const struct reader *reader)
{
	return reader->told.state == GATE_WAITS;
}

/* ---- asking ---- */

static void answered(void *ctx, const struct ensemble_answer *answer);
static void slots_answered(void *ctx, const struct ensemble_answer *answer);

static void submit(struct reading *reading)
{
	struct ensemble_op op = ensemble_get(reading->path);
	struct reader *reader;

	if (reading->kind == READING_NEW)
		batch_submit(reading->lc, ensemble_sync(reading->path), lc_ignore, NULL);
	if (reading->kind == READING_QUEUE) {
		if (reading->with_data) {
			reading->outstanding++;
			batch_submit(reading->lc, op, slots_answered, reading);
		}
		op.kind = ENSEMBLE_CHILDREN;
		DL_FOREACH(reading->readers, reader)
			op.watch |= reader->watch;
	} else if (reading->kind != READING_ENTRY) {
		reading->watched =
			lock_watch_by_read(reading->lc, reading->path, reading->readers->call->uid);
		op.watch = reading->watched;
	}
	reading->outstanding++;
	batch_submit(reading->lc, op, answered, reading);
}

static struct reading *find_same(struct reading *list, const struct reading *reading)
{
	struct reading *other;

	DL_FOREACH(list, other)
		if (other != reading && reads_the_same(other, reading))
			return other;
	return NULL;
}

static void waits_no_more(struct reader *reader)
{
	reader->call->waiting--;
	reader->call->sent_us = lc_now(reader->call->lc);
}

/* `from` was not sent, so it has one reader. */
static void join(struct reading *from, struct reading *to)
{
	struct reader *reader = from->readers;

	DL_DELETE(from->readers, reader);
	DL_APPEND(to->readers, reader);
	reader->reading = to;
	waits_no_more(reader);
	free_if_unused(from);
}

/* In its turn, with all that wait for the same. */
static void go(struct reading *reading)
{
	struct reads *reads = reading->lc->reads;
	struct reading *row = *reading->list, *same = find_same(reads->unsent, reading);
	struct reading *to = same ? same : reading, *other, *next;

	DL_FOREACH_SAFE(row, other, next)
		if (other != reading && reads_the_same(other, to))
			join(other, to);
	if (same) {
		join(reading, same);
	} else {
		waits_no_more(reading->readers);
		move_to(reading, &reads->unsent);
	}
}

/* Sends readings that wait; of the same one only one is under way at a time. */
static void send_those_that_go(struct reads *reads)
{
	struct reading *reading, *next;

	DL_FOREACH_SAFE(reads->unsent, reading, next) {
		if (find_same(reads->under_way, reading))
			continue;
		move_to(reading, &reads->under_way);
		submit(reading);
	}
}

void asking_finish(struct lc *lc)
{
	assert(!lc->reads->reads.users && !lc->reads->lists.users && !lc->reads->due.users);
}

void asking_send(struct lc *lc)
{
	static const struct gate_limits shares = {
		.all = READS_MAX,
		.of_root = ROOT_READS_MAX,
		.of_user = USER_READS_MAX,
	};
	struct gate_item *turn;

	if (!session_may_ask(lc))
		return;
	while ((turn = gate_next(&lc->reads->reads, &shares)))
		go(reading_of(turn));
	if (lc->reads->rest_until_us <= lc_now(lc) &&
	    (turn = gate_next(&lc->reads->lists, &gate_one)))
		go(reading_of(turn));
	send_those_that_go(lc->reads);
}

/* ---- answers ---- */

static bool copy_data(struct reading *reading, const struct ensemble_answer *answer)
{
	size_t len = (size_t)answer->data_len;

	reading->data = malloc(len + 1);
	if (!reading->data)
		return false;
	if (len > 0)
		memcpy(reading->data, answer->data, len);
	reading->data[len] = '\0';
	reading->data_len = len;
	return true;
}

static bool copy_names(struct reading *reading, const struct ensemble_answer *answer)
{
	size_t count = (size_t)answer->name_count, bytes = 1;
	char *name;

	for (size_t i = 0; i < count; i++)
		bytes += strlen(answer->names[i]) + 1;
	reading->text = name = malloc(bytes);
	reading->names = malloc((count + 1) * sizeof(*reading->names));
	if (!reading->text || !reading->names)
		return false;
	for (size_t i = 0; i < count; i++) {
		reading->names[i] = name;
		name = stpcpy(name, answer->names[i]) + 1;
	}
	reading->name_count = count;
	return true;
}

/* Their takers may have left, and be forgotten, before a reader is told. */
static void mark_own(struct reading *reading)
{
	struct lock *lock = lock_find(reading->lc, reading->path, strlen(reading->path));

	for (size_t i = 0; lock && i < reading->queue.count; i++) {
		struct queue_entry *entry = &reading->queue.entries[i];

		entry->own = entry_of_node(lock, entry->znode, &entry->name);
	}
}

/* With more than one entry, the number of slots decides which ones hold. */
static int judge_names(struct reading *reading)
{
	const struct known_slots *known = slots_of(reading->lc, &reading->stat);
	int r = queue_build(reading->lc->clients, reading->names, reading->name_count,
	                    &reading->queue);

	if (r < 0 || reading->queue.count <= 1)
		return r;
	if (known->czxid != reading->stat.czxid || known->mzxid != reading->stat.mzxid)
		return -EAGAIN;
	mark_own(reading);
	queue_judge(&reading->queue, known->slots);
	return 0;
}

/* 0, -ENOMEM, or for a queue -EAGAIN: the lock's data has to be read first. */
static int understand(struct reading *reading, const struct ensemble_answer *answer)
{
	if (answer->result != ENSEMBLE_OK)
		return errno_of(answer->result);
	forget_answer(reading);
	reading->serial = ++reading->lc->reads->serial;
	reading->stat = *answer->stat;
	if (reading->kind != READING_QUEUE)
		return copy_data(reading, answer) ? 0 : -ENOMEM;
	return copy_names(reading, answer) ? judge_names(reading) : -ENOMEM;
}

static void is_due(struct reader *reader)
{
	struct lc_call *call = reader->call;

	if (gate_join(&call->lc->reads->due, call->uid, &reader->told))
		return;
	call->error = -ENOMEM; /* as call_fail_soon() */
	timer_set(&call->lc->timers, &call->limit, lc_now(call->lc));
}

static void take_answer(struct reading *reading, const struct ensemble_answer *answer)
{
	int r = understand(reading, answer);
	struct reader *reader;

	if (r == -EAGAIN) {
		reading->with_data = true;
		submit(reading);
		return;
	}
	if (r == -ENOENT && !reading->synced &&
	    (reading->kind == READING_LOCK || reading->kind == READING_QUEUE)) {
		/* A follower may lag behind the host that has just made it. */
		reading->synced = true;
		batch_submit(reading->lc, ensemble_sync(reading->path), lc_ignore, NULL);
		submit(reading);
		return;
	}
	reading->error = r;
	move_to(reading, NULL);
	gate_leave(gate_of(reading), &reading->turn);
	DL_FOREACH(reading->readers, reader)
		is_due(reader);
}

static void answered(void *ctx, const struct ensemble_answer *answer)
{
	struct reading *reading = ctx;
	struct lc *lc = reading->lc;

	reading->outstanding--;
	if (reading->watched)
		lock_watch_answered(reading->watched, answer);
	reading->watched = NULL;
	lc->reads->silent = false;
	if (reading->kind == READING_QUEUE && answer->result == ENSEMBLE_OK)
		lc->reads->rest_until_us = lc_now(lc) + (int64_t)answer->name_count * LIST_REST_US;
	if (ensemble_unanswered(answer)) {
		reading->synced = false;
		move_to(reading, &lc->reads->unsent);
	} else if (reading->readers) {
		take_answer(reading, answer);
	}
	free_if_unused(reading);
}

/* Whatever is wrong with the lock, the answer to the listing says it too. */
static void slots_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct reading *reading = ctx;

	reading->outstanding--;
	if (answer->result == ENSEMBLE_OK)
		asking_learn_slots(reading->lc, answer->stat, answer->data,
		                   (size_t)answer->data_len);
	free_if_unused(reading);
}

/* ---- telling ---- */

int64_t asking_wait(struct lc *lc)
{
	const struct reads *reads = lc->reads;
	int64_t at_us = reads->due.lines ? reads->tell_from_us : INT64_MAX;
	int64_t left;

	if (reads->lists.lines && reads->lists.going == 0 && session_may_ask(lc) &&
	    reads->rest_until_us < at_us)
		at_us = reads->rest_until_us;
	if (at_us == INT64_MAX)
		return INT64_MAX;
	left = at_us - lc_now(lc);
	return left > 0 ? left : 0;
}

void asking_tell(struct lc *lc)
{
	struct gate *due = &lc->reads->due;
	struct gate_item *told;

	if (!due->lines || lc_now(lc) < lc->reads->tell_from_us)
		return;
	lc->reads->tell_from_us = lc_now(lc) + TOLD_REST_US;
	for (int i = 0; i < TOLD_MAX && (told = gate_next(due, &gate_one)); i++) {
		struct reader *reader =
			(struct reader *)((char *)told - offsetof(struct reader, told));
		struct reading *reading = reader->reading;

		part(reader);
		reading->outstanding++;
		reader->answer(reader, reading);
		reading->outstanding--;
		free_if_unused(reading);
	}
}
