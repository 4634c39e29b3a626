/* SPDX-License-Identifier: MIT
 *
 * fair.c - see fair.h.
 */
#include "pure/fair.h"

#include <utlist.h>

struct fair_user {
	struct per_user user;
	struct fair_line line;
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

static struct fair_user *user_of(struct fair_line *line)
{
	return (struct fair_user *)((char *)line - offsetof(struct fair_user, line));
}

bool fair_join(struct fair_users *users, uid_t uid, struct fair_item *item)
{
	struct fair_user *user = per_user_get(&users->by_uid, uid, sizeof(*user));

	if (user)
		fair_add(&users->fair, &user->line, item);
	return user;
}

void fair_part(struct fair_users *users, struct fair_item *item)
{
	struct fair_line *line = item->line;

	if (!line)
		return;
	fair_remove(&users->fair, item);
	if (!line->items)
		per_user_drop(&users->by_uid, &user_of(line)->user);
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
