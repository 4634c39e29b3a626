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
	uid_t uid; /* the mounter, owner of what has no other */
	gid_t gid;
	struct lc_attributes without; /* of locks that have none, made by other clients */
	bool read_only;               /* nothing is to be taken */
	bool serving;                 /* INIT has come from the kernel */
	bool draining;
	int64_t kernel_limit_s;        /* kernel_limit.h */
	unsigned parked;               /* requests that wait for an answer of the ensemble */
	struct budget files, requests; /* what users have open, and wait for */
	struct records records;        /* what outlives this process */
	struct contents contents;
	struct open_files open_files;
	struct pending pending; /* requests that are not answered yet */
	struct inbox inbox;     /*   those of them that are served later */
	struct answers answers; /*   and answers that are to leave */
	struct pauses pauses;
	bool traces; /* each request is told of: trace.h */
	/* Somebody who may wants the mount to go on with these arguments (host/args.h): 0, once
	 * that has begun; or -errno. */
	int (*change)(void *ctx, const char *args, size_t len);
	void *change_ctx;
	int64_t (*clock_us)(void);
};

#endif
