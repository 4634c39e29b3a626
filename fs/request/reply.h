/* SPDX-License-Identifier: MIT
 *
 * reply.h - the answers of handlers, as the kernel reads them (linux/fuse.h). Each request gets
 * one; the request may be gone then.
 */
#ifndef FS_REPLY_H
#define FS_REPLY_H

#include "request/frontend.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>

/* 0: success; or an errno, above 0. */
void reply_err(struct request *req, int error);
/* Answers that a name stands for the node with these attributes. The kernel need not ask again for
 * the name, or for the attributes, so long. */
void reply_entry(struct request *req, const struct fuse_attr *attr, int64_t name_us,
                 int64_t attr_us);
void reply_attr(struct request *req, const struct fuse_attr *attr, int64_t attr_us);
/* Answers OPEN and OPENDIR. `r` below 0: this error is the answer, and the file ends, unless it
 * is NULL. */
void reply_open(struct request *req, struct open_file *file, int r);
void reply_buf(struct request *req, const void *bytes, size_t len);
/* Answers that so many bytes were written. */
void reply_write(struct request *req, size_t len);
/* Answers F_GETLK. */
void reply_lock(struct request *req, const struct flock *lock);
/* The events of a file that is always ready; and of a lock file that has lost its lock: select(2)
 * sees only POLLPRI of them. */
#define POLL_ALWAYS (POLLIN | POLLOUT)
#define POLL_LOST (POLL_ALWAYS | POLLERR | POLLHUP | POLLPRI)
void reply_poll(struct request *req, unsigned events);

/* Adds the next name of a directory to the buffer, behind its `used` bytes. `type`: as in
 * st_mode. `next`: the offset at which a reader goes on. False: there is no room. */
bool reply_add_name(char *buffer, size_t *used, size_t room, const char *name, mode_t type,
                    off_t next);

/* The node that the request names. NULL: the node is forgotten, and the request is answered
 * ESTALE. Directories and open files keep their nodes: node_by_ino(). */
static inline struct node *node_asked(struct request *req, uint64_t ino)
{
	struct node *node = node_by_ino(req->front->nodes, ino);

	if (!node)
		reply_err(req, ESTALE);
	return node;
}

#endif
