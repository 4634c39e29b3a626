/* SPDX-License-Identifier: MIT */
#include "loss.h"

#include "clean.h"
#include "table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *loss_explain(const struct mount *mount, const struct lock *lock, char why[LOSS_MAX])
{
	char by[CLEAN_MAX];
	struct table table;

	*why = '\0';
	if (!table_read(mount, "history", &table)) {
		if (errno == ENOTCONN || errno == ECONNABORTED || errno == ESHUTDOWN)
			strcpy(why, "the mount has ended");
		return why;
	}
	for (size_t i = table.count; i-- > 0 && !*why;) {
		const struct row *row = &table.rows[i];

		if (strcmp(row->token, lock->token) != 0)
			continue;
		clean(by, sizeof(by), row->by);
		if (strcmp(row->end, "evicted") == 0)
			snprintf(why, LOSS_MAX, "evicted by %.500s", by);
		else if (strcmp(row->end, "lost") == 0)
			snprintf(why, LOSS_MAX, "%.500s", by);
		else if (strcmp(row->end, "stopped") == 0)
			snprintf(why, LOSS_MAX, "the mount stopped it: %.500s", by);
	}
	table_free(&table);
	return why;
}
