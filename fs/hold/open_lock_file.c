/* SPDX-License-Identifier: MIT */
#include "hold/open_lock_file.h"

#include "guard/guardian.h"
#include "hold/claim.h"
#include "request/parked.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static struct open_lock_file *lock_file_of(struct open_file *file)
{
	return (struct open_lock_file *)file;
}

static const struct lock_file_ops *ops_of(const struct open_file *file)
{
	return (const struct lock_file_ops *)file->ops;
}

/* Touches the record of the file. If the file is a part of its hold's record, touches that. */
static void lock_file_changed(struct open_file *file, struct claim *claim)
{
	record_touch(&file->record);
	if (claim)
		record_touch(&claim->hold->record);
}

/* ---- the token ---- */

/* `offset`: within the token's line. */
static void reply_token(struct lc_taker *taker, struct request *req, size_t size, off_t offset)
{
	char token[24];
	int len = snprintf(token, sizeof(token), "%" PRId64 "\n", lc_give_token(taker));

	if (!lc_holds(taker))
		reply_err(req, EIO);
	else if (offset < 0 || offset >= len)
		reply_buf(req, NULL, 0);
	else
		reply_buf(req, token + offset,
		          size < (size_t)(len - offset) ? size : (size_t)(len - offset));
}

/* A READ that waits for the token. */
struct token_read {
	struct parked parked;
	struct lc_taker *taker; /* no RELEASE can end the taker before its read is answered */
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
static void move_token(struct open_lock_file *lock_file, struct claim *claim, off_t off)
{
	if (!lock_file->rewind && (off != 0 || lock_file->token_at == 0))
		return;
	lock_file_changed(&lock_file->base, claim);
	lock_file->token_at = off;
	lock_file->rewind = false;
}

void lock_file_read(struct open_file *file, struct request *req, size_t size, off_t off)
{
	struct claim *claim = ops_of(file)->claim(file, req);
	struct open_lock_file *lock_file = lock_file_of(file);
	struct token_read *read;
	struct lc_taker *taker;

	if (!claim) {
		reply_buf(req, NULL, 0);
		return;
	}
	taker = claim->hold->taker;
	move_token(lock_file, claim, off);
	if (!lc_holds(taker) || lc_give_token(taker) != 0) {
		reply_token(taker, req, size, off - lock_file->token_at);
		return;
	}
	read = park(file->front, req, file->node, sizeof(*read));
	if (!read)
		return;
	read->taker = taker;
	read->size = size;
	read->off = off - lock_file->token_at;
	park_call(&read->parked, lc_fetch_token(taker, token_fetched, read, &read->parked.call));
}

/* ---- the reason, fsync ---- */

void lock_file_write(struct open_file *file, struct request *req, const char *data, size_t size,
                     off_t off)
{
	struct claim *claim = ops_of(file)->claim(file, req);
	int r = claim ? lc_set_reason(claim->hold->taker, data, size)
	              : ops_of(file)->keep_reason(file, data, size);

	(void)off;
	lock_file_changed(file, claim);
	if (r < 0) {
		reply_err(req, -r);
		return;
	}
	lock_file_of(file)->rewind = true;
	reply_write(req, size);
}

struct fsync {
	struct parked parked;
	struct open_file *file;
};

/* The claim for which fsync(2) was called; NULL: the lock may have been given back meanwhile. */
static struct claim *claim_of(const struct fsync *fsync)
{
	return ops_of(fsync->file)->claim(fsync->file, fsync->parked.req);
}

/* Whether on_lost has begun to stop the process: it does not get the lock back, though the
 * contact may come back. */
static bool is_stopped(const struct fsync *fsync, const struct claim *claim)
{
	return guardian_stopped(fsync->parked.front->guardian, claim->slot);
}

static void confirmed(void *ctx, int err)
{
	const struct fsync *fsync = ctx;
	const struct claim *claim = claim_of(fsync);

	parked_done(ctx, err == 0 && claim && is_stopped(fsync, claim) ? -EIO : err);
}

static int confirm(struct fsync *fsync)
{
	const struct claim *claim = claim_of(fsync);

	if (!claim)
		return -EACCES;
	if (is_stopped(fsync, claim))
		return -EIO;
	return lc_confirm(claim->hold->taker, confirmed, fsync, &fsync->parked.call);
}

void lock_file_fsync(struct open_file *file, struct request *req)
{
	struct fsync *fsync = park(file->front, req, file->node, sizeof(*fsync));

	if (!fsync)
		return;
	fsync->file = file;
	park_change(&fsync->parked, confirm(fsync));
}

/* ---- poll ---- */

static void waiters_told(void *ctx, int err, bool waiters)
{
	struct parked *parked = ctx;

	if (!unpark_succeeded(parked, err))
		return;
	reply_poll(parked->req, waiters ? POLL_ALWAYS | POLLPRI : POLL_ALWAYS);
	parked_free(parked);
}

/* Only the ensemble knows whether a taker waits behind it, so it is asked only for polls for
 * POLLPRI. */
void lock_file_poll(struct open_file *file, struct request *req, unsigned asked, uint64_t poller)
{
	struct claim *claim = ops_of(file)->claim(file, req);
	struct lc_taker *taker = claim ? claim->hold->taker : NULL;
	struct parked *parked;

	if (poller && poller != file->poller) {
		lock_file_changed(file, claim);
		file->poller = poller;
	}
	if (taker && !lc_holds(taker)) {
		reply_poll(req, POLL_LOST);
		return;
	}
	if (!taker || !(asked & POLLPRI)) {
		reply_poll(req, POLL_ALWAYS);
		return;
	}
	if (poller)
		claim_watch_waiters(claim);
	parked = park(file->front, req, file->node, sizeof(*parked));
	if (parked)
		park_call(parked, lc_has_waiters(taker, waiters_told, parked, &parked->call));
}

void open_lock_file_save_load(struct codec *codec, struct open_file *file)
{
	CODEC_64(codec, file->poller);
	CODEC_64(codec, lock_file_of(file)->token_at);
	CODEC_BOOL(codec, lock_file_of(file)->rewind);
}
