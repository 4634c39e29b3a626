/* SPDX-License-Identifier: MIT
 *
 * fair.c - see fair.h.
 */
#include "fair.h"

#include <stddef.h>
#include <utlist.h>

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
