/* SPDX-License-Identifier: MIT
 *
 * chain.h - what the holders of a lock wait for themselves, and what the holders of that wait for,
 * on whatever host; and whether that leads back: a deadlock, which no lock service ends.
 *
 * Only what is certain is told as such. A process is that of two entries when both have its number
 * and the same session, which is that of one mount; and an entry is of a process below another
 * where our own /proc shows it. Who descends from whom on other hosts is not known here: what may
 * be a circle there is told as that.
 */
#ifndef ZKLOCK_CHAIN_H
#define ZKLOCK_CHAIN_H

#include "entry.h"
#include "health.h"

struct chain;

/* NULL: it cannot be known, and the reason is printed. */
struct chain *chain_begin(const struct mount *mount, const struct health *health);
/* Prints what this holder of the lock waits for, and so on. */
void chain_follow(struct chain *chain, const char *lock, struct entry *holder);
void chain_end(struct chain *chain);

#endif
