/* SPDX-License-Identifier: MIT
 *
 * utf8.h - one character of UTF-8. Pure.
 */
#ifndef LOCKCORE_UTF8_H
#define LOCKCORE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Reads the character at the start of a text of `len` bytes. Returns its length, or 0: it is cut
 * short, overlong, a surrogate, or beyond U+10FFFF. */
size_t utf8_read(const char *text, size_t len, uint32_t *ret_character);

/* Also here: lc_text_harmful(), lc_text_shown(), lc_text_blank(). */

#endif
