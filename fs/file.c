/* SPDX-License-Identifier: MIT
 *
 * file.c - open files: doors go to handle.c and advisory.c, text files are read as
 * they were at the moment of opening.
 */
#include "face.h"

#include "advisory.h"
#include "hold.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/file.h>

static struct face *face_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static bool is_door(fuse_req_t req, fuse_ino_t ino)
{
	return node_by_ino(face_of(req)->nodes, ino)->kind == NODE_DOOR;
}

/* The open file of a door by which flock(2) and fcntl(2) take the lock; NULL. */
static struct advisory *advisory_of(fuse_req_t req, fuse_ino_t ino, const struct fuse_file_info *fi)
{
	const struct node *node = node_by_ino(face_of(req)->nodes, ino);

	return node->kind == NODE_DOOR && node->door.advisory ? (struct advisory *)(uintptr_t)fi->fh : NULL;
}

static struct handle *handle_of(const struct fuse_file_info *fi)
{
	return (struct handle *)(uintptr_t)fi->fh;
}

static struct text *text_of(const struct fuse_file_info *fi)
{
	return (struct text *)(uintptr_t)fi->fh;
}

/* ---- text files ---- */

static void text_free(struct text *text)
{
	free(text->data);
	free(text);
}

/* Answers the OPEN; takes the text. */
static void reply_text(fuse_req_t req, struct fuse_file_info *fi, int r, const struct text *content)
{
	struct text *text = r == 0 ? malloc(sizeof(*text)) : NULL;

	if (!text) {
		if (r == 0)
			free(content->data);
		fuse_reply_err(req, r < 0 ? -r : ENOMEM);
		return;
	}
	*text = *content;
	fi->fh = (uint64_t)(uintptr_t)text;
	fi->direct_io = 1;
	fi->noflush = 1;
	if (fuse_reply_open(req, fi) < 0)
		text_free(text);
}

static void entries_read(void *ctx, int err, const struct lc_entry_info *infos, size_t count)
{
	struct parked *parked = ctx;
	struct text text = {0};

	unpark(parked);
	if (err == 0)
		err = parked->node->kind == NODE_HOLDER ? view_holders(infos, count, &text)
		                                        : view_entry(&infos[0], &text);
	reply_text(parked->req, &parked->fi, err, &text);
	parked_free(parked);
}

static void about_open(struct face *face, fuse_req_t req, const struct node *node,
                       struct fuse_file_info *fi)
{
	struct lc_status status;
	struct text text = {0};

	lc_status(face->lc, &status);
	reply_text(req, fi, (node->kind == NODE_METRICS ? view_metrics : view_status)
	           (&status, face->host, face->kernel_limit_s, &text), &text);
}

void file_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct face *face = face_of(req);
	struct node *node = node_by_ino(face->nodes, ino);
	struct parked *parked;

	if (node->kind == NODE_DOOR) {
		if (node->door.advisory)
			advisory_open(face, req, node, fi);
		else
			handle_open(face, req, node, fi);
		return;
	}
	if ((fi->flags & O_ACCMODE) != O_RDONLY) {
		fuse_reply_err(req, EPERM);
		return;
	}
	if (node->kind == NODE_STATUS || node->kind == NODE_METRICS) {
		about_open(face, req, node, fi);
		return;
	}
	parked = park(face, req, node, NULL);
	if (!parked)
		return;
	parked->fi = *fi;
	park_call(parked, lc_entries(face->lc, node->lock, node->znode, entries_read, parked,
	                             &parked->call));
}

/* ---- by kind ---- */

void file_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct advisory *file = advisory_of(req, ino, fi);
	const struct text *text;
	size_t left;

	if (file) {
		advisory_read(file, req, size, off);
		return;
	}
	if (is_door(req, ino)) {
		handle_read(handle_of(fi), req, size, off);
		return;
	}
	text = text_of(fi);
	left = (size_t)off < text->len ? text->len - (size_t)off : 0;
	fuse_reply_buf(req, left ? text->data + off : NULL, size < left ? size : left);
}

void file_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
                struct fuse_file_info *fi)
{
	struct advisory *file = advisory_of(req, ino, fi);

	(void)off;
	if (file) {
		advisory_write(file, req, data, size);
		return;
	}
	if (is_door(req, ino))
		handle_write(handle_of(fi), req, data, size);
	else
		fuse_reply_err(req, EPERM);
}

void file_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct advisory *file = advisory_of(req, ino, fi);

	(void)datasync;
	if (file) {
		advisory_fsync(file, req);
		return;
	}
	if (is_door(req, ino))
		handle_fsync(handle_of(fi), req);
	else
		fuse_reply_err(req, 0);
}

void file_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct fuse_pollhandle *ph)
{
	struct advisory *file = advisory_of(req, ino, fi);

	if (file) {
		advisory_poll(file, req, ph);
		return;
	}
	if (is_door(req, ino)) {
		handle_poll(handle_of(fi), req, fi->poll_events, ph);
		return;
	}
	if (ph)
		fuse_pollhandle_destroy(ph);
	fuse_reply_poll(req, POLLIN);
}

/* Only the flock door's files ask for it. */
void file_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct advisory *file = advisory_of(req, ino, fi);

	if (file)
		advisory_flush(file, req, fi->lock_owner);
	else
		fuse_reply_err(req, 0);
}

void file_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	if (advisory_of(req, ino, fi))
		advisory_release(advisory_of(req, ino, fi));
	else if (is_door(req, ino))
		handle_release(handle_of(fi));
	else
		text_free(text_of(fi));
	fuse_reply_err(req, 0);
}

void files_end(struct face *face, bool leave)
{
	holds_end(face, leave);
	handles_end(face);
	advisories_end(face);
}

/* ---- flock(2), fcntl(2) ---- */

/* On other files they are refused: left to the kernel these would be locks on this host
 * alone, and look like success. */
void file_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int op)
{
	struct advisory *file = advisory_of(req, ino, fi);

	if (file)
		advisory_flock(file, req, fi->lock_owner, op);
	else
		fuse_reply_err(req, op & LOCK_UN ? 0 : EINVAL);
}

void file_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock)
{
	struct advisory *file = advisory_of(req, ino, fi);

	if (file)
		advisory_getlk(file, req, fi, lock);
	else
		fuse_reply_err(req, EINVAL);
}

void file_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock, int sleep)
{
	struct advisory *file = advisory_of(req, ino, fi);

	if (file)
		advisory_setlk(file, req, fi->lock_owner, lock, sleep);
	else
		fuse_reply_err(req, lock->l_type == F_UNLCK ? 0 : EINVAL);
}
