/* SPDX-License-Identifier: MIT
 *
 * viewer.h - a user who reads many locks by one file, and the locks that this user may see: those
 * whose files the kernel would let the user open by their paths.
 */
#ifndef FS_VIEWER_H
#define FS_VIEWER_H

#include "request/frontend.h"

/* Groups of a user beyond so many are passed over: less is seen then. */
#define VIEWER_GROUPS_MAX 1024

struct viewer {
	uid_t uid;
	gid_t gid;
	size_t count;
	gid_t groups[];
};

/* The user whose request this is, which is an OPEN: its thread waits for us. Of the user's
 * budget of open files; NULL: errno. */
struct viewer *viewer_of(struct frontend *front, struct request *req);
/* The files in that lock. */
bool viewer_enters(const struct viewer *viewer, const struct lc_attributes *lock);
/* The names of the locks in it, too. */
bool viewer_lists(const struct viewer *viewer, const struct lc_attributes *lock);

#endif
