/* SPDX-License-Identifier: MIT
 *
 * words.h - words of the command line that mean nothing, and what was meant by them.
 */
#ifndef ZKLOCK_WORDS_H
#define ZKLOCK_WORDS_H

#include <getopt.h>
#include <stddef.h>

/* Each row of the table begins with a name, and the last row has NULL there. Names and the word end
 * before a `=`. Returns the name of the row that differs least; NULL: all differ too much. */
const char *words_nearest(const char *word, const void *rows, size_t size_of_row);
/* The long name of the option that getopt_long(3) calls so. */
const char *words_long_name(const struct option *table, int option);
/* Ends the program. `option` is the `?` or `:` of getopt_long(3), `word` the last that it has read
 * to its end, `usage` what to do instead. */
_Noreturn void words_misused(const struct option *table, int option, const char *word,
                             const char *usage);

#endif
