/* SPDX-License-Identifier: MIT
 *
 * door_file.h - the open file of a door, and what it answers while a lock is held by it: the token,
 * the reason, fsync and poll. Once the lock is lost all of it is EIO, and poll says so.
 */
#ifndef FS_DOOR_FILE_H
#define FS_DOOR_FILE_H

#include "request/frontend.h"

struct claim;

struct door_file {
	struct open_file base;
	off_t token_at; /* where in the file the token stands, for the reader */
	bool rewind;    /* a write came: the next read starts anew */
};

/* A kind of door. */
struct door_ops {
	struct file_ops file; /* with the four functions below */
	/* By which claim the request has the lock with the file at the moment; NULL: none. */
	struct claim *(*claim)(struct open_file *file, struct request *req);
	/* A write while it has none: the reason of the locks to come. -errno. */
	int (*keep_reason)(struct open_file *file, const char *data, size_t size);
};

void door_read(struct open_file *file, struct request *req, size_t size, off_t off);
void door_write(struct open_file *file, struct request *req, const char *data, size_t size,
                off_t off);
void door_fsync(struct open_file *file, struct request *req);
void door_poll(struct open_file *file, struct request *req, unsigned asked, uint64_t poller);

/* What is above, and the poller. */
void door_carry(struct carry *carry, struct open_file *file);

#endif
