/* SPDX-License-Identifier: MIT
 *
 * file.c - open files: doors go to handle.c and advisory.c, all others to text.c.
 */
#include "face.h"

#include "advisory.h"
#include "hold.h"
#include "locks.h"
#include "text.h"

#include <errno.h>
#include <poll.h>
#include <sys/file.h>

static bool is_door_file(fuse_req_t req, fuse_ino_t ino)
{
	return node_by_ino(face_of(req)->nodes, ino)->kind == NODE_DOOR;
}

/* The open file of a door by which flock(2) and fcntl(2) take the lock; NULL. */
static struct advisory *advisory_of(fuse_req_t req, fuse_ino_t ino, const struct fuse_file_info *fi)
{
	const struct node *node = node_by_ino(face_of(req)->nodes, ino);

	return node->kind == NODE_DOOR && node->door.advisory ? (struct advisory *)(uintptr_t)fi->fh
	                                                      : NULL;
}

/* The open file of .zklockfs/locks; NULL. */
static struct locks_file *locks_of(fuse_req_t req, fuse_ino_t ino, const struct fuse_file_info *fi)
{
	const struct node *node = node_by_ino(face_of(req)->nodes, ino);

	return node->kind == NODE_LOCKS ? (struct locks_file *)(uintptr_t)fi->fh : NULL;
}

static struct handle *handle_of_file(const struct fuse_file_info *fi)
{
	return (struct handle *)(uintptr_t)fi->fh;
}

static struct text_file *text_of(const struct fuse_file_info *fi)
{
	return (struct text_file *)(uintptr_t)fi->fh;
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

void file_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct advisory *file = advisory_of(req, ino, fi);

	if (file)
		advisory_read(file, req, size, off);
	else if (is_door_file(req, ino))
		handle_read(handle_of_file(fi), req, size, off);
	else if (locks_of(req, ino, fi))
		locks_read(locks_of(req, ino, fi), req, size, off);
	else
		text_read(text_of(fi), req, size, off);
}

void file_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
                struct fuse_file_info *fi)
{
	struct advisory *file = advisory_of(req, ino, fi);

	if (file)
		advisory_write(file, req, data, size);
	else if (is_door_file(req, ino))
		handle_write(handle_of_file(fi), req, data, size);
	else
		text_write(face_of(req), text_of(fi), req, node_by_ino(face_of(req)->nodes, ino),
		           data, size, off);
}

void file_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct advisory *file = advisory_of(req, ino, fi);

	(void)datasync;
	if (file) {
		advisory_fsync(file, req);
		return;
	}
	if (is_door_file(req, ino))
		handle_fsync(handle_of_file(fi), req);
	else
		fuse_reply_err(req, 0);
}

void file_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
               struct fuse_pollhandle *ph)
{
	struct advisory *file = advisory_of(req, ino, fi);

	if (file) {
		advisory_poll(file, req, fi->poll_events, ph);
		return;
	}
	if (is_door_file(req, ino)) {
		handle_poll(handle_of_file(fi), req, fi->poll_events, ph);
		return;
	}
	if (ph)
		fuse_pollhandle_destroy(ph);
	fuse_reply_poll(req, POLLIN | POLLOUT);
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
	else if (is_door_file(req, ino))
		handle_release(handle_of_file(fi));
	else if (locks_of(req, ino, fi))
		locks_release(locks_of(req, ino, fi));
	else
		text_release(text_of(fi));
	fuse_reply_err(req, 0);
}

void files_end(struct face *face, bool leave)
{
	holds_end(face, leave);
	handles_end(face);
	advisories_end(face, leave);
	locks_end(face, leave);
	dirs_end(face);
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

void file_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock,
                int sleep)
{
	struct advisory *file = advisory_of(req, ino, fi);

	if (file)
		advisory_setlk(file, req, fi->lock_owner, lock, sleep);
	else
		fuse_reply_err(req, lock->l_type == F_UNLCK ? 0 : EINVAL);
}
