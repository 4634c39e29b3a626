/* SPDX-License-Identifier: MIT
 *
 * value.c - writing to `value`, the text that stays with a lock from holder to holder, and
 * emptying it.
 * Only the exclusive holder may: the process that took the lock on this mount, or one that
 * descends from it. Where that cannot be seen, since one of the two is in another pid
 * namespace or has ended, the user must be the same.
 */
#include "files/text.h"

#include "hold/hold.h"
#include "host/process.h"
#include "request/parked.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* How often a value is in memory while it is written. */
#define WRITE_COPIES 5

struct writer {
	uid_t uid;
	struct lineage *lineage; /* NULL: not visible */
};

static bool belongs_to(const struct hold *hold, const struct writer *writer)
{
	const struct claim *claim;

	DL_FOREACH(hold->claims, claim) {
		bool lives = process_lives(claim->life);

		if (lives && writer->lineage && lineage_find(writer->lineage, claim->pid) >= 0)
			return true;
		if (claim->uid == writer->uid && (!lives || !writer->lineage))
			return true;
	}
	return false;
}

/* The hold by which the process may write, one that is not lost if there is one; NULL: none. */
static struct hold *find_hold(const struct frontend *front, const char *lock,
                              const struct writer *writer)
{
	struct hold *hold, *lost = NULL;

	DL_FOREACH(front->holds->held, hold) {
		if (hold->audit.mode != LC_EXCLUSIVE || strcmp(hold->node->lock, lock) != 0 ||
		    !belongs_to(hold, writer))
			continue;
		if (lc_holds(hold->taker))
			return hold;
		lost = hold;
	}
	return lost;
}

/* The hold of the process that sent the request. With the authority of another user, who opened the
 * file, it does not count which process this is. */
static struct hold *hold_of(const struct parked *parked)
{
	const struct fuse_in_header *caller = &parked->req->in;
	struct writer writer = {.uid = parked->by};
	struct hold *hold;

	if (parked->by == caller->uid)
		writer.lineage = lineage_read(process_of((pid_t)caller->pid));
	hold = find_hold(parked->front, parked->node->lock, &writer);
	free(writer.lineage);
	return hold;
}

int value_empty(struct parked *parked, lc_done_fn *done)
{
	struct hold *hold = hold_of(parked);

	return hold ? lc_set_value(hold->taker, "", 0, /* append = */ false, done, parked,
	                           &parked->call)
	            : -EACCES;
}

static void value_written(void *ctx, int err)
{
	const struct text_write *write = ctx;
	struct text_file *file = write->file;

	if (!unpark_succeeded(ctx, err))
		return;
	file->written = true;
	record_touch(&file->base.record);
	reply_write(write->parked.req, write->size);
	parked_free(ctx);
}

void value_write(struct text_file *file, struct request *req, const char *data, size_t size,
                 off_t off)
{
	struct text_write *write =
		park_by(file->base.front, req, file->base.node, sizeof(*write), budget_uid(file));
	struct parked *parked = &write->parked;
	struct hold *hold;

	if (!write)
		return;
	if (budget_add(write, WRITE_COPIES * size) < 0) {
		parked_error(parked, -ENFILE);
		return;
	}
	write->file = file;
	write->size = size;
	hold = hold_of(parked);
	park_change(parked, hold ? lc_set_value(hold->taker, data, size, file->written && off > 0,
	                                        value_written, write, &parked->call)
	                         : -EACCES);
}
