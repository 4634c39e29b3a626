/* SPDX-License-Identifier: MIT
 *
 * letters.h - the data of a mount's mailbox (session/mailbox.c). Pure. Each letter names one entry
 * that somebody has evicted: the second half of the entry's UUID in 16 digits, and a newline.
 * Strangers may have left anything between whole letters, or behind them. So a letter begins at a
 * multiple of its length, and what is no letter is passed over.
 */
#ifndef LOCKCORE_LETTERS_H
#define LOCKCORE_LETTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LETTER_LEN 17
/* A mailbox has so many at most; where there are more, the oldest are left out. */
#define LETTERS_MAX 64
#define LETTERS_SIZE (LETTERS_MAX * LETTER_LEN)

/* The data with one more letter. Returns its length. */
size_t letters_add(char ret_data[LETTERS_SIZE], const void *data, size_t len, uint64_t id);
/* Some may have been left out. */
bool letters_are_full(size_t len);
/* The next letter from *at on, which begins with 0. False: there is none. */
bool letters_next(const void *data, size_t len, size_t *at, uint64_t *ret_id);

#endif
