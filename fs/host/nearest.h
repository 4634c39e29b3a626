/* SPDX-License-Identifier: MIT
 *
 * nearest.h - the name that was meant by a mistyped one. Pure.
 */
#ifndef FS_NEAREST_H
#define FS_NEAREST_H

#include <stddef.h>

/* Each row of the table begins with a name, and the last row has NULL there. Names and the word end
 * before a `=`. Returns the name of the row that differs least; NULL: all differ too much. */
const char *nearest(const char *word, const void *rows, size_t size_of_row);

#endif
