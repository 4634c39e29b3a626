/* SPDX-License-Identifier: MIT
 *
 * quota.h - how much of a session its takers use, all together and each user: the limits
 * LC_ENTRY_BYTES_MAX and its neighbours in lockcore.h tell what a session without limits does
 * to an ensemble.
 */
#ifndef LOCKCORE_QUOTA_H
#define LOCKCORE_QUOTA_H

#include "session/base.h"
#include "pure/per_user.h"

struct quota {
	struct per_user *users;
	size_t entry_bytes;   /* of all takers' entries */
	size_t watch_bytes;   /* of all watched paths */
	int64_t full_said_us; /* when it was last reported that there is no room */
};

/* What is charged, embedded in a taker and in a lock. */
struct charge {
	size_t bytes;
	struct usage *
		usage; /* of the user who is charged, too; without memory only all together count */
};
/* 0, too, where no user is charged. */
uid_t quota_charged_user(const struct charge *charge);

/* There is no room for `bytes` more of that user, whatever the user's share. Forgetting idle
 * locks may make some. */
bool quota_is_full(struct lc *lc, uid_t uid, size_t bytes);
/* The user may have `bytes` more. False is reported. */
bool quota_has_room(struct lc *lc, uid_t uid, size_t bytes);
/* A taker counts from lc_take() until it is freed, whether or not its entry exists. */
void quota_charge_entry(struct lc *lc, struct charge *charge, uid_t uid, size_t bytes);
void quota_return_entry(struct lc *lc, struct charge *charge);
/* A lock's watched paths count for all as long as they are watched, and for the user who took
 * it first as long as the lock has takers. */
void quota_set_watched(struct lc *lc, struct charge *charge, size_t bytes);
void quota_charge_watches(struct lc *lc, struct charge *charge, uid_t uid);
void quota_return_watches(struct lc *lc, struct charge *charge);

#endif
