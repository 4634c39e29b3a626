/* SPDX-License-Identifier: MIT */
#include "hold/ahead.h"

#include "hold/hold.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

/* Sessions last for seconds: after a shorter wait nothing is asked. */
#define LONG_US 1000000

/* A question to the engine. Its answer frees it, or the end of the engine. */
struct ahead_question {
	struct frontend *front;
	uint64_t serial; /* the hold's; the hold may be gone when the answer comes */
	struct lc_call *call;
	struct lc_ahead *ahead;
	struct ahead_question *prev, *next;
};

static void free_question(struct ahead_question *question)
{
	DL_DELETE(question->front->holds->questions, question);
	free(question->ahead);
	free(question);
}

static void session_asked(void *ctx, int err, int64_t renewed_ms)
{
	struct ahead_question *question = ctx;
	struct hold *hold;

	(void)renewed_ms;
	DL_FOREACH(question->front->holds->held, hold)
		if (err == -ENOENT && hold->serial == question->serial) {
			audit_after(&hold->audit, question->ahead);
			record_touch(&hold->record);
		}
	free_question(question);
}

void ahead_granted(struct hold *hold)
{
	int64_t waited_us = hold->audit.granted_us - hold->audit.asked_us;
	struct lc_ahead *ahead = lc_take_ahead(hold->taker);
	struct ahead_question *question;

	if (!ahead)
		return;
	question = waited_us < LONG_US ? NULL : malloc(sizeof(*question));
	if (!question) {
		free(ahead);
		return;
	}
	*question = (struct ahead_question){
		.front = hold->front,
		.serial = hold->serial,
		.ahead = ahead,
	};
	DL_APPEND(hold->front->holds->questions, question);
	if (lc_renewed(hold->front->lc, hold->node->lock, hold->audit.uid, ahead->znode,
	               session_asked, question, &question->call) < 0)
		free_question(question);
}

void ahead_end(struct frontend *front)
{
	struct ahead_question *question, *next;

	DL_FOREACH_SAFE(front->holds->questions, question, next)
		free_question(question);
}
