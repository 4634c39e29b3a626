/* SPDX-License-Identifier: MIT */
#include "pure/per_user.h"

#include <assert.h>
#include <stdlib.h>

void *per_user_find(const struct per_user *table, uid_t uid)
{
	struct per_user *user;

	HASH_FIND(hh, table, &uid, sizeof(uid), user);
	return user;
}

void *per_user_get(struct per_user **table, uid_t uid, size_t size)
{
	struct per_user *user = per_user_find(*table, uid);

	assert(size >= sizeof(*user));
	if (user)
		return user;
	user = calloc(1, size);
	if (!user)
		return NULL;
	user->uid = uid;
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
