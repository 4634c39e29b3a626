/* SPDX-License-Identifier: MIT
 *
 * fair.h - who is next: users take turns, and what is one user's goes in the order of its
 * coming. Pure.
 */
#ifndef LOCKCORE_FAIR_H
#define LOCKCORE_FAIR_H

#include <stdbool.h>
#include <sys/types.h>

/* Embedded in what waits; all zero: it does not. */
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
	struct fair_line *lines; /* those that are not empty; whose turn it is comes first */
};

/* Where nothing else is known of a user: a line is there as long as something waits in it. */
struct fair_users {
	struct fair fair;
	struct fair_user *by_uid;
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
/* Whose turn it is waits no longer; NULL: nobody waits. */
struct fair_item *fair_next(struct fair_users *users);

#endif
