/* SPDX-License-Identifier: MIT */
#include "session/quota.h"

#include <assert.h>

struct usage {
	struct per_user user;
	size_t entry_bytes; /* of the user's takers */
	size_t watch_bytes; /* of the locks that the user was the first to take */
};

static void drop_usage(struct lc *lc, struct usage *usage)
{
	if (usage->entry_bytes == 0 && usage->watch_bytes == 0)
		per_user_drop(&lc->quota->users, &usage->user);
}

static void charge_usage(struct charge *charge, const struct usage *usage)
{
	charge->share = usage->user.uid;
	charge->charged = true;
}

/* Takes the charge back. Returns the usage that had it; NULL: none had. */
static struct usage *discharge(struct lc *lc, struct charge *charge)
{
	struct usage *usage =
		charge->charged ? per_user_find(lc->quota->users, charge->share) : NULL;

	charge->charged = false;
	return usage;
}

void quota_charge_entry(struct lc *lc, struct charge *charge, uid_t uid, size_t bytes)
{
	struct usage *usage = per_user_get(&lc->quota->users, uid, sizeof(*usage));

	assert(bytes <= CHARGE_MAX);
	*charge = (struct charge){.bytes = bytes & CHARGE_MAX};
	lc->quota->entry_bytes += bytes;
	if (!usage)
		return;
	charge_usage(charge, usage);
	usage->entry_bytes += bytes;
}

void quota_return_entry(struct lc *lc, struct charge *charge)
{
	struct usage *usage = discharge(lc, charge);

	lc->quota->entry_bytes -= charge->bytes;
	if (!usage)
		return;
	usage->entry_bytes -= charge->bytes;
	drop_usage(lc, usage);
}

void quota_set_watched(struct lc *lc, struct charge *charge, size_t bytes)
{
	lc->quota->watch_bytes += bytes - charge->bytes;
	assert(bytes <= CHARGE_MAX);
	charge->bytes = bytes & CHARGE_MAX;
}

void quota_charge_watches(struct lc *lc, struct charge *charge, uid_t uid)
{
	struct usage *usage = per_user_get(&lc->quota->users, uid, sizeof(*usage));

	if (!usage)
		return;
	charge_usage(charge, usage);
	usage->watch_bytes += charge->bytes;
}

void quota_return_watches(struct lc *lc, struct charge *charge)
{
	struct usage *usage = discharge(lc, charge);

	if (!usage)
		return;
	usage->watch_bytes -= charge->bytes;
	drop_usage(lc, usage);
}

/* A part of the room is root's alone. */
static bool is_full_for_others(struct lc *lc, size_t bytes)
{
	const struct usage *root = per_user_find(lc->quota->users, 0);
	size_t entry_bytes = lc->quota->entry_bytes - (root ? root->entry_bytes : 0);
	size_t watch_bytes = lc->quota->watch_bytes - (root ? root->watch_bytes : 0);

	return entry_bytes + watch_bytes + bytes > LC_ENTRY_BYTES_MAX - LC_ROOT_BYTES ||
	       watch_bytes > LC_WATCH_BYTES_MAX - LC_ROOT_BYTES;
}

bool quota_is_full(struct lc *lc, uid_t uid, size_t bytes)
{
	const struct quota *quota = lc->quota;

	return quota->entry_bytes + quota->watch_bytes + bytes > LC_ENTRY_BYTES_MAX ||
	       quota->watch_bytes > LC_WATCH_BYTES_MAX ||
	       (uid != 0 && is_full_for_others(lc, bytes));
}

static bool is_above_share(const struct usage *usage, size_t bytes)
{
	return usage && usage->user.uid != 0 &&
	       (usage->entry_bytes + bytes > LC_USER_BYTES_MAX ||
	        usage->watch_bytes > LC_WATCH_BYTES_MAX / 2);
}

bool quota_has_room(struct lc *lc, uid_t uid, size_t bytes)
{
	const struct usage *usage = per_user_find(lc->quota->users, per_user_share(uid));
	bool above = is_above_share(usage, bytes);

	if (!above && !quota_is_full(lc, uid, bytes))
		return true;
	if (lc_may_say_again(lc, &lc->quota->full_said_us))
		lc_report(
			lc, LC_WARNING,
			above ? "requests of uid %u are refused: this user has too many here, "
				"with entries of %zu bytes"
			      : "requests of uid %u are refused: all users together have too many "
				"here, with entries of %zu bytes",
			(unsigned)uid, above ? usage->entry_bytes : lc->quota->entry_bytes);
	return false;
}
