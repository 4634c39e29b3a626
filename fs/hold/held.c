/* SPDX-License-Identifier: MIT
 *
 * held.c - what a descriptor by which a lock is held answers: the token, the reason,
 * fsync and poll. Once the lock is lost all of it is EIO, and poll says so.
 */
#include "request/face.h"

#include "request/parked.h"
#include "hold/held.h"
#include "guard/guardian.h"
#include "hold/holder.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

/* `offset`: within the token's line. */
static void reply_token(struct lc_taker *taker, fuse_req_t req, size_t size, off_t offset)
{
	char token[24];
	int len = snprintf(token, sizeof(token), "%" PRId64 "\n", lc_token(taker));

	if (!lc_holds(taker))
		fuse_reply_err(req, EIO);
	else if (offset < 0 || offset >= len)
		fuse_reply_buf(req, NULL, 0);
	else
		fuse_reply_buf(req, token + offset,
		               size < (size_t)(len - offset) ? size : (size_t)(len - offset));
}

/* A READ that waits for it. */
struct token_read {
	struct parked parked;
	struct lc_taker *taker; /* which no RELEASE can end before its read is answered */
	size_t size;
	off_t off;
};

static void token_fetched(void *ctx, int err)
{
	const struct token_read *read = ctx;

	if (!unpark_succeeded(ctx, err))
		return;
	reply_token(read->taker, read->parked.req, read->size, read->off);
	parked_free(ctx);
}

/* The token stands at offset 0, and wherever the first read after a write is:
 * `echo reason >&9; read -r token <&9` shares one file position. */
bool cursor_move(struct cursor *cursor, off_t off)
{
	struct cursor was = *cursor;

	if (off == 0 || cursor->rewind)
		cursor->base = off;
	cursor->rewind = false;
	return was.rewind || cursor->base != was.base;
}

void held_read(struct lc_taker *taker, const struct cursor *cursor, struct face *face,
               fuse_req_t req, struct node *node, size_t size, off_t off)
{
	struct token_read *read;

	if (!lc_holds(taker) || lc_token(taker) != 0) {
		reply_token(taker, req, size, off - cursor->base);
		return;
	}
	read = park(face, req, node, sizeof(*read));
	if (!read)
		return;
	read->taker = taker;
	read->size = size;
	read->off = off - cursor->base;
	park_call(&read->parked, lc_fetch_token(taker, token_fetched, read, &read->parked.call));
}

void held_write(struct lc_taker *taker, struct cursor *cursor, fuse_req_t req, const char *data,
                size_t size)
{
	int r = lc_set_reason(taker, data, size);

	if (r < 0) {
		fuse_reply_err(req, -r);
		return;
	}
	cursor->rewind = true;
	fuse_reply_write(req, size);
}

struct fsync {
	struct parked parked;
	const void *file;
	held_holder_fn *holder_of;
};

/* One that on_lost has begun to stop does not get the lock back, though the contact may. */
static bool is_stopped(const struct fsync *fsync, const struct holder *holder)
{
	return guardian_stopped(fsync->parked.face->guardian, holder->slot);
}

static void confirmed(void *ctx, int err)
{
	const struct fsync *fsync = ctx;
	const struct holder *holder = fsync->holder_of(fsync->file, fsync->parked.req);

	parked_done(ctx, err == 0 && holder && is_stopped(fsync, holder) ? -EIO : err);
}

static int confirm(struct fsync *fsync)
{
	const struct holder *holder = fsync->holder_of(fsync->file, fsync->parked.req);

	if (!holder)
		return -EACCES;
	if (is_stopped(fsync, holder))
		return -EIO;
	return lc_confirm(holder->hold->taker, confirmed, fsync, &fsync->parked.call);
}

void held_fsync(const void *file, held_holder_fn *holder_of, struct face *face, fuse_req_t req,
                struct node *node)
{
	struct fsync *fsync = park(face, req, node, sizeof(*fsync));

	if (!fsync)
		return;
	fsync->file = file;
	fsync->holder_of = holder_of;
	park_change(&fsync->parked, confirm(fsync));
}

void cursor_carry(struct carry *carry, struct cursor *cursor)
{
	CARRY_64(carry, cursor->base);
	CARRY_BOOL(carry, cursor->rewind);
}

/* ---- poll ---- */

#define ALWAYS (POLLIN | POLLOUT)
/* select(2) sees nothing of loss but POLLPRI. */
#define LOST (ALWAYS | POLLERR | POLLHUP | POLLPRI)

/* To the kernel an errno would be POLLERR, a loss. */
static void not_known(fuse_req_t req, int error)
{
	fuse_reply_poll(req, error == -EIO ? LOST : ALWAYS);
}

static void waiters_told(void *ctx, int err, bool waiters)
{
	struct parked *parked = ctx;

	if (!unpark_succeeded(parked, err))
		return;
	fuse_reply_poll(parked->req, waiters ? ALWAYS | POLLPRI : ALWAYS);
	parked_free(parked);
}

/* Only the ensemble knows whether a taker waits behind it, so it is asked only for polls for
 * POLLPRI. */
void held_poll(struct holder *holder, fuse_req_t req, struct node *node, unsigned asked, bool waits)
{
	struct hold *hold = holder->hold;
	struct parked *parked;

	if (!lc_holds(hold->taker)) {
		fuse_reply_poll(req, LOST);
		return;
	}
	if (!(asked & POLLPRI)) {
		fuse_reply_poll(req, ALWAYS);
		return;
	}
	if (waits)
		holder_watch_waiters(holder);
	parked = park_or(hold->face, req, node, sizeof(*parked), not_known);
	if (parked)
		park_call(parked, lc_has_waiters(hold->taker, waiters_told, parked, &parked->call));
}
