/* SPDX-License-Identifier: MIT
 *
 * locks.c - see locks.h.
 */
#include "files/locks.h"

#include "files/lists.h"
#include "tree/view.h"
#include "host/clock.h"
#include "host/kernel_limit.h"
#include "host/log.h"
#include "host/row.h"
#include "files/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <utlist.h>

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
#define PATIENCE_US 50000

struct locks_file {
	struct face *face;
	struct node *node; /* a reference */
	uint64_t fh;
	struct stored stored;
	struct walk *walk;
	fuse_req_t req; /* somebody reads; or NULL */
	size_t size;
	int64_t since_us;
	int error;                      /* after the text */
	struct locks_file *prev, *next; /* in face->lists->locks_files */
	off_t start;                    /* where in the file the text stands */
	size_t len;
	char text[LOCKS_ROOM];
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
			add_lock_line(&row, file->face->lc, lock);
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

static fuse_req_t stop_reader(struct locks_file *file)
{
	fuse_req_t req = file->req;

	file->req = NULL;
	file->face->parked--;
	return req;
}

static void refuse_reader(struct locks_file *file, int error)
{
	fuse_req_t req = stop_reader(file);

	fuse_req_interrupt_func(req, NULL, NULL);
	fuse_reply_err(req, -error);
}

static void reply_lines(struct locks_file *file)
{
	fuse_req_t req = stop_reader(file);

	fuse_req_interrupt_func(req, NULL, NULL);
	fuse_reply_buf(req, file->text, file->size < file->len ? file->size : file->len);
}

static void interrupt_reader(fuse_req_t req, void *ctx)
{
	struct locks_file *file = ctx;

	stop_reader(file);
	fuse_reply_err(req, EINTR);
}

static void answer_reader(struct locks_file *file)
{
	int64_t waited = file->face->clock_us() - file->since_us;
	bool over = walk_over(file->walk) || file->error < 0;

	if (file->len > 0 &&
	    (over || file->len >= PIECE || file->len >= file->size || waited > PATIENCE_US)) {
		reply_lines(file);
	} else if (file->error < 0) {
		refuse_reader(file, file->error);
		file->error = 0;
	} else if (over) {
		reply_lines(file);
	} else if (waited >= kernel_limit_wait_us(file->face->kernel_limit_s)) {
		refuse_reader(file, -EINTR);
	}
}

/* Only as long as somebody reads. */
static void serve_reader(void *ctx)
{
	struct locks_file *file = ctx;

	stored_touch(&file->stored);
	if (!file->req)
		return;
	do {
		if (file->len < PIECE && file->error == 0)
			walk_ask(file->walk);
	} while (add_lock_lines(file));
	answer_reader(file);
}

void locks_read(struct locks_file *file, fuse_req_t req, size_t size, off_t off)
{
	size_t read;

	if (off < file->start || off > file->start + (off_t)file->len) {
		fuse_reply_err(req, ESPIPE);
		return;
	}
	if (file->req) {
		fuse_reply_err(req, EBUSY);
		return;
	}
	if (fuse_req_interrupted(req)) {
		fuse_reply_err(req, EINTR);
		return;
	}
	read = (size_t)(off - file->start);
	file->len -= read;
	file->start = off;
	memmove(file->text, file->text + read, file->len);
	file->req = req;
	file->size = size;
	file->since_us = file->face->clock_us();
	file->face->parked++;
	serve_reader(file);
	if (file->req)
		fuse_req_interrupt_func(req, interrupt_reader, file);
}

/* ---- the open file ---- */

/* NULL: errno. */
static struct locks_file *new_locks_file(struct face *face, fuse_req_t req, struct node *node)
{
	struct locks_file *file = budget_alloc(&face->files, fuse_req_ctx(req)->uid, sizeof(*file));
	struct viewer *viewer = file ? viewer_of(face, req) : NULL;

	if (viewer)
		file->walk = walk_begin(face, viewer, &file->stored, serve_reader, file);
	if (file && file->walk) {
		file->fh = fh_add(&face->fhs, FH_LOCKS, file);
		if (!file->fh) {
			walk_end(file->walk, true);
			viewer = NULL; /* the walk's */
		}
	}
	if (!file || !file->fh) {
		budget_free(viewer);
		budget_free(file);
		return NULL;
	}
	file->face = face;
	file->node = node;
	node_ref(node);
	DL_APPEND(face->lists->locks_files, file);
	stored_begin(&face->stored, &file->stored, STORED_LOCKS, file->fh);
	file->len = strlen(HEADER);
	memcpy(file->text, HEADER, file->len);
	return file;
}

static void end_file(struct locks_file *file, bool engine)
{
	if (file->req)
		stop_reader(file);
	walk_end(file->walk, engine);
	DL_DELETE(file->face->lists->locks_files, file);
	stored_end(&file->stored);
	fh_drop(&file->face->fhs, file->fh);
	node_unref(file->face->nodes, file->node);
	budget_free(file);
}

void locks_open(struct face *face, fuse_req_t req, struct node *node, struct fuse_file_info *fi)
{
	struct locks_file *file;

	if ((fi->flags & O_ACCMODE) != O_RDONLY) {
		fuse_reply_err(req, EPERM);
		return;
	}
	file = new_locks_file(face, req, node);
	if (!file) {
		fuse_reply_err(req, errno);
		return;
	}
	fi->fh = file->fh;
	fi->direct_io = 1;
	fi->noflush = 1;
	fi->nonseekable = 1; /* tail(1) and wc(1) read it as they read a pipe */
	fuse_reply_open(req, fi);
}

void locks_release(struct locks_file *file)
{
	end_file(file, true);
}

void locks_end(struct face *face, bool leave)
{
	struct locks_file *file, *next;

	DL_FOREACH_SAFE(face->lists->locks_files, file, next)
		end_file(file, leave);
}

/* ---- over a reload ---- */

/* A reader reads again. */
void locks_stored_carry(struct carry *carry, struct face *face, struct stored *stored)
{
	struct locks_file *file =
		stored ? (struct locks_file *)((char *)stored - offsetof(struct locks_file, stored))
		       : NULL;
	uid_t uid = file ? budget_uid(file) : 0;
	const void *text;

	CARRY_U32(carry, uid);
	if (carry->loads) {
		file = budget_alloc(&face->files, uid, sizeof(*file));
		if (!file)
			carry->refuse(strerror(errno));
		file->face = face;
		DL_APPEND(face->lists->locks_files, file);
		stored_begin(&face->stored, &file->stored, STORED_LOCKS, 0);
	}
	fh_carry(carry, &face->fhs, FH_LOCKS, file, &file->fh);
	file->node = node_carry(carry, face->nodes, file->node);
	if (carry->loads)
		node_ref(file->node);
	file->walk = walk_carry(carry, file->walk, face, &file->stored, serve_reader, file);
	CARRY_RANGE(carry, file->error, INT32_MIN, 0);
	CARRY_64(carry, file->start);
	text = carry_bytes(carry, file->text, &file->len);
	if (!carry->loads)
		return;
	if (file->len > sizeof(file->text))
		carry->refuse("the state has an invalid open file");
	memcpy(file->text, text, file->len);
}
