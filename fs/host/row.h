/* SPDX-License-Identifier: MIT
 *
 * row.h - a line of columns, as awk(1) and column(1) take it: words with a blank between
 * them. Pure.
 *
 * No word contains a blank of any kind or a control character, for any text of users, and none is
 * empty. So the columns stay where they are, and a line stays a line. As in /proc/mounts, a byte
 * that cannot stand in a word is a backslash and three octal digits: of
 *
 *   a blank               \040
 *   a backslash           \134
 *   other white space     each byte of it, such as \342\200\250 for U+2028
 *   what turns the        each byte of it, such as \342\200\256 for U+202E
 *     direction of writing
 *   a text that is -      \055, for - is what is not known
 *
 * A control character is a question mark, and so is a byte of no character.
 */
#ifndef FS_ROW_H
#define FS_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a word at most, and of a number with its blank. */
#define ROW_WORD_MAX(bytes) (4 * (bytes) + 1)
#define ROW_NUMBER_MAX 24

struct row {
	char *text; /* the caller's; no byte 0 behind it */
	size_t len, room;
	bool short_of_room; /* something did not fit, and was left out */
};

/* The next word. NULL or empty: not known. */
void row_word(struct row *row, const char *text);
/* The text as a word alone, with a byte 0 behind it. Returns `room`. */
const char *row_only(char *room, size_t size, const char *text);
/* `none`: the number that means "not known". */
void row_number(struct row *row, int64_t number, int64_t none);
/* Seconds, rounded to one digit behind the point; below 0: not known. */
void row_seconds(struct row *row, int64_t ms);
/* The line ends. */
void row_end(struct row *row);

#endif
