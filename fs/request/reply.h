/* SPDX-License-Identifier: MIT
 *
 * reply.h - the answers of handlers, as the kernel reads them (linux/fuse.h). Each request gets
 * one; the request may be gone then.
 */
#ifndef FS_REPLY_H
#define FS_REPLY_H

#include "request/frontend.h"

#include <errno.h>
#include <sys/stat.h>

/* 0: success; or an errno, above 0. */
void reply_err(struct request *req, int error);
/* To FORGET: the kernel wants no answer. */
void reply_none(struct request *req);
/* A name stands for that node. Times in seconds: for so long the kernel need not ask again. */
void reply_entry(struct request *req, uint64_t ino, const struct stat *st, double entry_timeout,
                 double attr_timeout);
void reply_attr(struct request *req, const struct stat *st, double timeout);
/* To OPEN and OPENDIR. `r` below 0: that error is the answer, and the file, unless it is NULL,
 * ends. */
void reply_open(struct request *req, struct open_file *file, int r);
void reply_buf(struct request *req, const void *bytes, size_t len);
/* So many bytes were written. */
void reply_write(struct request *req, size_t len);
/* To F_GETLK. */
void reply_lock(struct request *req, const struct flock *lock);
void reply_poll(struct request *req, unsigned events);

/* The next name of a directory, behind the bytes in `buffer` that are used already. `type`: as in
 * st_mode. `next`: where a reader goes on behind it. False: there is no room for it. */
bool reply_add_name(char *buffer, size_t *used, size_t room, const char *name, mode_t type,
                    off_t next);

/* NULL: the node is not known any more, and the request is answered ESTALE. Nodes of directories
 * and of open files are always known: node_by_ino(). */
static inline struct node *node_asked(struct request *req, uint64_t ino)
{
	struct node *node = node_by_ino(req->front->nodes, ino);

	if (!node)
		reply_err(req, ESTALE);
	return node;
}

#endif
