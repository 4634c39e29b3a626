/* SPDX-License-Identifier: MIT
 *
 * asking.h - readers, which only read: one request answers all who ask the same, users take turns,
 * and the number of requests under way does not slow the locks down. See asking.c.
 */
#ifndef LOCKCORE_ASKING_H
#define LOCKCORE_ASKING_H

#include "pure/gate.h"
#include "ask/reading.h"
#include "session/session.h"

struct reads {
	struct subject *subjects; /* by kind and path: the things to be read */
	struct gate reads, lists; /* which of them are asked for now */
	struct gate due;          /* whose readers are told next */
	int64_t rest_until_us;    /* no list before that, */
	int64_t tell_from_us;     /*   and nobody told */
	struct timer rest;
	bool silent; /* the ensemble: a question was not answered in time, nor any since */
};

struct reader;
typedef void reader_fn(struct reader *reader, struct reading *reading);

/* Embedded in a call; all zero: asks nothing.
 *
 *           reader_ask()
 *   [IDLE] -------------> [WAITING] ---its user's turn---> [ASKED]
 *                |            ^  ^                             |
 *         the same is         |  `--- the answer was lost -----|
 *         under way      it is answered                        | answered
 *                |            |                                v
 *                `------> [LATE]                             [DUE] --answer()--> [IDLE]
 */
struct reader {
	struct lc *lc;
	enum reader_state {
		READER_IDLE,
		READER_LATE,
		READER_WAITING,
		READER_ASKED,
		READER_DUE
	} state;
	struct subject *subject;    /* of what; not when DUE */
	struct reader *prev, *next; /* in the subject's */
	struct gate_item turn;      /* at the gate of reads, or of lists: it waits when WAITING */
	struct gate_item told;      /* at that of those who are due: it waits when DUE */
	struct reading *reading;    /* DUE */
	bool watch;                 /* the names of a queue, from then on */
	reader_fn *answer;
};

/* answer() comes once, from lc_process(), and tells what was asked of the ensemble after
 * this call. 0 or -ENOMEM. */
int reader_ask(struct reader *reader, struct lc *lc, uid_t uid, enum reading_kind kind,
               const char *path);
/* No answer() any more. Nothing, if it asks nothing. */
void reader_cancel(struct reader *reader);
/* The time went by in the line of its user's readers, not at the ensemble. */
bool reader_was_kept_waiting(const struct reader *reader);

void asking_begin(struct lc *lc);
void asking_send(struct lc *lc);    /* all that may be asked now */
void asking_tell(struct lc *lc);    /* some of those that are answered */
int64_t asking_wait(struct lc *lc); /* until somebody is to be told */
void asking_finish(struct lc *lc);  /* nobody asks any more */

#endif
