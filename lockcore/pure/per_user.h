/* SPDX-License-Identifier: MIT
 *
 * per_user.h - a table with one element for each user, by uid. An element is there as long as
 * there is something to keep of that user. Pure; fs/ uses it, too.
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
	uid_t uid;
	UT_hash_handle hh;
};

/* NULL: nothing is kept of that user. */
void *per_user_find(const struct per_user *table, uid_t uid);
/* The user's element, or a new one of that size, which is zero behind its first member. NULL: no
 * memory. */
void *per_user_get(struct per_user **table, uid_t uid, size_t size);
/* Takes the element out, and frees it. */
void per_user_drop(struct per_user **table, struct per_user *user);

#endif
