/* SPDX-License-Identifier: MIT
 *
 * safe.h - a text that others have chosen, so that it stays in its place: no line ends in it, no
 * word, no label; and no terminal obeys it. Pure.
 */
#ifndef FS_SAFE_H
#define FS_SAFE_H

#include <stddef.h>

enum safe {
	SAFE_LINE,   /* what is harmful (lockcore.h) is '?', and so is a byte of no character */
	SAFE_WORD,   /* a blank of any kind is '_', too */
	SAFE_COLUMN, /* row.h */
	SAFE_LABEL,  /* between the quotes of a label of Prometheus */
};

/* Bytes that one character becomes at most. */
#define SAFE_MAX 16

/* What the character at *text becomes, without a byte 0 behind it. Returns its length; *text is
 * behind the character then. */
size_t safe_next(const char **text, enum safe how, char ret[SAFE_MAX]);
/* All of the text; what does not fit is left out. Returns `room`, which may be `text` for SAFE_LINE
 * and SAFE_WORD: they make no text longer. */
char *safe_text(char *room, size_t size, const char *text, enum safe how);

#endif
