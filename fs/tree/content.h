/* SPDX-License-Identifier: MIT
 *
 * content.h - the text of open files and directories, as it was when they were opened or rewound.
 * It never changes. Open files of one user with the same text of the same node share it, so that a
 * thousand times `value` costs the user one text. Users do not share texts, since each is charged
 * for the own ones.
 */
#ifndef FS_CONTENT_H
#define FS_CONTENT_H

#include "host/budget.h"
#include "tree/node.h"

struct content {
	size_t len;
	const char *data; /* a byte 0 behind it */
	unsigned references;
	struct contents *of;
	struct record record;
	struct content *prev, *next;
	struct content_key {
		uint64_t ino;
		uint64_t uid;
	} key;
	UT_hash_handle hh; /* in `latest`; its tbl is NULL if it is not there */
};

struct contents {
	struct budget *budget;
	struct records *records;
	struct content **read; /* while a state is: in the order of their numbers */
	size_t read_count;
	struct content *all,
		*latest; /* `latest`: what each user last read of each node, while it is open */
};

/* A copy of it, or the user's open text if that is equal: with one reference for the caller. NULL:
 * errno, as of budget_alloc(). */
const struct content *content_get(struct contents *contents, const struct node *node, uid_t uid,
                                  const char *data, size_t len);
/* NULL is nothing. */
void content_drop(const struct content *content);

/* Before the first is read, how many there are; one; that of a file, with a reference of it; and
 * when all are read, those that no file has go. */
void contents_expect(struct codec *codec, struct contents *contents, size_t count);
record_save_load_fn content_record_save_load; /* of struct contents */
const struct content *content_save_load(struct codec *codec, struct contents *contents,
                                        const struct content *content);
void contents_loaded(struct contents *contents);

#endif
