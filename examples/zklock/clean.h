/* SPDX-License-Identifier: MIT
 *
 * clean.h - text of others, made fit to be shown. Any user on any host may choose a lock's name or
 * a reason: these must not move the cursor, hide other text, or begin a line of their own.
 */
#ifndef ZKLOCK_CLEAN_H
#define ZKLOCK_CLEAN_H

#include <stddef.h>
#include <wchar.h>

/* Room for any text that the commands show: a reason of 4096 bytes is the longest. */
#define CLEAN_MAX 4400

/* The text up to `size` bytes; `?` stands for what cannot be shown in this locale or is
 * invisible. Cut between two characters. Returns `buffer`. */
const char *clean(char *buffer, size_t size, const char *text);
/* Reads the next character of a text that may be anything. Returns its bytes, 0 at the end.
 * Characters that must not be shown become `?`. */
size_t clean_next(const char *text, wchar_t *ret_char);
/* Appends a blank and the word to a command line, as a shell reads the same word again; `...` where
 * that is not easily said, or too long: a part of a command may do something else. */
#define CLEAN_WORDS_MAX 200
void clean_add_word(char line[CLEAN_WORDS_MAX], const char *word);
/* A backslash and three octal digits become the byte that they stand for, as in the files of
 * /proc and in .zklockfs/locks; in its place. */
void clean_unescape(char *text);

#endif
