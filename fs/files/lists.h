/* SPDX-License-Identifier: MIT
 *
 * lists.h - what open directories, look-ups and .zklockfs/locks share.
 */
#ifndef FS_LISTS_H
#define FS_LISTS_H

#include "tree/absent.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The names of a directory, as dir.c hands them out. */
struct dir_list {
	uint64_t serial; /* of the listing that it was made of; 0: none */
	char *data;
	size_t len, room;
	bool failed;    /* no memory for one of them */
	uint64_t ino;   /* the directory's; 0: not all names are there. sweep.c: */
	size_t swept;   /*   where the names begin that were not asked about yet, */
	unsigned ahead; /*   and how many are asked about beside the next one */
};

struct swept;

/* When a session was renewed last, as the ensemble said a moment ago: text.c. -1: it has ended. */
#define LIVES_MAX 16
struct life {
	int64_t session, renewed_ms, asked_us;
};

/* Made once for all who read the same directories at the same time. */
#define DIR_LISTS_MAX 4

/* A user whose groups took long to read, and until when they are not read again: viewer.c. */
#define VIEWERS_RESTING_MAX 16
struct viewer_rest {
	uid_t uid;
	int64_t until_us;
};

struct lists {
	struct absents absents;
	struct dir_list directories[DIR_LISTS_MAX];
	struct swept *swept; /* names that are being asked about ahead */
	unsigned swept_count;
	int64_t forgot_us; /* when it was last learnt that a lock is gone */
	struct viewer_rest viewers_rest[VIEWERS_RESTING_MAX];
	struct life lives[LIVES_MAX]; /* by session */
};

#endif
