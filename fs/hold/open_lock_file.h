/* SPDX-License-Identifier: MIT
 *
 * open_lock_file.h - the open file of a lock file, and what it answers while a lock is held by it:
 * the token, the reason, fsync and poll. Once the lock is lost all of it is EIO, and poll says so.
 */
#ifndef FS_OPEN_LOCK_FILE_H
#define FS_OPEN_LOCK_FILE_H

#include "hold/hold.h"

struct open_lock_file {
	struct open_file base;
	off_t token_at; /* where in the file the token stands, for the reader */
	bool rewind;    /* a write came: the next read starts anew */
};

/* A kind of lock file. */
struct lock_file_ops {
	struct file_ops file; /* with the four functions below */
	/* The claim by which the process of the request has the lock with this file now; NULL:
	 * none. */
	struct claim *(*claim)(struct open_file *file, struct request *req);
	/* A write without a claim: keeps the reason for the locks to come. 0 or -errno. */
	int (*keep_reason)(struct open_file *file, const char *data, size_t size);
};

void lock_file_read(struct open_file *file, struct request *req, size_t size, off_t off);
void lock_file_write(struct open_file *file, struct request *req, const char *data, size_t size,
                     off_t off);
void lock_file_fsync(struct open_file *file, struct request *req);
void lock_file_poll(struct open_file *file, struct request *req, unsigned asked, uint64_t poller);

/* Opens a lock file other than `flock`: answers the request when the lock is held, or not to be
 * had. */
void handle_open(struct frontend *front, struct request *req, struct node *node, int flags);
/* The kind of the holds that such files make. */
extern const struct hold_kind handle_kind;

/* Saves or loads the fields above and the poller. */
void open_lock_file_save_load(struct codec *codec, struct open_file *file);

#endif
