/* SPDX-License-Identifier: MIT */
#include "files/longest.h"

#include "hold/hold.h"
#include "hold/linger.h"

#include <string.h>
#include <utlist.h>

/* Holds that are looked at, at most: many may share a lock. */
#define LOOK_MAX 1000

static bool is_listed(const struct view_held *longest, size_t count, const char *lock)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(longest[i].lock, lock) == 0)
			return true;
	return false;
}

/* Holds are in the order of their grants. */
static size_t find_held(const struct frontend *front, int64_t now, struct view_held *ret_longest,
                        int64_t *ret_oldest_us)
{
	const struct hold *hold;
	size_t count = 0;
	int looked = 0;

	DL_FOREACH(front->holds->held, hold) {
		int64_t held_us = now - hold->audit.granted_us;

		if (hold->audit.granted_us == 0) /* lost */
			continue;
		if (looked == 0)
			*ret_oldest_us = held_us;
		if (looked++ == LOOK_MAX || count == front->facts.metrics_locks)
			break;
		if (!is_listed(ret_longest, count, hold->node->lock))
			ret_longest[count++] = (struct view_held){hold->node->lock, held_us};
	}
	return count;
}

/* A wait that a signal has interrupted goes on behind those that came meanwhile. */
static int64_t find_oldest_wait(const struct frontend *front, int64_t now)
{
	const struct hold *hold;
	int64_t oldest = 0;

	DL_FOREACH(front->holds->waiting, hold)
		if (now - hold->audit.asked_us > oldest)
			oldest = now - hold->audit.asked_us;
	return oldest;
}

static unsigned count_kept(const struct frontend *front)
{
	const struct lingering *lingering;
	unsigned count;

	DL_COUNT(front->holds->linger.lists[LINGERS_KEPT], lingering, count);
	return count;
}

void longest_find(const struct frontend *front, struct view_held ret_longest[VIEW_LONGEST_MAX],
                  struct view_mount *ret_mount)
{
	int64_t now = front->clock_us();

	ret_mount->longest = ret_longest;
	ret_mount->longest_count = find_held(front, now, ret_longest, &ret_mount->oldest_hold_us);
	ret_mount->oldest_wait_us = find_oldest_wait(front, now);
	ret_mount->kept = count_kept(front);
}
