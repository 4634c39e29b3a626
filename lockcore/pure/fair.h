/* SPDX-License-Identifier: MIT
 *
 * fair.h - the order of items: users take turns, and the items of one user go in the order in which
 * they came. Pure; fs/ uses it, too.
 */
#ifndef LOCKCORE_FAIR_H
#define LOCKCORE_FAIR_H

#include "pure/per_user.h"

#include <stdbool.h>

/* Embedded in whatever waits; all zero: it does not wait. */
struct fair_item {
	struct fair_line *line;
	struct fair_item *prev, *next;
};

/* One user's; all zero: empty. */
struct fair_line {
	struct fair_item *items;
	struct fair_line *prev, *next;
};

struct fair {
	struct fair_line *lines; /* the lines that are not empty; the first one has the turn */
};

/* Where nothing else is known of a user: a line is there as long as something waits in it. */
struct fair_users {
	struct fair fair;
	struct per_user *by_uid;
};

void fair_add(struct fair *fair, struct fair_line *line, struct fair_item *item);
/* Nothing, if it does not wait. */
void fair_remove(struct fair *fair, struct fair_item *item);
/* The line has had its turn. */
void fair_pass(struct fair *fair, struct fair_line *line);

/* False: no memory. */
bool fair_join(struct fair_users *users, uid_t uid, struct fair_item *item);
/* Nothing, if it does not wait. */
void fair_part(struct fair_users *users, struct fair_item *item);
/* The item whose turn it is; it waits no longer. NULL: nothing waits. */
struct fair_item *fair_next(struct fair_users *users);

#endif
