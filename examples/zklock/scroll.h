/* SPDX-License-Identifier: MIT
 *
 * scroll.h - which line of a list is chosen, and which is the first on the screen. Lines
 * have names: the choice follows a line that moves. Pure.
 */
#ifndef ZKLOCK_SCROLL_H
#define ZKLOCK_SCROLL_H

#include "mount.h"

struct scroll {
	size_t count, chosen, first;
	char name[LOCK_NAME_MAX + 1]; /* of the chosen line; empty: there is none */
	const char *(*name_of)(const void *list, size_t i);
	const void *list;
};

/* The list is another one, or has changed; the caller keeps it until the next call. */
void scroll_update(struct scroll *scroll, const void *list, size_t count);
/* So many lines down, or up. */
void scroll_move(struct scroll *scroll, long lines);
/* The chosen line is on a screen of so many lines. */
void scroll_show(struct scroll *scroll, size_t lines);

#endif
