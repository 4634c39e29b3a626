/* SPDX-License-Identifier: MIT
 *
 * gate.h - at most so many at once, so many of one user, and the rest in a fair line: users take
 * turns, and the items of one user go in the order in which they came. Root has every second turn,
 * and a part of the places for itself. Pure; fs/ uses it, too.
 *
 *            gate_join()        gate_wait()           gate_next()
 *   [OUT] -------------> [IN] -------------> [WAITS] -------------> [GOES]
 *     ^                   |  ^                  |                     |
 *     |                   |  `----------------- gate_stop() ----------'
 *     `-- gate_leave() ---'   (and from WAITS and GOES)
 */
#ifndef LOCKCORE_GATE_H
#define LOCKCORE_GATE_H

#include "pure/per_user.h"

#include <stdbool.h>

/* Embedded in whatever wants to go; all zero: OUT. */
struct gate_item {
	struct gate_user *user;
	struct gate_item *prev, *next; /* WAITS */
	enum { GATE_OUT, GATE_IN, GATE_WAITS, GATE_GOES } state;
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

/* The one call that needs memory. False: there is none. */
bool gate_join(struct gate *gate, uid_t uid, struct gate_item *item);
void gate_wait(struct gate *gate, struct gate_item *item);
/* The item whose turn it is: it goes now. NULL: none may. */
struct gate_item *gate_next(struct gate *gate, const struct gate_limits *limits);
/* It is IN again: it waits and goes no more. */
void gate_stop(struct gate *gate, struct gate_item *item);
/* What goes is `to`, an item that is OUT, in the place of `item`, which is IN again. */
void gate_pass(struct gate_item *item, struct gate_item *to);
/* Nothing, if it is OUT. */
void gate_leave(struct gate *gate, struct gate_item *item);

#endif
