/* SPDX-License-Identifier: MIT
 *
 * absent.h - names that are looked up and are not there, by directory.
 *
 * While a name is looked up, the kernel may keep everybody else from looking up another new name in
 * the same directory: mkdir(2) does so before it asks whether the user may make anything there. So
 * whoever looks up one new name after the other delays all others by a round trip for each. Such a
 * directory is *crowded*: there a listing that is a second old at most says which names are not
 * there. Where few names are looked up in vain, the ensemble is asked for each, so that what
 * another host has made is there at once. The same goes for the directory's attributes, which the
 * kernel reads anew before it refuses somebody.
 *
 * A look-up in vain costs its time and 1/20 s. A directory is crowded while these add up to more
 * than a second, of which one second goes by in a second. So 20 names in a second, or one that
 * waits long for its user's turn, make it so.
 */
#ifndef FS_ABSENT_H
#define FS_ABSENT_H

#include "lockcore.h"

#include <stddef.h>
#include <stdint.h>

/* How long a listing is good for; how much a look-up costs beside its time. */
#define ABSENT_LIST_US INT64_C(1000000)
#define ABSENT_COST_US INT64_C(50000)
/* How many directories are remembered, and the bytes of all their listings. Those looked at longest
 * ago go first. */
#define ABSENT_DIRECTORIES_MAX 1024
#define ABSENT_BYTES_MAX ((size_t)4 * 1024 * 1024)

/* Zeroed: there is none. */
struct absents {
	struct absent *by_ino, *oldest;
	unsigned count;
	size_t bytes;
};

enum absent_answer { ABSENT_UNKNOWN, ABSENT_NOT_THERE, ABSENT_MAY_BE_THERE };

/* Whose turn it is to ask about a crowded directory. The turn of a user who asks much else may come
 * late, and the kernel lets everybody wait for it. */
#define ABSENT_UID ((uid_t)-1)

/* The user has looked up a name in vain in the directory of that number, which took so long. */
void absent_note(struct absents *absents, uint64_t ino, uid_t uid, int64_t now_us, int64_t took_us);
/* Never for root, whose look-ups are not noted either. */
bool absent_is_crowded(const struct absents *absents, uint64_t ino, uid_t uid, int64_t now_us);
/* What the last listing says. UNKNOWN: there is none, or it is too old. */
enum absent_answer absent_ask(struct absents *absents, uint64_t ino, const char *name,
                              int64_t now_us);
/* The directory was listed, which was asked for at that time. */
void absent_learn(struct absents *absents, uint64_t ino, const struct lc_listing *listing,
                  int64_t asked_us);
/* A name is there: a listing that does not show it, or may have been asked for before, is of no use
 * any more. */
void absent_found(struct absents *absents, uint64_t ino, const char *name, int64_t now_us);
void absents_finish(struct absents *absents);

#endif
