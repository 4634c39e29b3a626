/* SPDX-License-Identifier: MIT */
#include "session/quota.h"

struct usage {
	struct per_user user;
	unsigned charges;   /* that point here */
	size_t entry_bytes; /* of the user's takers */
	size_t watch_bytes; /* of the locks that the user was the first to take */
};

static struct usage *begin_charge(struct lc *lc, uid_t uid)
{
	struct usage *usage = per_user_get(&lc->quota->users, uid, sizeof(*usage));

	if (usage)
		usage->charges++;
	return usage;
}

static void end_charge(struct lc *lc, struct charge *charge)
{
	if (--charge->usage->charges == 0)
		per_user_drop(&lc->quota->users, &charge->usage->user);
	charge->usage = NULL;
}

uid_t quota_charged_user(const struct charge *charge)
{
	return charge->usage ? charge->usage->user.uid : 0;
}

void quota_charge_entry(struct lc *lc, struct charge *charge, uid_t uid, size_t bytes)
{
	*charge = (struct charge){.bytes = bytes, .usage = begin_charge(lc, uid)};
	lc->quota->entry_bytes += bytes;
	if (charge->usage)
		charge->usage->entry_bytes += bytes;
}

void quota_return_entry(struct lc *lc, struct charge *charge)
{
	lc->quota->entry_bytes -= charge->bytes;
	if (!charge->usage)
		return;
	charge->usage->entry_bytes -= charge->bytes;
	end_charge(lc, charge);
}

void quota_set_watched(struct lc *lc, struct charge *charge, size_t bytes)
{
	lc->quota->watch_bytes += bytes - charge->bytes;
	charge->bytes = bytes;
}

void quota_charge_watches(struct lc *lc, struct charge *charge, uid_t uid)
{
	charge->usage = begin_charge(lc, uid);
	if (charge->usage)
		charge->usage->watch_bytes += charge->bytes;
}

void quota_return_watches(struct lc *lc, struct charge *charge)
{
	if (!charge->usage)
		return;
	charge->usage->watch_bytes -= charge->bytes;
	end_charge(lc, charge);
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
