/* SPDX-License-Identifier: MIT
 *
 * file.c - open files: doors go to handle.c and advisory.c, all others to text.c.
 */
#include "request/face.h"

#include "files/dir.h"
#include "files/file.h"
#include "hold/handle.h"
#include "hold/advisory.h"
#include "hold/hold.h"
#include "files/locks.h"
#include "files/text.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/file.h>

/* The open file of that kind; NULL: it is of another one. */
static void *find_file(fuse_req_t req, enum fh_kind kind, const struct fuse_file_info *fi)
{
	return fh_find(&face_of(req)->fhs, kind, fi->fh);
}

/* ---- by kind ---- */

void file_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct face *face = face_of(req);
	struct node *node = node_asked(req, ino);

	if (!node)
		return;
	if (node->kind == NODE_LOCKS)
		locks_open(face, req, node, fi);
	else if (node->kind != NODE_DOOR)
		text_open(face, req, node, fi);
	else if (node->door.advisory)
		advisory_open(face, req, node, fi);
	else
		handle_open(face, req, node, fi);
}

/* A read for a mapping, or by splice(2) in some kernels. It fills memory that everybody shows who
 * maps the file. Other reads say who owns their locks. */
static bool fills_shared_memory(const struct fuse_file_info *fi)
{
	return fi->lock_owner == 0;
}

/* With less the kernel would take the file for empty, and end programs that have mapped it. */
static void reply_zeros(fuse_req_t req, size_t size)
{
	char *zeros = calloc(1, size);

	if (zeros)
		fuse_reply_buf(req, zeros, size);
	else
		fuse_reply_err(req, ENOMEM);
	free(zeros);
}

void file_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct advisory *advisory = find_file(req, FH_ADVISORY, fi);
	struct handle *handle = find_file(req, FH_HANDLE, fi);
	struct locks_file *locks = find_file(req, FH_LOCKS, fi);
	struct text_file *text = find_file(req, FH_TEXT, fi);
	bool differs_by_user = locks || (text && text->node->kind == NODE_HISTORY);

	(void)ino;
	if (differs_by_user && fills_shared_memory(fi))
		reply_zeros(req, size);
	else if (advisory)
		advisory_read(advisory, req, size, off);
	else if (handle)
		handle_read(handle, req, size, off);
	else if (locks)
		locks_read(locks, req, size, off);
	else if (text)
		text_read(text, req, size, off);
	else
		fuse_reply_err(req, EBADF);
}

void file_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
                struct fuse_file_info *fi)
{
	struct advisory *advisory = find_file(req, FH_ADVISORY, fi);
	struct handle *handle = find_file(req, FH_HANDLE, fi);
	struct text_file *text = find_file(req, FH_TEXT, fi);

	(void)ino;
	if (advisory)
		advisory_write(advisory, req, data, size);
	else if (handle)
		handle_write(handle, req, data, size);
	else if (text)
		text_write(text, req, data, size, off);
	else
		fuse_reply_err(req, EBADF);
}

void file_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct advisory *advisory = find_file(req, FH_ADVISORY, fi);
	struct handle *handle = find_file(req, FH_HANDLE, fi);

	(void)ino, (void)datasync;
	if (advisory)
		advisory_fsync(advisory, req);
	else if (handle)
		handle_fsync(handle, req);
	else
		fuse_reply_err(req, 0);
}

void file_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
               struct fuse_pollhandle *ph)
{
	struct advisory *advisory = find_file(req, FH_ADVISORY, fi);
	struct handle *handle = find_file(req, FH_HANDLE, fi);
	uint64_t poller = ph ? pending_poller(face_of(req)) : 0;

	(void)ino;
	if (ph)
		fuse_pollhandle_destroy(ph);
	if (advisory)
		advisory_poll(advisory, req, fi->poll_events, poller);
	else if (handle)
		handle_poll(handle, req, fi->poll_events, poller);
	else
		fuse_reply_poll(req, POLLIN | POLLOUT);
}

/* Only the flock door's files ask for it. */
void file_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct advisory *advisory = find_file(req, FH_ADVISORY, fi);

	(void)ino;
	if (advisory)
		advisory_flush(advisory, req, fi->lock_owner);
	else
		fuse_reply_err(req, 0);
}

static void close_file(struct face *face, uint64_t fh)
{
	struct advisory *advisory = fh_find(&face->fhs, FH_ADVISORY, fh);
	struct handle *handle = fh_find(&face->fhs, FH_HANDLE, fh);
	struct locks_file *locks = fh_find(&face->fhs, FH_LOCKS, fh);
	struct text_file *text = fh_find(&face->fhs, FH_TEXT, fh);

	if (advisory)
		advisory_release(advisory);
	else if (handle)
		handle_release(handle);
	else if (locks)
		locks_release(locks);
	else if (text)
		text_release(text);
}

void file_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	close_file(face_of(req), fi->fh);
	fuse_reply_err(req, 0);
}

void file_unopened(struct face *face, uint64_t fh)
{
	if (!dir_close(face, fh))
		close_file(face, fh);
}

void files_end(struct face *face, bool leave)
{
	holds_end(face, leave);
	handles_end(face);
	advisories_end(face, leave);
	locks_end(face, leave);
	dirs_end(face);
	if (leave)
		return;
	texts_end(face);
	fhs_finish(&face->fhs);
}

/* ---- flock(2), fcntl(2) ---- */

/* On other files they are refused: left to the kernel these would be locks on this host
 * alone, and look like success. */
void file_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int op)
{
	struct advisory *file = find_file(req, FH_ADVISORY, fi);

	(void)ino;
	if (file)
		advisory_flock(file, req, fi->lock_owner, op);
	else
		fuse_reply_err(req, op & LOCK_UN ? 0 : EINVAL);
}

void file_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock)
{
	struct advisory *file = find_file(req, FH_ADVISORY, fi);

	(void)ino;
	if (file)
		advisory_getlk(file, req, fi, lock);
	else
		fuse_reply_err(req, EINVAL);
}

void file_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock,
                int sleep)
{
	struct advisory *file = find_file(req, FH_ADVISORY, fi);

	(void)ino;
	if (file)
		advisory_setlk(file, req, fi->lock_owner, lock, sleep);
	else
		fuse_reply_err(req, lock->l_type == F_UNLCK ? 0 : EINVAL);
}
