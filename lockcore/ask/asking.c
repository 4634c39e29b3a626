/* SPDX-License-Identifier: MIT
 *
 * asking.c - see asking.h.
 *
 * Without limits a thousand processes that all read `holder` of a long queue would cause a
 * thousand listings. Takers would wait behind them, since a session's requests are answered in
 * their order. So:
 *
 *  - One request is sent for all readers that ask the same. The readers that came before it was
 *    sent share its answer. A later reader must not share it, since the answer may be older than
 *    what this process has done in between. It waits for the next request, which is sent when
 *    this one is answered.
 *  - One list at a time is under way in all, since lists may be long. After it no list is sent for
 *    a time that grows with its length. For other reads each user has a share.
 *  - Users take turns, in asking and in being told. Only some readers are told in a turn of the
 *    loop, and none for a while after it, since each of them may ask again at once.
 *  - Reads go out last in the turn: behind heartbeats, creates and deletes.
 *  - A read whose readers have all cancelled is not sent, and its answer is dropped.
 */
#include "ask/asking.h"

#include "lock/batch.h"
#include "pure/limits.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct subject {
	struct lc *lc;
	enum reading_kind kind;
	struct reader *asked;  /* readers that share the answer that is under way */
	struct reader *coming; /* readers that came later */
	struct gate_item
		turn;         /* of the user whose share the request under way uses; OUT: none is */
	bool with_data;       /* how many may hold it is not known */
	bool synced;          /* "not there" was said after a sync */
	int64_t sent_us;      /* the request under way */
	unsigned outstanding; /* answers */
	UT_hash_handle hh;
	const char *path; /* in the key */
	char key[];       /* the kind and the path */
};

#define OF(item, type, member) ((type *)((char *)(item)-offsetof(type, member)))

/* Lists wait in a line of their own. */
static struct gate *gate_of(const struct subject *subject)
{
	struct reads *reads = subject->lc->reads;

	return subject->kind == READING_QUEUE ? &reads->lists : &reads->reads;
}

static bool is_under_way(const struct subject *subject)
{
	return subject->turn.state == GATE_GOES;
}

/* ---- subjects ---- */

static struct subject *subject_get(struct lc *lc, enum reading_kind kind, const char *path)
{
	size_t len = strlen(path) + 1;
	struct subject *subject = calloc(1, sizeof(*subject) + 1 + len + 1), *known;

	if (!subject)
		return NULL;
	*subject = (struct subject){.lc = lc, .kind = kind, .path = subject->key + 1};
	subject->key[0] = (char)kind;
	memcpy(subject->key + 1, path, len);
	HASH_FIND(hh, lc->reads->subjects, subject->key, len, known);
	if (!known) {
		HASH_ADD(hh, lc->reads->subjects, key, len, subject);
		if (subject->hh.tbl)
			return subject;
	}
	free(subject);
	return known;
}

static void free_subject_if_unused(struct subject *subject)
{
	if (subject->asked || subject->coming || subject->outstanding > 0)
		return;
	HASH_DEL(subject->lc->reads->subjects, subject);
	free(subject);
}

/* ---- readers ---- */

/* It will be asked in its user's turn; or when the answer that is under way has come. */
static void wait_for_turn(struct reader *reader)
{
	struct subject *subject = reader->subject;

	DL_APPEND(subject->coming, reader);
	reader->state = READER_LATE;
	if (is_under_way(subject))
		return;
	reader->state = READER_WAITING;
	gate_wait(gate_of(subject), &reader->turn);
}

int reader_ask(struct reader *reader, struct lc *lc, uid_t uid, enum reading_kind kind,
               const char *path)
{
	struct subject *subject = subject_get(lc, kind, path);

	assert(reader->state == READER_IDLE);
	if (!subject)
		return -ENOMEM;
	if (!gate_join(gate_of(subject), uid, &reader->turn) ||
	    !gate_join(&lc->reads->due, uid, &reader->told)) {
		gate_leave(gate_of(subject), &reader->turn);
		free_subject_if_unused(subject);
		return -ENOMEM;
	}
	reader->lc = lc;
	reader->subject = subject;
	wait_for_turn(reader);
	return 0;
}

/* It has nothing to do with anybody any more. */
static void part(struct reader *reader)
{
	struct subject *subject = reader->subject;
	bool comes = reader->state == READER_LATE || reader->state == READER_WAITING;

	gate_leave(&reader->lc->reads->due, &reader->told);
	if (subject)
		gate_leave(gate_of(subject), &reader->turn);
	if (comes)
		DL_DELETE(subject->coming, reader);
	else if (reader->state == READER_ASKED)
		DL_DELETE(subject->asked, reader);
	reader->state = READER_IDLE;
	reader->subject = NULL;
	if (subject)
		free_subject_if_unused(subject);
}

void reader_cancel(struct reader *reader)
{
	if (reader->state == READER_IDLE)
		return;
	if (reader->state == READER_DUE)
		reading_drop(reader->reading);
	part(reader);
}

bool reader_was_kept_waiting(const struct reader *reader)
{
	switch (reader->state) {
	case READER_IDLE:
		return false;
	case READER_WAITING:
	case READER_DUE:
		return true;
	case READER_LATE:
	case READER_ASKED:
		break;
	}
	/* A request that was sent just now has waited here for most of the time. */
	return lc_now(reader->lc) - reader->subject->sent_us < LC_CALL_TIMEOUT_US / 2;
}

/* ---- asking ---- */

static void subject_answered(void *ctx, const struct ensemble_answer *answer);
static void slots_answered(void *ctx, const struct ensemble_answer *answer);

static void submit_subject(struct subject *subject)
{
	struct ensemble_op op = ensemble_get(subject->path);
	struct reader *reader;

	if (subject->kind == READING_QUEUE) {
		if (subject->with_data) {
			subject->outstanding++;
			batch_submit(subject->lc, op, slots_answered, subject);
		}
		op.kind = ENSEMBLE_CHILDREN;
		DL_FOREACH(subject->asked, reader)
			op.watch |= reader->watch;
	}
	subject->outstanding++;
	batch_submit(subject->lc, op, subject_answered, subject);
}

/* For all that wait for it, in the turn of one of them. */
static void ask_in_turn(struct gate_item *turn)
{
	struct reader *reader = OF(turn, struct reader, turn);
	struct subject *subject = reader->subject;

	gate_pass(turn, &subject->turn);
	DL_FOREACH(subject->coming, reader) {
		gate_stop(gate_of(subject), &reader->turn);
		reader->state = READER_ASKED;
	}
	subject->asked = subject->coming;
	subject->coming = NULL;
	subject->with_data = subject->synced = false;
	subject->sent_us = lc_now(subject->lc);
	submit_subject(subject);
}

/* Nothing of it is under way any more: the readers that came meanwhile are next. */
static void end_flight(struct subject *subject)
{
	struct reader *late = subject->coming, *reader, *next;

	gate_leave(gate_of(subject), &subject->turn);
	subject->coming = NULL;
	DL_FOREACH_SAFE(late, reader, next)
		wait_for_turn(reader);
}

static bool may_list(struct lc *lc)
{
	struct reads *reads = lc->reads;

	if (!reads->lists.lines)
		return false;
	if (reads->rest_until_us > lc_now(lc))
		timer_set(&lc->timers, &reads->rest, reads->rest_until_us);
	return reads->rest_until_us <= lc_now(lc);
}

static void rested(void *ctx)
{
	(void)ctx; /* asking_send() comes after the timers */
}

int64_t asking_wait(struct lc *lc)
{
	int64_t left;

	if (!lc->reads->due.lines)
		return INT64_MAX;
	left = lc->reads->tell_from_us - lc_now(lc);
	return left > 0 ? left : 0;
}

void asking_begin(struct lc *lc)
{
	lc->reads->rest = (struct timer){.fire = rested, .ctx = lc};
}

void asking_finish(struct lc *lc)
{
	timer_clear(&lc->timers, &lc->reads->rest);
	assert(!lc->reads->subjects && !lc->reads->due.users);
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
		ask_in_turn(turn);
	if (may_list(lc) && (turn = gate_next(&lc->reads->lists, &gate_one)))
		ask_in_turn(turn);
}

/* ---- answers ---- */

/* Whatever is wrong with the lock, the answer to the listing says it too. */
static void slots_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct subject *subject = ctx;

	subject->outstanding--;
	if (answer->result == ENSEMBLE_OK)
		reading_learn_slots(subject->lc, answer->stat, answer->data,
		                    (size_t)answer->data_len);
	free_subject_if_unused(subject);
}

/* Asked on the next connection. */
static void lost(struct subject *subject)
{
	DL_CONCAT(subject->asked, subject->coming);
	subject->coming = subject->asked;
	subject->asked = NULL;
	end_flight(subject);
}

static void share(struct subject *subject, struct reading *reading)
{
	struct gate *due = &subject->lc->reads->due;
	struct reader *asked = subject->asked, *reader, *next;

	subject->asked = NULL;
	DL_FOREACH_SAFE(asked, reader, next) {
		gate_leave(gate_of(subject), &reader->turn);
		reader->subject = NULL;
		reader->state = READER_DUE;
		reader->reading = reading;
		reading->references++;
		gate_wait(due, &reader->told);
	}
	reading_drop(reading);
	end_flight(subject);
}

/* A follower may lag behind the host that has just made it. */
static void ask_again_synced(struct subject *subject)
{
	subject->synced = true;
	batch_submit(subject->lc, ensemble_sync(subject->path), lc_ignore, NULL);
	submit_subject(subject);
}

static void understand(struct subject *subject, const struct ensemble_answer *answer)
{
	struct reading *reading;
	int r;

	if (answer->result == ENSEMBLE_NONODE && subject->kind != READING_ENTRY &&
	    !subject->synced) {
		ask_again_synced(subject);
		return;
	}
	if (answer->result != ENSEMBLE_OK) {
		share(subject, reading_fail(errno_of(answer->result)));
		return;
	}
	r = reading_make(subject->lc, subject->kind, answer, &reading);
	if (r == -EAGAIN) {
		subject->with_data = true;
		submit_subject(subject);
		return;
	}
	share(subject, r < 0 ? reading_fail(r) : reading);
}

static void subject_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct subject *subject = ctx;
	struct lc *lc = subject->lc;

	subject->outstanding--;
	lc->reads->silent = false;
	if (subject->kind == READING_QUEUE && answer->result == ENSEMBLE_OK)
		lc->reads->rest_until_us = lc_now(lc) + (int64_t)answer->name_count * LIST_REST_US;
	if (answer->result == ENSEMBLE_UNKNOWN || answer->result == ENSEMBLE_GONE)
		lost(subject);
	else if (!subject->asked)
		end_flight(subject); /* nobody wants to know it any more */
	else
		understand(subject, answer);
	free_subject_if_unused(subject);
}

/* ---- telling ---- */

void asking_tell(struct lc *lc)
{
	struct gate *due = &lc->reads->due;
	struct gate_item *told;

	if (!due->lines || lc_now(lc) < lc->reads->tell_from_us)
		return;
	lc->reads->tell_from_us = lc_now(lc) + TOLD_REST_US;
	for (int i = 0; i < TOLD_MAX && (told = gate_next(due, &gate_one)); i++) {
		struct reader *reader = OF(told, struct reader, told);
		struct reading *reading = reader->reading;

		part(reader);
		reader->answer(reader, reading);
		reading_drop(reading);
	}
}
