/* SPDX-License-Identifier: MIT */
#include "pure/per_user.h"

#include <assert.h>
#include <stdlib.h>

static const struct per_user_range *ranges;
static size_t range_count;

void per_user_ranges(const struct per_user_range *sorted, size_t count)
{
	ranges = sorted;
	range_count = count;
}

static int compare_with_range(const void *key, const void *element)
{
	const struct per_user_range *range = element;
	uid_t uid = *(const uid_t *)key;

	return (uid > range->last) - (uid < range->first);
}

uid_t per_user_share(uid_t uid)
{
	const struct per_user_range *range =
		range_count ? bsearch(&uid, ranges, range_count, sizeof(*range), compare_with_range)
			    : NULL;

	return range ? range->share : uid;
}

void *per_user_find(const struct per_user *table, uid_t uid)
{
	struct per_user *user;

	HASH_FIND(hh, table, &uid, sizeof(uid), user);
	return user;
}

void *per_user_get(struct per_user **table, uid_t uid, size_t size)
{
	uid_t share = per_user_share(uid);
	struct per_user *user = per_user_find(*table, share);

	assert(size >= sizeof(*user));
	if (user)
		return user;
	user = calloc(1, size);
	if (!user)
		return NULL;
	user->uid = share;
	HASH_ADD(hh, *table, uid, sizeof(user->uid), user);
	if (user->hh.tbl)
		return user;
	free(user);
	return NULL;
}

void per_user_drop(struct per_user **table, struct per_user *user)
{
	HASH_DEL(*table, user);
	free(user);
}
