/* SPDX-License-Identifier: MIT
 *
 * fair.h - who is next: users take turns, and what is one user's goes in the order of its
 * coming. Pure.
 */
#ifndef LOCKCORE_FAIR_H
#define LOCKCORE_FAIR_H

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

void fair_add(struct fair *fair, struct fair_line *line, struct fair_item *item);
/* Nothing, if it does not wait. */
void fair_remove(struct fair *fair, struct fair_item *item);
/* The line has had its turn. */
void fair_pass(struct fair *fair, struct fair_line *line);

#endif
