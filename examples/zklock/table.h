/* SPDX-License-Identifier: MIT
 *
 * table.h - what .zklockfs/locks says: a line for each lock that is held or waited for, on
 * any host; and .zklockfs/history: a line for each hold of this mount that has ended. The first
 * line names the columns; those that this program does not know are passed over.
 */
#ifndef ZKLOCK_TABLE_H
#define ZKLOCK_TABLE_H

#include "mount.h"

#include <stdint.h>

/* The words of the file, with its escapes resolved; "-" where nothing is known. Texts may hold
 * anything: see clean.h. */
struct row {
	const char *lock, *mode, *host, *pid, *uid, *command, *since, *token, *reason;
	const char *holders, *waiters, *slots; /* of `locks` */
	const char *ended, *end, *by;          /* of `history` */
	int64_t held_ms, waited_ms;            /* -1: nobody does */
};

struct table {
	char *text;
	struct row *rows;
	size_t count;
};

/* To be freed by table_free(). false and errno; EINVAL: the file is not as expected. */
bool table_read(const struct mount *mount, const char *file, struct table *ret_table);
/* Parses a text like that of the file, and changes it. After `false` the table needs no free. */
bool table_parse(char *text, struct table *ret_table);
void table_free(struct table *table);

/* More than one may hold it exclusively. */
bool row_has_slots(const struct row *row);
/* How many hold it; with slots, of how many: as 2/3. */
#define ROW_HOLDERS_MAX 44
const char *row_holders(const struct row *row, char buffer[ROW_HOLDERS_MAX]);

#endif
