/* SPDX-License-Identifier: MIT
 *
 * round.h - one look at all slots that are lost: first at the opener of each, then at all
 * processes that may have a lost lock file open, in the order that order.h says. guardian.h says
 * which of them are stopped.
 *
 *   round_note() ─► round_begin() ─► round_tend() ... true ─► again, until nobody is open
 *
 * Scanners do it, since a read of another process may hang.
 */
#ifndef FS_ROUND_H
#define FS_ROUND_H

#include "guard/scanners.h"
#include "guard/slots.h"

struct round;

/* NULL: no memory. */
struct round *round_create(struct page *page, enum on_lost on_lost);

struct round_lost {
	int count;
	bool more;         /* some that were not lost when this was asked last */
	int64_t newest_us; /* when the newest of them was seen first */
};

struct round_lost round_note(struct round *round);
/* Of what is noted; a round that is under way ends. */
void round_begin(struct round *round);
/* How the children that look run from now on. */
void round_rank(struct round *round, enum scanners_rank rank);
/* True: it is over. To be called every SCANNERS_TEND_US. */
bool round_tend(struct round *round);
/* In the round that is over somebody was to be stopped, and may not be gone yet. */
bool round_found(const struct round *round);
/* Some children hang. When they go on, they still stop the processes that they find. */
bool round_hangs(const struct round *round);
/* Children that others have killed, so far. */
unsigned long round_looks_ended(const struct round *round);

#endif
