/* SPDX-License-Identifier: MIT
 *
 * gate.h - at most so many at once, so many of one user, and the rest in a fair line: users take
 * turns, and the items of one user go in the order in which they came. Root has every second turn,
 * and a part of the places for itself. Pure; fs/ uses it, too.
 *
 *   [OUT] --gate_join()--> [WAITS] --gate_next()--> [GOES]
 *     ^                       |                       |
 *     `------ gate_leave() ---'-----------------------'
 */
#ifndef LOCKCORE_GATE_H
#define LOCKCORE_GATE_H

#include "pure/per_user.h"

#include <stdbool.h>

/* Embedded in whatever wants to go; all zero: OUT. */
struct gate_item {
	struct gate_user *user;
	struct gate_item *prev, *next; /* WAITS */
	enum { GATE_OUT, GATE_WAITS, GATE_GOES } state;
};

/* So many go at once. This part of all places is kept for root; of fewer places none is. */
#define GATE_ROOT_PART 4
struct gate_limits {
	unsigned all, of_root, of_user;
};

extern const struct gate_limits gate_one;

/* All zero: nothing is there. */
struct gate {
	unsigned going;
	bool root_went;          /* the last turn was root's */
	struct gate_user *lines; /* users with waiting items; the first one has the turn */
	struct per_user *users;  /* those with any item */
};

/* The item waits from now on. False: there is no memory, and it is OUT. */
bool gate_join(struct gate *gate, uid_t uid, struct gate_item *item);
/* The item whose turn it is: it goes now. NULL: none may. */
struct gate_item *gate_next(struct gate *gate, const struct gate_limits *limits);
/* Nothing, if it is OUT. */
void gate_leave(struct gate *gate, struct gate_item *item);

#endif
