/* SPDX-License-Identifier: MIT
 *
 * scenarios.h - what is run again and again, another allocation failing each time.
 */
#ifndef OOM_SCENARIOS_H
#define OOM_SCENARIOS_H

#include "bench.h"

struct scenario {
	const char *name;
	void (*play)(struct bench *bench);
	size_t least; /* only allocations of this size and more: long scenarios */
};

#define HOLD (50 * MS)

/* Lets what is under way come to its end. */
void settle(struct bench *bench);
/* Up to so many requests that were sent arrive; their answers do not. */
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
