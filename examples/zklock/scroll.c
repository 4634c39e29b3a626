/* SPDX-License-Identifier: MIT */
#include "scroll.h"

#include <stdio.h>
#include <string.h>

void scroll_move(struct scroll *scroll, long lines)
{
	long last = scroll->count ? (long)scroll->count - 1 : 0;
	long at = (long)scroll->chosen + lines;

	scroll->chosen = (size_t)(at < 0 ? 0 : at > last ? last : at);
	snprintf(scroll->name, sizeof(scroll->name), "%s",
	         scroll->count ? scroll->name_of(scroll->list, scroll->chosen) : "");
}

void scroll_update(struct scroll *scroll, const void *list, size_t count)
{
	scroll->list = list;
	scroll->count = count;
	for (size_t i = 0; i < count && *scroll->name; i++) {
		if (strcmp(scroll->name_of(list, i), scroll->name) != 0)
			continue;
		scroll->chosen = i;
		break;
	}
	scroll_move(scroll, 0); /* where it has gone: what has come to its place */
}

void scroll_show(struct scroll *scroll, size_t lines)
{
	if (lines == 0)
		lines = 1;
	if (scroll->first > scroll->chosen)
		scroll->first = scroll->chosen;
	if (scroll->chosen >= lines && scroll->first <= scroll->chosen - lines)
		scroll->first = scroll->chosen - lines + 1;
	if (scroll->first > 0 && scroll->first + lines > scroll->count)
		scroll->first = scroll->count > lines ? scroll->count - lines : 0;
}
