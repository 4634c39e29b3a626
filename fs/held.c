/* SPDX-License-Identifier: MIT
 *
 * held.c - what a descriptor by which a lock is held answers: the token, the reason,
 * and fsync. Once the lock is lost all of it is EIO.
 */
#include "face.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* The token stands at offset 0, and wherever the first read after a write is:
 * `echo reason >&9; read -r token <&9` shares one file position. */
void held_read(struct lc_taker *taker, struct cursor *cursor, fuse_req_t req, size_t size, off_t off)
{
	char token[24];
	off_t position;
	int len;

	if (!lc_holds(taker)) {
		fuse_reply_err(req, EIO);
		return;
	}
	if (off == 0 || cursor->rewind)
		cursor->base = off;
	cursor->rewind = false;
	len = snprintf(token, sizeof(token), "%" PRId64 "\n", lc_token(taker));
	position = off - cursor->base;
	if (position < 0 || position >= len)
		fuse_reply_buf(req, NULL, 0);
	else
		fuse_reply_buf(req, token + position,
		               size < (size_t)(len - position) ? size : (size_t)(len - position));
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

void held_fsync(struct lc_taker *taker, struct face *face, fuse_req_t req, struct node *node)
{
	struct parked *parked = park(face, req, node, NULL);

	if (parked)
		park_call(parked, lc_confirm(taker, parked_done, parked, &parked->call));
}
