/* SPDX-License-Identifier: MIT */
#include "request/reply.h"

#include <limits.h>
#include <string.h>

/* The kernel has read these sizes since protocol 7.9 (Linux 2.6.29): later versions use the
 * padding. */
_Static_assert(sizeof(struct fuse_out_header) == 16, "the header of an answer");
_Static_assert(sizeof(struct fuse_attr_out) == 104, "the answer to GETATTR and SETATTR");
_Static_assert(sizeof(struct fuse_entry_out) == 128, "the answer to LOOKUP and MKDIR");
_Static_assert(sizeof(struct fuse_open_out) == 16, "the answer to OPEN and OPENDIR");
_Static_assert(sizeof(struct fuse_write_out) == 8, "the answer to WRITE");
_Static_assert(sizeof(struct fuse_lk_out) == 24, "the answer to GETLK");
_Static_assert(sizeof(struct fuse_poll_out) == 8, "the answer to POLL");

/* The kernel would take an errno of poll(2) for POLLERR, a loss. */
void reply_err(struct request *req, int error)
{
	if (req->in.opcode == FUSE_POLL)
		reply_poll(req, error == EIO ? POLL_LOST : POLL_ALWAYS);
	else
		request_answer(req, -error, NULL, 0);
}

void reply_entry(struct request *req, const struct fuse_attr *attr, int64_t name_us,
                 int64_t attr_us)
{
	const struct fuse_entry_out out = {
		.nodeid = attr->ino,
		.entry_valid = (uint64_t)(name_us / 1000000),
		.entry_valid_nsec = (uint32_t)(name_us % 1000000 * 1000),
		.attr_valid = (uint64_t)(attr_us / 1000000),
		.attr_valid_nsec = (uint32_t)(attr_us % 1000000 * 1000),
		.attr = *attr,
	};

	request_answer(req, 0, &out, sizeof(out));
}

void reply_attr(struct request *req, const struct fuse_attr *attr, int64_t attr_us)
{
	const struct fuse_attr_out out = {
		.attr_valid = (uint64_t)(attr_us / 1000000),
		.attr_valid_nsec = (uint32_t)(attr_us % 1000000 * 1000),
		.attr = *attr,
	};

	request_answer(req, 0, &out, sizeof(out));
}

/* Whether the text of the file depends on the user who reads it. */
static bool is_personal(const struct open_file *file)
{
	return file->node && (file->node->kind == NODE_LOCKS || file->node->kind == NODE_HISTORY);
}

/* Every read and write must come to the daemon. tail(1) and wc(1) read files that differ from user
 * to user as they read a pipe. */
void reply_open(struct request *req, struct open_file *file, int r)
{
	struct fuse_open_out out = {0};

	if (r < 0) {
		reply_err(req, -r);
		if (file)
			open_file_close(file);
		return;
	}
	out.fh = file->fh;
	out.open_flags = (file->ops->readdir ? 0 : FOPEN_DIRECT_IO) |
	                 (file->ops->flush ? 0 : FOPEN_NOFLUSH) |
	                 (is_personal(file) ? FOPEN_NONSEEKABLE : 0);
	request_answer(req, 0, &out, sizeof(out));
}

void reply_buf(struct request *req, const void *bytes, size_t len)
{
	request_answer(req, 0, bytes, len);
}

void reply_write(struct request *req, size_t len)
{
	const struct fuse_write_out out = {.size = (uint32_t)len};

	request_answer(req, 0, &out, sizeof(out));
}

void reply_lock(struct request *req, const struct flock *lock)
{
	struct fuse_lk_out out = {.lk = {.type = (uint32_t)lock->l_type}};

	if (lock->l_type != F_UNLCK) {
		out.lk.start = (uint64_t)lock->l_start;
		out.lk.end = lock->l_len ? (uint64_t)(lock->l_start + lock->l_len - 1) : INT64_MAX;
		out.lk.pid = (uint32_t)lock->l_pid;
	}
	request_answer(req, 0, &out, sizeof(out));
}

void reply_poll(struct request *req, unsigned events)
{
	const struct fuse_poll_out out = {.revents = events};

	request_answer(req, 0, &out, sizeof(out));
}

bool reply_add_name(char *buffer, size_t *used, size_t room, const char *name, mode_t type,
                    off_t next)
{
	struct fuse_dirent entry = {
		.ino = UINT32_MAX, /* not told */
		.off = (uint64_t)next,
		.namelen = (uint32_t)strlen(name),
		.type = (type & S_IFMT) >> 12,
	};
	size_t len = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + entry.namelen);
	char *to = buffer + *used;

	if (len > room - *used)
		return false;
	memset(to, 0, len);
	memcpy(to, &entry, FUSE_NAME_OFFSET);
	memcpy(to + FUSE_NAME_OFFSET, name, entry.namelen);
	*used += len;
	return true;
}
