/* SPDX-License-Identifier: MIT
 *
 * handle.h - the open file of a door.
 */
#ifndef FS_HANDLE_H
#define FS_HANDLE_H

#include "hold/hold.h"

struct handle;

/* Answers the request when the lock is held, or not to be had. */
void handle_open(struct face *face, fuse_req_t req, struct node *node,
                 const struct fuse_file_info *fi);
void handle_read(struct handle *handle, fuse_req_t req, size_t size, off_t off);
void handle_write(struct handle *handle, fuse_req_t req, const char *data, size_t size);
void handle_fsync(struct handle *handle, fuse_req_t req);
void handle_poll(struct handle *handle, fuse_req_t req, unsigned asked, uint64_t poller);
void handle_release(struct handle *handle);
/* No RELEASE will come any more; after holds_end(). */
void handles_end(struct face *face);
/* Pollers of these files are to ask again. */
void handles_wake(struct face *face);
/* Of holds that doors have: for hold_stored_carry(). */
extern const struct hold_kind handle_kind;

#endif
