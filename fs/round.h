/* SPDX-License-Identifier: MIT
 *
 * round.h - one look at all who have lost: first each loser's opener itself, then everybody
 * who may have a lost door open, in the order that order.h says. Who is stopped is said in
 * guardian.h.
 *
 *   round_note() ─► round_begin() ─► round_tend() ... true ─► again, until nobody is open
 *
 * It is done by a crew: what is read of other processes may hang.
 */
#ifndef FS_ROUND_H
#define FS_ROUND_H

#include "crew.h"
#include "slots.h"

struct round;

/* NULL: no memory. */
struct round *round_create(const struct page *page, enum on_lost on_lost);

struct round_lost {
	int count;
	bool more;         /* some that were not lost when this was asked last */
	int64_t newest_us; /* when the newest of them was seen first */
};

struct round_lost round_note(struct round *round);
/* Of what is noted; a round that is under way ends. */
void round_begin(struct round *round);
/* How those who look run from now on. */
void round_rank(struct round *round, enum crew_rank rank);
/* True: it is over. To be called every CREW_TEND_US. */
bool round_tend(struct round *round);
/* In the round that is over somebody was to be stopped, and may not be gone yet. */
bool round_found(const struct round *round);
/* Children hang somewhere, who will stop whomever they find when they go on. */
bool round_hangs(const struct round *round);

#endif
