/* SPDX-License-Identifier: MIT
 *
 * attributes.h - stat(2), chmod, chown.
 */
#ifndef FS_ATTRIBUTES_H
#define FS_ATTRIBUTES_H

#include "request/frontend.h"

#define TIMEOUT_US INT64_C(1000000)            /* changes of another host show after this */
#define TIMEOUT_STATIC_US INT64_C(86400000000) /* names that every lock has */

/* A user that may write in a directory may take the lock; a user that may take it may read its
 * token. */
mode_t attributes_lock_file_mode(mode_t mode);
struct lc_attributes attributes_of_lock(const struct frontend *front, const struct node *lock);
/* The lock of that name, with one reference. A lock that was made anew is another lock: files that
 * were opened in the former one do not belong to it. NULL: no memory. */
struct node *attributes_node(struct frontend *front, struct node *parent, const char *name,
                             int64_t czxid);
/* A lock was just read; or it does not exist, and its node may go. */
void attributes_learn(const struct frontend *front, struct node *lock,
                      const struct lc_lock_info *info);
void attributes_unlearn(const struct frontend *front, struct node *lock);
struct fuse_attr attributes(const struct frontend *front, const struct node *node);
/* How long the kernel may go on believing them. */
int64_t attributes_timeout_us(const struct frontend *front, const struct node *node);

void attributes_get(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi);
void attributes_set(fuse_req_t fuse, fuse_ino_t ino, struct stat *wanted, int to_set,
                    struct fuse_file_info *fi);

#endif
