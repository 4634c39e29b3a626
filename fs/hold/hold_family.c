/* SPDX-License-Identifier: MIT */
#include "hold/hold_family.h"

#include "hold/claim.h"
#include "hold/hold.h"
#include "host/process.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* How many generations above the process the nearest living holder is; INT_MAX: no ancestor
 * holds. */
static int distance_to(const struct hold *hold, const struct lineage *lineage)
{
	const struct claim *claim;
	int least = INT_MAX;

	DL_FOREACH(hold->claims, claim) {
		int distance = lineage_find(lineage, claim->pid);

		/* If the holder still lives, it had that number when the lineage was read. */
		if (distance >= 0 && distance < least && process_lives(claim->life))
			least = distance;
	}
	return least;
}

/* A process that has joined loses the lock with the hold, and is stopped then. The user of the hold
 * may evict it at any time. So only processes that this user may signal anyway may join. */
static bool may_join(const struct hold *hold, const struct lineage *lineage)
{
	struct process asker = {.pid = lineage->of[0], .fd = -1};

	return hold->audit.uid == 0 ||
	       (process_ask(&asker) && process_obeys(&asker, hold->audit.uid));
}

struct hold *hold_of_family(struct frontend *front, const char *lock, const struct lineage *lineage)
{
	struct hold *hold, *nearest = NULL;
	int least = INT_MAX;

	DL_FOREACH(front->holds->held, hold) {
		int distance;

		if (hold->audit.mode != LC_EXCLUSIVE || strcmp(hold->node->lock, lock) != 0 ||
		    !lc_holds(hold->taker))
			continue;
		distance = distance_to(hold, lineage);
		if (distance < least) {
			nearest = hold;
			least = distance;
		}
	}
	return nearest && may_join(nearest, lineage) ? nearest : NULL;
}

bool hold_has_family(const struct hold *family, const struct hold *waiting, struct lineage **now)
{
	if (distance_to(family, waiting->lineage) == INT_MAX)
		return false;
	if (!*now || (*now)->of[0] != waiting->audit.caller.pid) {
		free(*now);
		*now = lineage_read(waiting->audit.caller.pid);
	}
	return *now && distance_to(family, *now) != INT_MAX && may_join(family, *now);
}
