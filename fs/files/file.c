/* SPDX-License-Identifier: MIT
 *
 * file.c - requests for open files: each goes to what its kind does (open_file.h).
 */
#include "files/file.h"

#include "files/dir.h"
#include "files/lists.h"
#include "files/locks.h"
#include "files/text.h"
#include "hold/advisory.h"
#include "hold/open_lock_file.h"
#include "hold/hold.h"
#include "request/reply.h"

/* NULL: there is none of that number. */
static struct open_file *file_of(const struct request *req, const struct fuse_file_info *fi)
{
	return open_file_find(req->front, fi->fh);
}

void file_open(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct request *req = request_of(fuse);
	struct frontend *front = req->front;
	struct node *node = node_asked(req, ino);

	if (!node || hold_resume(req))
		return;
	if (node->kind == NODE_LOCKS)
		locks_open(front, req, node, fi->flags);
	else if (node->kind != NODE_LOCK_FILE)
		text_open(front, req, node, fi->flags);
	else if (node->lock_file.advisory)
		advisory_open(front, req, node);
	else
		handle_open(front, req, node, fi->flags);
}

void file_read(fuse_req_t fuse, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct request *req = request_of(fuse);
	struct open_file *file = file_of(req, fi);

	(void)ino;
	if (!file || !file->ops->read)
		reply_err(req, EBADF);
	else
		file->ops->read(file, req, size, off);
}

void file_readdir(fuse_req_t fuse, fuse_ino_t ino, size_t size, off_t off,
                  struct fuse_file_info *fi)
{
	struct request *req = request_of(fuse);
	struct open_file *file = file_of(req, fi);

	if (file && file->ops->readdir)
		file->ops->readdir(file, req, ino, size, off);
	else
		reply_err(req, EBADF);
}

void file_write(fuse_req_t fuse, fuse_ino_t ino, const char *data, size_t size, off_t off,
                struct fuse_file_info *fi)
{
	struct request *req = request_of(fuse);
	struct open_file *file = file_of(req, fi);

	(void)ino;
	if (file && file->ops->write)
		file->ops->write(file, req, data, size, off);
	else
		reply_err(req, EBADF);
}

void file_fsync(fuse_req_t fuse, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct request *req = request_of(fuse);
	struct open_file *file = file_of(req, fi);

	(void)ino, (void)datasync;
	if (file && file->ops->fsync)
		file->ops->fsync(file, req);
	else
		reply_err(req, 0);
}

void file_poll(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi,
               struct fuse_pollhandle *ph)
{
	struct request *req = request_of(fuse);
	struct open_file *file = file_of(req, fi);
	const struct fuse_poll_in *in = (const void *)(&req->in + 1);

	(void)ino;
	if (ph)
		fuse_pollhandle_destroy(ph);
	if (file && file->ops->poll)
		file->ops->poll(file, req, fi->poll_events, ph ? in->kh : 0);
	else
		reply_poll(req, POLL_ALWAYS);
}

/* Only open files of `flock` ask for it. */
void file_flush(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct request *req = request_of(fuse);
	struct open_file *file = file_of(req, fi);

	(void)ino;
	if (file && file->ops->flush)
		file->ops->flush(file, req, fi->lock_owner);
	else
		reply_err(req, 0);
}

void file_release(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct request *req = request_of(fuse);
	struct open_file *file = file_of(req, fi);

	(void)ino;
	if (file)
		open_file_close(file);
	reply_err(req, 0);
}

static bool is_of_lock_file(const struct open_file *file)
{
	return file->node && file->node->kind == NODE_LOCK_FILE;
}

void files_end(struct frontend *front)
{
	struct open_file *file;
	uint32_t slot = 0;

	holds_end(front);
	while ((file = open_file_next(front, &slot)))
		if (!front->lc ||
		    is_of_lock_file(file)) /* questions for the others are under way */
			open_file_close(file);
	if (front->lc)
		return;
	dir_lists_finish(front->lists);
	absents_finish(&front->lists->absents);
	open_files_finish(&front->open_files);
}

/* ---- flock(2), fcntl(2) ---- */

/* On other files they are refused: left to the kernel these would be locks on this host
 * alone, and look like success. */
void file_flock(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi, int op)
{
	struct request *req = request_of(fuse);
	struct open_file *file = file_of(req, fi);

	(void)ino;
	if (hold_resume(req))
		return;
	if (file && file->ops->flock)
		file->ops->flock(file, req, fi->lock_owner, op);
	else
		reply_err(req, op & LOCK_UN ? 0 : EINVAL);
}

void file_getlk(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock)
{
	struct request *req = request_of(fuse);
	struct open_file *file = file_of(req, fi);

	(void)ino;
	if (file && file->ops->getlk)
		file->ops->getlk(file, req, fi->lock_owner, lock);
	else
		reply_err(req, EINVAL);
}

void file_setlk(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock,
                int sleep)
{
	struct request *req = request_of(fuse);
	struct open_file *file = file_of(req, fi);

	(void)ino;
	if (hold_resume(req))
		return;
	if (file && file->ops->setlk)
		file->ops->setlk(file, req, fi->lock_owner, lock, sleep);
	else
		reply_err(req, lock->l_type == F_UNLCK ? 0 : EINVAL);
}
