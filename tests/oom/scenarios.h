/* SPDX-License-Identifier: MIT
 *
 * scenarios.h - scenarios that are run again and again; each time another allocation fails.
 */
#ifndef OOM_SCENARIOS_H
#define OOM_SCENARIOS_H

#include "bench.h"

struct scenario {
	const char *name;
	void (*play)(struct bench *bench);
	size_t least; /* smaller allocations do not fail: for long scenarios */
};

#define HOLD (50 * MS)

/* Lets requests and takes that are under way come to an end. */
void settle(struct bench *bench);
/* Of the requests under way up to `deliver` arrive, -1: all; their answers do not. */
void break_connection(struct host *host, int deliver);

/* questions.c */
void play_reason(struct bench *bench);
void play_confirm(struct bench *bench);
void play_data(struct bench *bench);
void play_evicting(struct bench *bench);
void play_waiters(struct bench *bench);
void play_questions(struct bench *bench);
void play_questions_cancelled(struct bench *bench);

extern const struct scenario scenarios[];
extern const int scenario_count;

#endif
