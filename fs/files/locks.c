/* SPDX-License-Identifier: MIT */
#include "files/locks.h"

#include "files/walk.h"
#include "host/clock.h"
#include "host/kernel_limit.h"
#include "host/log.h"
#include "host/row.h"
#include "request/reply.h"
#include "tree/view.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define HEADER \
	"LOCK MODE HOLDERS WAITERS HELD WAITED HOST PID UID COMMAND SINCE TOKEN REASON SLOTS\n"

/* The longest line. */
#define LINE_MAX                                                                               \
	(ROW_WORD_MAX(LC_PATH_MAX) + ROW_WORD_MAX(LC_REASON_MAX) + ROW_WORD_MAX(LC_HOST_MAX) + \
	 ROW_WORD_MAX(LC_COMMAND_MAX) + VIEW_TIME_MAX + 11 * ROW_NUMBER_MAX)
/* No line is begun behind so many bytes that are not read yet. */
#define PIECE 16384
#define LOCKS_ROOM (PIECE + LINE_MAX)
/* A reader is given what there is after this, although there may soon be more. */
#define READER_WAIT_US 50000

struct locks_file {
	struct open_file base;
	struct walk *walk;
	struct request *req; /* somebody reads; or NULL */
	size_t size;
	int64_t since_us;
	int error;   /* after the text */
	off_t start; /* where in the file the text stands */
	size_t len;
	char text[LOCKS_ROOM];
};

static struct locks_file *locks_of(struct open_file *file)
{
	return (struct locks_file *)file;
}

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
		row_number(row, holder->token, 0);
		row_word(row, view_reason(holder));
	}
	row_number(row, lock->slots, 0);
	row_end(row);
}

/* True: something has changed. */
static bool add_lock_lines(struct locks_file *file)
{
	const struct walk_lock *lock;
	bool any = false;

	while (file->len < PIECE && file->error == 0) {
		struct row row = {.text = file->text, .len = file->len, .room = sizeof(file->text)};
		int r = walk_next(file->walk, &lock);

		if (r == 0)
			break;
		if (r < 0)
			file->error = r;
		else
			add_lock_line(&row, file->base.front->lc, lock);
		any = true;
		if (row.short_of_room) /* nobody here can take it: a lock of another client */
			log_line(LC_NOTICE, "%.80s...: its path is too long for .zklockfs/locks",
			         lock->path);
		else
			file->len = row.len;
	}
	return any;
}

/* ---- reading ---- */

static struct request *stop_reader(struct locks_file *file)
{
	struct request *req = file->req;

	file->req = NULL;
	file->base.front->parked--;
	return req;
}

static void refuse_reader(struct locks_file *file, int error)
{
	reply_err(stop_reader(file), -error);
}

static void reply_lines(struct locks_file *file)
{
	reply_buf(stop_reader(file), file->text, file->size < file->len ? file->size : file->len);
}

static void interrupt_reader(void *ctx)
{
	refuse_reader(ctx, -EINTR);
}

static void answer_reader(struct locks_file *file)
{
	int64_t waited = file->base.front->clock_us() - file->since_us;
	bool over = walk_over(file->walk) || file->error < 0;

	if (file->len > 0 &&
	    (over || file->len >= PIECE || file->len >= file->size || waited > READER_WAIT_US)) {
		reply_lines(file);
	} else if (file->error < 0) {
		refuse_reader(file, file->error);
		file->error = 0;
	} else if (over) {
		reply_lines(file);
	} else if (waited >= kernel_limit_wait_us(file->base.front->kernel_limit_s)) {
		refuse_reader(file, -EINTR);
	}
}

/* Only as long as somebody reads. */
static void serve_reader(void *ctx)
{
	struct locks_file *file = ctx;

	stored_touch(&file->base.stored);
	if (!file->req)
		return;
	do {
		if (file->len < PIECE && file->error == 0)
			walk_ask(file->walk);
	} while (add_lock_lines(file));
	answer_reader(file);
}

static void locks_read(struct open_file *base, struct request *req, size_t size, off_t off)
{
	struct locks_file *file = locks_of(base);
	size_t read;

	if (off < file->start || off > file->start + (off_t)file->len) {
		reply_err(req, ESPIPE);
		return;
	}
	if (file->req) {
		reply_err(req, EBUSY);
		return;
	}
	if (request_is_interrupted(req)) {
		reply_err(req, EINTR);
		return;
	}
	read = (size_t)(off - file->start);
	file->len -= read;
	file->start = off;
	memmove(file->text, file->text + read, file->len);
	file->req = req;
	file->size = size;
	file->since_us = file->base.front->clock_us();
	file->base.front->parked++;
	serve_reader(file);
	if (file->req)
		request_wait(req, interrupt_reader, file);
}

/* ---- the kind ---- */

/* 0 or -errno. */
static int begin_walk(struct locks_file *file, struct request *req)
{
	struct viewer *viewer = viewer_of(file->base.front, req);

	if (viewer)
		file->walk = walk_begin(file->base.front, viewer, &file->base.stored, serve_reader,
		                        file);
	if (!file->walk) {
		int error = errno;

		budget_free(viewer);
		return -error;
	}
	file->len = strlen(HEADER);
	memcpy(file->text, HEADER, file->len);
	return 0;
}

static void locks_close(struct open_file *base)
{
	struct locks_file *file = locks_of(base);

	if (file->req)
		stop_reader(file);
	if (file->walk)
		walk_end(file->walk);
}

/* A reader reads again. */
static void locks_carry(struct carry *carry, struct open_file *base)
{
	struct locks_file *file = locks_of(base);
	const void *text;

	file->walk = walk_carry(carry, file->walk, base->front, &base->stored, serve_reader, file);
	CARRY_RANGE(carry, file->error, INT32_MIN, 0);
	CARRY_64(carry, file->start);
	text = carry_bytes(carry, file->text, &file->len);
	if (!carry->loads)
		return;
	if (file->len > sizeof(file->text))
		carry->refuse("the state has an invalid open file");
	memcpy(file->text, text, file->len);
}

static const struct file_ops locks_ops = {
	.size = sizeof(struct locks_file),
	.record = STORED_LOCKS,
	.read = locks_read,
	.close = locks_close,
	.carry = locks_carry,
};

void locks_open(struct frontend *front, struct request *req, struct node *node, int flags)
{
	struct open_file *file;

	if ((flags & O_ACCMODE) != O_RDONLY) {
		reply_err(req, EPERM);
		return;
	}
	file = open_file_new(front, &locks_ops, node, req->in.uid);
	reply_open(req, file, file ? begin_walk(locks_of(file), req) : -errno);
}

void locks_stored_carry(struct carry *carry, struct frontend *front, struct stored *stored)
{
	open_file_stored_carry(carry, front, &locks_ops, stored);
}
