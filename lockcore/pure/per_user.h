/* SPDX-License-Identifier: MIT
 *
 * per_user.h - a table with one element for each user, by uid. An element is there as long as
 * there is something to keep of that user. Pure; fs/ uses it, too.
 *
 * Some users have many uids: those of a range are one user, who has one element. Which ranges there
 * are may change; an element stays what it is.
 *
 *     struct usage {
 *             struct per_user user;   (first)
 *             size_t bytes;
 *     };
 *     struct per_user *usages = NULL;
 */
#ifndef LOCKCORE_PER_USER_H
#define LOCKCORE_PER_USER_H

#include <stddef.h>
#include <sys/types.h>

/* An element for which there is no memory is not added: its hh.tbl stays NULL. */
#ifndef HASH_NONFATAL_OOM
#define HASH_NONFATAL_OOM 1
#endif
#include <uthash.h>

struct per_user {
	uid_t uid; /* per_user_share() of the user, when the element was made */
	UT_hash_handle hh;
};

struct per_user_range {
	uid_t first, last; /* 1 to 2^32 - 2, for 0 is root and 2^32 - 1 is nobody */
	uid_t share;       /* the user whose they are, by one uid; not 0 */
};

/* These ranges and no others, for the whole process, until the next call. They are sorted, and have
 * no uid in common. They are the caller's, and stay until the next call. */
void per_user_ranges(const struct per_user_range *sorted, size_t count);
/* The uid that stands for the user: itself, if it is in no range. */
uid_t per_user_share(uid_t uid);

/* The element with this uid in it, which is none of a range's others. NULL: there is none. */
void *per_user_find(const struct per_user *table, uid_t uid);
/* The user's element, or a new one of that size, which is zero behind its first member. NULL: no
 * memory. */
void *per_user_get(struct per_user **table, uid_t uid, size_t size);
/* Takes the element out, and frees it. */
void per_user_drop(struct per_user **table, struct per_user *user);

#endif
