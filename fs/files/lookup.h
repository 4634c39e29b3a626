/* SPDX-License-Identifier: MIT
 *
 * lookup.h - which file has a name.
 */
#ifndef FS_LOOKUP_H
#define FS_LOOKUP_H

#include "request/parked.h"

/* A request for a name in the node. */
struct named {
	struct parked parked;
	char name[LC_NAME_MAX + 1];
	int64_t begun_us;
};

/* NULL: the request is answered ENOMEM or ENFILE. */
struct named *lookup_park(struct frontend *front, struct request *req, struct node *parent,
                          const char *name);
/* Answers with the lock of that name, which is as it says, and frees. */
void lookup_reply_lock(struct named *named, const struct lc_lock_info *info);
/* FUSE's operation. */
void lookup_name(fuse_req_t fuse, fuse_ino_t parent_ino, const char *name);

#endif
