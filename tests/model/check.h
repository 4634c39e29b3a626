/* SPDX-License-Identifier: MIT
 *
 * check.h - goes through all states of a model, breadth first: so the way to a state that is wrong
 * is a shortest one.
 *
 * The model says what follows each state, and whether a state is wrong. A state is bytes without
 * pointers. The states that were met are remembered by 64 bits of each, and how each was reached:
 * the way is found by going it again. Only the states of two distances from the first one are kept
 * whole, in files. So memory grows by some 18 bytes for each state. Two states may have the same
 * 64 bits: with 50 million states the chance of one such pair is 1 in 15,000.
 */
#ifndef MODEL_CHECK_H
#define MODEL_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct check_model {
	size_t size; /* of a state */
	void (*first)(void *ret_state);
	/* Calls check_next() for each state that follows. */
	void (*expand)(const void *state);
	/* NULL, or what is wrong. */
	const char *(*judge)(const void *state);
	void (*print)(const void *state, FILE *file);
	void (*print_action)(unsigned action, FILE *file);
};

enum check_verdict { CHECK_ALL_GOOD, CHECK_WRONG, CHECK_STOPPED };

struct check_result {
	enum check_verdict verdict;
	const char *wrong;
	size_t states, steps, dropped;
	unsigned depth;
	double seconds;
};

/* `action`: what the step is, for the printer. */
void check_next(const void *state, unsigned action);
/* A state that follows, but is beyond a bound of the model. */
void check_drop(void);
/* Prints the way to the first state that is wrong, unless `trace` is NULL. */
struct check_result check_run(const struct check_model *model, size_t max_states, FILE *trace);

#endif
