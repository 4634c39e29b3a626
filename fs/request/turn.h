/* SPDX-License-Identifier: MIT
 *
 * turn.h - which write may go to the ensemble now. Requests go one behind the other, those of
 * takers among them. So only as many writes are under way, of one user and of all, as takers
 * can wait for. The other writes wait here, where users take turns. Pure.
 *
 *            turn_ask()                turns_next()
 *   [NONE] ---------------> [WAITS] ------------------> [GOES]
 *      ^  `--- if it may go at once ---------------------> |
 *      |                       |                           |
 *      `----- turn_end() ------'-------- turn_end() -------'
 */
#ifndef FS_TURN_H
#define FS_TURN_H

#include "pure/per_user.h"

#include <stdbool.h>
#include <stdint.h>

/* Under way at a time: of one user, but root, and of all. */
#define TURNS_OF_USER 4
#define TURNS_OF_ALL 16
/* A write that has waited for longer is refused. */
#define TURN_WAITS_US 2000000

/* Embedded in a request that writes; all zero: it does not write. */
struct turn {
	enum { TURN_NONE, TURN_WAITS, TURN_GOES } state;
	struct turn_user *user;
	int64_t until_us; /* WAITS */
	struct turn *prev, *next;
};

struct turns {
	struct per_user *users;
	struct turn_user
		*lines; /* of those for whom something waits: whose turn it is comes first */
	unsigned going;
	bool closed; /* nobody begins */
};

/* Now it goes, or waits. -ENOMEM. */
int turn_ask(struct turns *turns, struct turn *turn, uid_t uid, int64_t now_us);
/* It is done, or not wanted any more. Nothing, if it is NONE. */
void turn_end(struct turns *turns, struct turn *turn);
/* Somebody waits. */
static inline bool turns_waiting(const struct turns *turns)
{
	return turns->lines;
}
/* A turn that waited, and begins now; NULL: none may. */
struct turn *turns_next(struct turns *turns);
/* A turn that has waited for too long; with INT64_MAX any that waits. NULL: none. */
struct turn *turns_late(const struct turns *turns, int64_t now_us);
/* Until one of these has something to tell; INT64_MAX. */
int64_t turns_wait(const struct turns *turns, int64_t now_us);

#endif
