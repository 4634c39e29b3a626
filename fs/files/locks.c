/* SPDX-License-Identifier: MIT */
#include "files/locks.h"

#include "files/text.h"
#include "files/walk.h"
#include "host/clock.h"
#include "host/log.h"
#include "host/row.h"
#include "tree/view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define HEADER \
	"LOCK MODE HOLDERS WAITERS HELD WAITED HOST PID UID COMMAND SINCE TOKEN REASON SLOTS\n"

/* The longest line. */
#define LINE_MAX                                                                               \
	(ROW_WORD_MAX(LC_PATH_MAX) + ROW_WORD_MAX(LC_REASON_MAX) + ROW_WORD_MAX(LC_HOST_MAX) + \
	 ROW_WORD_MAX(LC_COMMAND_MAX) + VIEW_TIME_MAX + 11 * ROW_NUMBER_MAX)

/* An OPEN that waits until the text is whole. */
struct locks_opening {
	struct parked parked;
	struct walk *walk;
	char *text; /* charged to the user of the request: budget_add() */
	size_t len, room;
};

/* ---- lines ---- */

/* The clock of the host that wrote it may be ahead of this one. */
static int64_t age_of(int64_t since_ms, int64_t now_ms)
{
	if (since_ms < 0)
		return -1;
	return now_ms > since_ms ? now_ms - since_ms : 0;
}

static void add_unknown(struct row *row, int words)
{
	while (words-- > 0)
		row_word(row, NULL);
}

static void add_lock_line(struct row *row, struct lc *lc, const struct walk_lock *lock)
{
	const struct lc_entry_info *holder = &lock->holder;
	int64_t now_ms = clock_read_ns(CLOCK_REALTIME) / 1000000;
	char since[VIEW_TIME_MAX];

	row_word(row, lock->path);
	if (lock->closed) {
		add_unknown(row, 13);
		row_end(row);
		return;
	}
	row_word(row, lock->holders == 0                ? NULL
	              : holder->entry.mode == LC_SHARED ? "shared"
	                                                : "exclusive");
	row_number(row, (int64_t)lock->holders, -1);
	row_number(row, (int64_t)lock->waiters, -1);
	row_seconds(row, lock->holders > 0 ? age_of(holder->held_since_ms, now_ms) : -1);
	row_seconds(row, lock->waiters > 0
	                         ? age_of(lock->waiting_since_ms, lc_ensemble_ms(lc, now_ms))
	                         : -1);
	if (lock->holders == 0) {
		add_unknown(row, 7);
	} else {
		bool known = strcmp(holder->entry.host, "-") != 0;

		row_word(row, known ? holder->entry.host : NULL);
		row_number(row, holder->entry.pid, 0);
		row_number(row, holder->uid, -1);
		row_word(row, holder->command);
		row_word(row, holder->held_since_ms < 0 ? NULL
		                                        : view_time(since, holder->held_since_ms));
		row_number(row, view_token(holder), 0);
		row_word(row, view_reason(holder));
	}
	row_number(row, lock->slots, 0);
	row_end(row);
}

/* False: the user may not have so much, or there is no memory. */
static bool grow_text(struct locks_opening *opening)
{
	size_t more = opening->room > 0 ? opening->room : 2 * LINE_MAX;
	char *text;

	if (opening->room - opening->len >= LINE_MAX)
		return true;
	text = budget_add(opening, more) == 0 ? realloc(opening->text, opening->room + more) : NULL;
	if (!text)
		return false;
	opening->text = text;
	opening->room += more;
	return true;
}

/* True: a line was added, and the walk may have more to ask. */
static bool add_lock_lines(struct locks_opening *opening)
{
	const struct walk_lock *lock;
	bool any = false;

	while (walk_next(opening->walk, &lock) > 0) {
		struct row row = {
			.text = opening->text, .len = opening->len, .room = opening->room};

		add_lock_line(&row, opening->parked.front->lc, lock);
		if (row.short_of_room) /* nobody here can take it: a lock of another client */
			log_line(LC_NOTICE, "%.80s...: its path is too long for .zklockfs/locks",
			         lock->path);
		else
			opening->len = row.len;
		any = true;
		if (!grow_text(opening))
			walk_fail(opening->walk, -ENFILE);
	}
	return any;
}

/* ---- opening ---- */

static void end_list(struct locks_opening *opening, int error)
{
	struct parked *parked = &opening->parked;
	char *text = opening->text;

	walk_end(opening->walk);
	if (error < 0) {
		parked_error(parked, error);
	} else {
		text_reply(parked->front, parked->req, parked->node, text, opening->len, 0);
		parked_free(parked);
	}
	free(text);
}

static void interrupt_list(void *ctx)
{
	end_list(ctx, -EINTR);
}

static void go_on_listing(void *ctx)
{
	struct locks_opening *opening = ctx;
	const struct walk_lock *lock;

	do
		walk_ask(opening->walk);
	while (add_lock_lines(opening));
	if (!walk_over(opening->walk))
		return;
	end_list(opening, walk_next(opening->walk, &lock)); /* 0, or what has ended the walk */
}

void locks_open(struct frontend *front, struct request *req, struct node *node, int flags)
{
	struct locks_opening *opening;
	struct viewer *viewer;

	if ((flags & O_ACCMODE) != O_RDONLY) {
		reply_err(req, EPERM);
		return;
	}
	opening = park(front, req, node, sizeof(*opening));
	if (!opening)
		return;
	if (request_is_interrupted(req)) {
		parked_error(&opening->parked, -EINTR);
		return;
	}
	viewer = viewer_of(front, req);
	if (viewer)
		opening->walk = walk_begin(front, viewer, go_on_listing, opening);
	if (!opening->walk || !grow_text(opening)) {
		int error = opening->walk ? ENFILE : errno;

		if (opening->walk)
			walk_end(opening->walk);
		else
			budget_free(viewer);
		parked_error(&opening->parked, -error);
		return;
	}
	opening->len = strlen(HEADER);
	memcpy(opening->text, HEADER, opening->len);
	request_wait(req, interrupt_list, opening);
	go_on_listing(opening);
}
