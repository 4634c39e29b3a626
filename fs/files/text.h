/* SPDX-License-Identifier: MIT
 *
 * text.h - the open file of everything that is no lock file.
 */
#ifndef FS_TEXT_H
#define FS_TEXT_H

#include "request/frontend.h"
#include "request/parked.h"

struct text_file {
	struct open_file base;
	const struct content *content; /* as it was when it was opened; NULL if only written to */
	int64_t czxid;                 /* `slots`: of the lock that it was opened for */
	bool written;                  /* `value`: the next write appends to the last one */
};

/* A WRITE to such a file. */
struct text_write {
	struct parked parked;
	struct text_file *file;
	size_t size;
};

/* Answers the request. */
void text_open(struct frontend *front, struct request *req, struct node *node, int flags);
/* Answers the OPEN. `text`: NULL if there is nothing to read. `czxid`: as of the open file. */
void text_reply(struct frontend *front, struct request *req, struct node *node, const char *text,
                size_t len, int64_t czxid);
record_save_load_fn text_record_save_load; /* of struct frontend */

/* The request asks to take an entry of a queue from its taker. For park_change(). */
int evict_entry(struct parked *parked, lc_done_fn *done);

/* ---- value.c ---- */

/* Empties the value, for park_change(). -EACCES: the parked request's process may not. */
int value_empty(struct parked *parked, lc_done_fn *done);

void value_write(struct text_file *file, struct request *req, const char *data, size_t size,
                 off_t off);

#endif
