/* SPDX-License-Identifier: MIT
 *
 * frontend.h - the frontend of one mount, which all that serve its requests are handed.
 *
 * A request has one owner and gets one answer. No handler waits.
 */
#ifndef FS_FRONTEND_H
#define FS_FRONTEND_H

#include "host/budget.h"
#include "host/pause.h"
#include "request/answers.h"
#include "request/inbox.h"
#include "request/open_file.h"
#include "request/request.h"
#include "store/record_kinds.h"
#include "tree/content.h"
#include "tree/facts.h"

/* Bytes of one write; the loop's buffer is that and a header. */
#define MAX_WRITE (128 * 1024)
#define REQUEST_BYTES (MAX_WRITE + 4096)

struct frontend {
	struct lc *lc;
	struct nodes *nodes;
	struct holds *holds;       /* hold/hold.h: who waits, and who has a lock */
	struct guardian *guardian; /* guard/guardian.h; NULL: on_lost=none */
	struct lists *lists;       /* files/lists.h: of directories, and of all locks */
	struct mount_facts facts;
	uid_t uid; /* the mounter owns each file that has no other owner */
	gid_t gid;
	struct lc_attributes without; /* for locks that other clients made without any */
	bool read_only;               /* option ro: nobody takes a lock here */
	bool serving;                 /* INIT has come from the kernel */
	bool draining;
	unsigned parked;               /* requests that wait for an answer of the ensemble */
	struct budget files, requests; /* each user's limits of open files and of requests */
	struct records records;        /* what outlives this process */
	struct contents contents;
	struct open_files open_files;
	struct pending pending; /* requests that are not answered yet */
	struct inbox inbox;     /* requests that are served later: inbox.h */
	struct answers answers; /* answers that leave at the end of the turn */
	struct pauses pauses;
	bool traces; /* option debug: the log tells each request, trace.h */
	/* A user with the right to do so wants the mount to go on with these arguments
	 * (host/args.h). 0: the change has begun; or -errno. */
	int (*change)(void *ctx, const char *args, size_t len);
	void *change_ctx;
	int64_t (*clock_us)(void);
};

#endif
