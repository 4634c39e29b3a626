/* SPDX-License-Identifier: MIT
 *
 * face.h - the common header of the files that serve FUSE requests.
 *
 *   ops     the operations' table, lookup, mkdir, rmdir
 *   attributes  stat(2), chmod, chown
 *   dir     opendir, readdir
 *   file    open, read, write ... : which kind of file it is
 *   text    the open file of everything that is not a door; value: who may write it
 *   hold    one taker: the request that waits, its place in the queue, its holders
 *   handle  the open file of a door
 *   advisory  the open file of the door flock; claim: an owner that has the lock by it
 *   held    the answers of a descriptor that holds a lock
 *   locks   the open file of .zklockfs/locks; walk: all locks of the mount, one after the other;
 *           viewer: which of them a user may see; row: a line of columns
 *   story   the life of a taker, for the log and .zklockfs/history
 *   parked  a request that waits for an answer of the ensemble
 *   stored  objects that outlive this process
 *   pending  the bytes of requests that are not answered; answers: of the answers; inbox: which
 *           of many requests is served first
 *   fh      the numbers of open files
 *   content  the text of open files and directories; budget: the memory charged to users
 *
 * A request has one owner and gets one answer. No handler waits.
 */
#ifndef FS_FACE_H
#define FS_FACE_H

#define FUSE_USE_VERSION 314

#include "request/answers.h"
#include "host/budget.h"
#include "tree/content.h"
#include "host/family.h"
#include "tree/fh.h"
#include "guard/guardian.h"
#include "request/inbox.h"
#include "hold/linger.h"
#include "tree/node.h"
#include "host/pause.h"
#include "request/pending.h"
#include "setup/servers.h"
#include "hold/story.h"
#include "request/turn.h"
#include "tree/view.h"

#include <errno.h>
#include <fuse_lowlevel.h>

/* Bytes of one write; the loop's buffer is that and a header. */
#define MAX_WRITE (128 * 1024)
#define REQUEST_BYTES (MAX_WRITE + 4096)

/* The names of a directory, as dir.c hands them out. */
struct dir_list {
	uint64_t serial; /* of the listing that it was made of; 0: none */
	char *data;
	size_t len, room;
	bool failed; /* no memory for one of them */
};

/* Made once for all who read the same directories at the same time. */
#define DIR_LISTS_MAX 4

/* A user whose groups took long to read, and until when they are not read again: viewer.c. */
#define VIEWERS_RESTING_MAX 16
struct viewer_rest {
	uid_t uid;
	int64_t until_us;
};

struct face {
	struct lc *lc;
	struct nodes *nodes;
	const char *host;
	const struct servers *servers;
	uid_t uid; /* the mounter, owner of what has no other */
	gid_t gid;
	struct lc_attributes without; /* of locks that have none, made by other clients */
	bool serving;                 /* the kernel has greeted */
	bool draining;
	unsigned holds;                /* waiting, lingering or held */
	unsigned parked;               /* requests that wait for an answer of the ensemble */
	struct budget files, requests; /* what users have open, and wait for */
	struct turns turns;            /* who may write to the ensemble */
	struct stored_objects stored;  /* what outlives this process */
	struct contents contents;
	struct fhs fhs;          /* all open files and directories */
	struct pending pending;  /* requests that are not answered yet */
	struct inbox inbox;      /*   those of them that are served later */
	struct answers answers;  /*   and answers that are to leave */
	unsigned long reloads;   /* how often another program took over */
	unsigned long adoptions; /* and after a crash */
	struct dir_list dir_lists[DIR_LISTS_MAX];
	struct linger linger;
	struct guardian *guardian; /* NULL: on_lost=none */
	const char *on_lost;       /* guardian_on_lost_name() */
	bool keeper, keeper_gone;  /* wanted; and not there */
	struct hold *waiting;      /* in the order of their requests */
	unsigned seekers;          /* how many of them would join their family's */
	struct hold *held;
	struct hold *admitting; /* of those: families that others may still join, oldest first */
	int64_t admit_until_us; /*   and until when that may go on in this turn */
	uint64_t grants;
	struct advisory *advisories;    /* open files of flock doors */
	struct locks_file *locks_files; /* open files of .zklockfs/locks */
	struct viewer_rest viewers_rest[VIEWERS_RESTING_MAX];
	bool read_only;         /* the mount: nothing is to be taken */
	int64_t kernel_limit_s; /* kernel_limit.h */
	struct stories stories;
	const char *mountpoint;
	const struct settings *settings; /* of the servers */
	unsigned metrics_locks;          /* so many locks have a series of their own */
	struct pauses pauses;
	struct trace *trace; /* trace.h; NULL: requests are not traced */
	int64_t (*clock_us)(void);
};

static inline struct face *face_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

/* NULL: the node is not known any more, and the request is answered ESTALE. Nodes of directories
 * and of open files are always known: node_by_ino(). */
static inline struct node *node_asked(fuse_req_t req, fuse_ino_t ino)
{
	struct node *node = node_by_ino(face_of(req)->nodes, ino);

	if (!node)
		fuse_reply_err(req, ESTALE);
	return node;
}

/* ---- parked.c ---- */

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

/* ---- text.c ---- */

/* The request asks to take an entry of a queue from its taker. For park_call(). */
int evict_entry(struct parked *parked, lc_done_fn *done);

/* ---- attributes.c ---- */

#define TIMEOUT_S 1.0            /* changes of another host show after this */
#define TIMEOUT_STATIC_S 86400.0 /* names that every lock has */

/* A user that may write in a directory may take the lock; a user that may take it may read its
 * token. */
mode_t attributes_door_mode(mode_t mode);
struct lc_attributes attributes_of_lock(const struct face *face, const struct node *lock);
/* A lock was just read; or it does not exist, and its node may go. */
void attributes_learn(const struct face *face, struct node *lock, const struct lc_lock_info *info);
void attributes_unlearn(const struct face *face, struct node *lock);
void attributes(const struct face *face, const struct node *node, struct stat *ret_stat);
/* How long the kernel may go on believing them, in seconds. */
double attributes_timeout(const struct face *face, const struct node *node);

void attributes_get(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void attributes_set(fuse_req_t req, fuse_ino_t ino, struct stat *wanted, int to_set,
                    struct fuse_file_info *fi);

/* ---- ops.c, dir.c, file.c ---- */

extern const struct fuse_lowlevel_ops ops;

void dir_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void dir_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void dir_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
/* False: it is not an open directory. */
bool dir_close(struct face *face, uint64_t fh);
void dirs_end(struct face *face);
/* An open directory. */
void dir_stored_carry(struct carry *carry, struct face *face, struct stored *stored);

void file_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void file_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void file_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
                struct fuse_file_info *fi);
void file_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void file_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
               struct fuse_pollhandle *ph);
void file_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void file_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
/* The kernel did not take the answer to its OPEN, or OPENDIR: no RELEASE will come. */
void file_unopened(struct face *face, uint64_t fh);
void file_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int op);
void file_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock);
void file_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock,
                int sleep);

/* No RELEASE will come any more. `leave`: all descriptors are closed, give the locks
 * back; otherwise the engine is gone already. */
void files_end(struct face *face, bool leave);

/* ---- handle.c ---- */

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

/* ---- held.c ---- */

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
/* `holder_of` is called when its turn has come: turn.h. */
void held_fsync(const void *file, held_holder_fn *holder_of, struct face *face, fuse_req_t req,
                struct node *node);
/* `asked`: the events; `waits`: the poller will be woken if they come later. */
void held_poll(struct holder *holder, fuse_req_t req, struct node *node, unsigned asked,
               bool waits);

#endif
