/* SPDX-License-Identifier: MIT
 *
 * parked.h - a request that waits for an answer of the ensemble.
 */
#ifndef FS_PARKED_H
#define FS_PARKED_H

#include "host/family.h"
#include "request/face.h"

/* The holder by which a request of an open file has the lock at the moment; NULL: none. */
typedef const struct holder *held_holder_fn(const void *file, fuse_req_t req);

/* A request that waits for an answer of the ensemble.
 *
 *   park() ─► [NEW] ──park_call()──► [ASKING] ──unpark()──► [HEARD] ──parked_free()──► answered
 *                                     │    ▲                 │   │
 *               interrupted: answered │    └───park_call()───┘   │ parked_commit()
 *                                     ▼                          ▼
 *                                  EINTR                    [COMMITTED]: more is to be asked, but
 *                                                           no interrupt undoes what was done
 */
struct parked {
	struct face *face;
	fuse_req_t req;
	uint64_t unique;      /* its number */
	struct lc_call *call; /* ASKING: cancelled when the request is interrupted */
	struct node *node;    /* a reference, or NULL */
	enum parked_state { PARKED_NEW, PARKED_ASKING, PARKED_HEARD, PARKED_COMMITTED } state;
	void (*refuse)(fuse_req_t req, int error); /* how it is answered with an error */
	int64_t renewed_ago_ms; /* OPEN of an entry: lc_renewed(); -1: not known */
	/* Of a request that writes: */
	uid_t by; /* the user whose authority counts: park_by() */
	struct turn turn;
	int (*go)(struct parked *parked);
	lc_done_fn *done;
	struct lc_change change;
	char *text;
	/* What the request asks for, by its kind: */
	union {
		char name[LC_NAME_MAX + 1]; /* LOOKUP, MKDIR: in the node */
		struct fuse_file_info open; /* OPEN of a text file */
		struct {
			struct dir *dir;
			size_t size;
		} readdir;
		struct {
			struct lc_taker *taker; /* READ of its token */
			size_t size;
			off_t off;
		} token;
		struct {
			const void *file;
			held_holder_fn *holder_of;
		} fsync;
		struct {
			struct text_file *file;
			size_t size;
			off_t off;
		} write; /* to a text file */
		struct {
			struct process_id process;
			uint64_t owner;
			enum lc_mode mode;
			unsigned slots;
		} getlk;
	};
};

/* Takes a reference on the node. NULL: the request is answered ENOMEM or ENFILE. */
struct parked *park(struct face *face, fuse_req_t req, struct node *node, const char *name);
/* The same for a write by a file that `opener` has opened. A file may be handed on, for example as
 * the standard error of a program with setuid, which then writes what its user wants. So both must
 * be allowed to. EPERM: these are two users, and neither is root. */
struct parked *park_by(struct face *face, fuse_req_t req, struct node *node, uid_t opener);
/* The same as park() for a request that is not answered with an errno. */
struct parked *park_or(struct face *face, fuse_req_t req, struct node *node, const char *name,
                       void (*refuse)(fuse_req_t req, int error));
/* The call was made, or could not be: r < 0 answers the request. */
void park_call(struct parked *parked, int r);
/* For park_call(): a write, made by go() when it is its user's turn, now or later; its arguments
 * are in `parked`. It returns as the lc_ functions do. */
int park_write(struct parked *parked, int (*go)(struct parked *parked));
/* Writes whose turn has come, or which have waited for it too long. */
void parked_process(struct face *face);
int64_t parked_wait(const struct face *face);
/* No turn comes any more. */
void parked_finish(struct face *face);
/* The call is answered: nothing interrupts any more. */
void unpark(struct parked *parked);
/* The same; false: by an error, which is the answer of the request, too. It is freed. */
bool unpark_succeeded(struct parked *parked, int err);
/* After unpark(): something has changed. No interrupt ends the calls that follow. */
void parked_commit(struct parked *parked);
/* The user that asks. */
uid_t parked_uid(const struct parked *parked);
void parked_free(struct parked *parked);
/* Both answer the request and free. */
void parked_error(struct parked *parked, int error);
void parked_done(void *ctx, int err); /* an lc_done_fn */

#endif
