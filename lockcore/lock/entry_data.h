/* SPDX-License-Identifier: MIT
 *
 * entry_data.h - what stands in an entry, as it was read last, and is written: see entry_data.c.
 */
#ifndef LOCKCORE_ENTRY_DATA_H
#define LOCKCORE_ENTRY_DATA_H

#include "lock/entry.h"

size_t entry_format(const struct entry *entry, char *ret_data); /* NODE_DATA_ENTRY_MAX */
/* Takes over what the good answer of a get tells, a mark among it. False: the node is another
 * client's, made under the name of this one when this one was gone. */
bool entry_read(struct entry *entry, const struct ensemble_answer *answer);
/* Watches the entry, unless its watch is good. False: no memory, and later() was called. */
bool entry_watch(struct entry *entry);
/* Reads the entry, to find a mark, unless a good watch would report one. False: no memory. */
bool entry_look(struct entry *entry);
/* Writes the data, if it is dirty and may be written now. */
void entry_write(struct entry *entry);
/* Writes since when the lock is held, unless the entry says so already. */
void entry_write_since(struct entry *entry);
void entry_data_finish(struct entry *entry);

#endif
