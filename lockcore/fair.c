/* SPDX-License-Identifier: MIT
 *
 * fair.c - see fair.h.
 */
#include "fair.h"

#include <stddef.h>
#include <stdlib.h>
#define HASH_NONFATAL_OOM 1 /* an element's tbl stays NULL */
#include <uthash.h>
#include <utlist.h>

struct fair_user {
	struct fair_line line; /* first: an item leads to it */
	uid_t uid;
	UT_hash_handle hh;
};

void fair_add(struct fair *fair, struct fair_line *line, struct fair_item *item)
{
	if (!line->items)
		DL_APPEND(fair->lines, line);
	item->line = line;
	DL_APPEND(line->items, item);
}

void fair_remove(struct fair *fair, struct fair_item *item)
{
	struct fair_line *line = item->line;

	if (!line)
		return;
	item->line = NULL;
	DL_DELETE(line->items, item);
	if (!line->items)
		DL_DELETE(fair->lines, line);
}

void fair_pass(struct fair *fair, struct fair_line *line)
{
	if (!line->items)
		return;
	DL_DELETE(fair->lines, line);
	DL_APPEND(fair->lines, line);
}

/* ---- users ---- */

static struct fair_user *get_user(struct fair_users *users, uid_t uid)
{
	struct fair_user *user;

	HASH_FIND(hh, users->by_uid, &uid, sizeof(uid), user);
	if (user)
		return user;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->uid = uid;
	HASH_ADD(hh, users->by_uid, uid, sizeof(user->uid), user);
	if (user->hh.tbl)
		return user;
	free(user);
	return NULL;
}

bool fair_join(struct fair_users *users, uid_t uid, struct fair_item *item)
{
	struct fair_user *user = get_user(users, uid);

	if (user)
		fair_add(&users->fair, &user->line, item);
	return user;
}

void fair_part(struct fair_users *users, struct fair_item *item)
{
	struct fair_user *user = (struct fair_user *)item->line;

	if (!user)
		return;
	fair_remove(&users->fair, item);
	if (user->line.items)
		return;
	HASH_DEL(users->by_uid, user);
	free(user);
}

struct fair_item *fair_next(struct fair_users *users)
{
	struct fair_line *line = users->fair.lines;
	struct fair_item *item = line ? line->items : NULL;

	if (!item)
		return NULL;
	fair_pass(&users->fair, line);
	fair_part(users, item);
	return item;
}
