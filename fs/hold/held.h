/* SPDX-License-Identifier: MIT
 *
 * held.h - the answers of a descriptor that holds a lock.
 */
#ifndef FS_HELD_H
#define FS_HELD_H

#include "request/parked.h"

struct holder;

/* Where in the file the token stands, for the reader. */
struct cursor {
	off_t base;
	bool rewind; /* a write came: the next read starts anew */
};

void cursor_carry(struct carry *carry, struct cursor *cursor);

/* Before a read at that offset. Whether it moves. */
bool cursor_move(struct cursor *cursor, off_t off);
void held_read(struct lc_taker *taker, const struct cursor *cursor, struct face *face,
               fuse_req_t req, struct node *node, size_t size, off_t off);
void held_write(struct lc_taker *taker, struct cursor *cursor, fuse_req_t req, const char *data,
                size_t size);
/* The holder by which a request of an open file has the lock at the moment; NULL: none. */
typedef const struct holder *held_holder_fn(const void *file, fuse_req_t req);
/* `holder_of` is called when it is asked for, and again when it is answered. */
void held_fsync(const void *file, held_holder_fn *holder_of, struct face *face, fuse_req_t req,
                struct node *node);
/* `asked`: the events; `waits`: the poller will be woken if they come later. */
void held_poll(struct holder *holder, fuse_req_t req, struct node *node, unsigned asked,
               bool waits);

#endif
