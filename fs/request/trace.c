/* SPDX-License-Identifier: MIT */
#include "request/trace.h"

#include "host/log.h"
#include "host/process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct traced {
	int64_t since_us;
	char text[1024]; /* the operation, its file, and who asks */
};

/* The operations that a mount of locks sees, and where in the body the name in the directory is. */
static const struct operation {
	const char *name;
	bool has_name;
	size_t offset;
} operations[] = {
	[FUSE_LOOKUP] = {"lookup", true, 0},
	[FUSE_GETATTR] = {.name = "getattr"},
	[FUSE_SETATTR] = {.name = "setattr"},
	[FUSE_MKNOD] = {"mknod", true, sizeof(struct fuse_mknod_in)},
	[FUSE_MKDIR] = {"mkdir", true, sizeof(struct fuse_mkdir_in)},
	[FUSE_UNLINK] = {"unlink", true, 0},
	[FUSE_RMDIR] = {"rmdir", true, 0},
	[FUSE_OPEN] = {.name = "open"},
	[FUSE_READ] = {.name = "read"},
	[FUSE_WRITE] = {.name = "write"},
	[FUSE_STATFS] = {.name = "statfs"},
	[FUSE_RELEASE] = {.name = "release"},
	[FUSE_FSYNC] = {.name = "fsync"},
	[FUSE_SETXATTR] = {.name = "setxattr"},
	[FUSE_GETXATTR] = {.name = "getxattr"},
	[FUSE_LISTXATTR] = {.name = "listxattr"},
	[FUSE_FLUSH] = {.name = "flush"},
	[FUSE_OPENDIR] = {.name = "opendir"},
	[FUSE_READDIR] = {.name = "readdir"},
	[FUSE_RELEASEDIR] = {.name = "releasedir"},
	[FUSE_GETLK] = {.name = "fcntl F_GETLK"},
	[FUSE_SETLK] = {.name = "fcntl F_SETLK"},
	[FUSE_SETLKW] = {.name = "fcntl F_SETLKW"},
	[FUSE_ACCESS] = {.name = "access"},
	[FUSE_POLL] = {.name = "poll"},
};

/* ---- the text of a request ---- */

static void print_lock(FILE *out, const char *name, const struct fuse_in_header *header)
{
	static const char *const types[][2] = {
		[F_RDLCK] = {"F_RDLCK", "LOCK_SH"},
		[F_WRLCK] = {"F_WRLCK", "LOCK_EX"},
		[F_UNLCK] = {"F_UNLCK", "LOCK_UN"},
	};
	const struct fuse_lk_in *in = (const void *)(header + 1);
	uint32_t type = in->lk.type > F_UNLCK ? F_UNLCK : in->lk.type;

	if (in->lk_flags & FUSE_LK_FLOCK)
		fprintf(out, "flock %s%s", types[type][1],
		        header->opcode == FUSE_SETLK && type != F_UNLCK ? "|LOCK_NB" : "");
	else
		fprintf(out, "%s %s", name, types[type][0]);
}

static void print_operation(FILE *out, const char *name, const struct fuse_in_header *header)
{
	static const char *const modes[] = {"O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"};
	const struct fuse_open_in *open = (const void *)(header + 1);
	size_t len = header->len - sizeof(*header);

	if (header->opcode == FUSE_OPEN && len >= sizeof(*open))
		fprintf(out, "open %s%s", modes[open->flags & O_ACCMODE],
		        open->flags & O_NONBLOCK ? "|O_NONBLOCK" : "");
	else if (header->opcode >= FUSE_GETLK && header->opcode <= FUSE_SETLKW &&
	         len >= sizeof(struct fuse_lk_in))
		print_lock(out, name, header);
	else
		fputs(name, out);
}

static void print_path(FILE *out, const struct node *node)
{
	if (node->parent->parent) {
		print_path(out, node->parent);
		putc('/', out);
	}
	fputs(node->name, out);
}

static void print_request(struct traced *traced, struct nodes *nodes,
                          const struct fuse_in_header *header)
{
	static const struct operation other = {.name = "another operation"};
	const struct operation *operation = &other;
	const struct node *node = node_by_ino(nodes, header->nodeid);
	size_t body = header->len - sizeof(*header);
	FILE *out = fmemopen(traced->text, sizeof(traced->text) - 1, "w");

	if (!out)
		return;
	if (header->opcode < sizeof(operations) / sizeof(*operations) &&
	    operations[header->opcode].name)
		operation = &operations[header->opcode];
	print_operation(out, operation->name, header);
	putc(' ', out);
	if (node && node->parent)
		print_path(out, node);
	if (operation->has_name && body > operation->offset)
		fprintf(out, "%s%.*s", node && node->parent ? "/" : "",
		        (int)(body - operation->offset),
		        (const char *)(header + 1) + operation->offset);
	else if (!node || !node->parent)
		putc(node ? '/' : '-', out);
	fprintf(out, " by pid %d, uid %u", (int)process_of((pid_t)header->pid),
	        (unsigned)header->uid);
	fclose(out);
}

/* ---- requests and answers ---- */

/* Whether the log tells the answer to such a request. */
static bool is_told(uint32_t opcode)
{
	return opcode != FUSE_INIT && opcode != FUSE_FORGET && opcode != FUSE_BATCH_FORGET &&
	       opcode != FUSE_INTERRUPT;
}

struct traced *trace_begin(struct frontend *front, const struct fuse_in_header *header)
{
	struct traced *traced =
		front->traces && is_told(header->opcode) ? calloc(1, sizeof(*traced)) : NULL;

	if (!traced)
		return NULL;
	traced->since_us = front->clock_us();
	print_request(traced, front->nodes, header);
	return traced;
}

void trace_interrupt(const struct request *request)
{
	if (request->traced)
		log_wanted("interrupt of %s", request->traced->text);
}

void trace_end(const struct request *request, int error)
{
	const struct traced *traced = request->traced;
	const char *answer;
	int64_t took_us;

	if (!traced)
		return;
	answer = error == 0 ? "success" : strerrorname_np(-error);
	took_us = request->front->clock_us() - traced->since_us;
	log_wanted("%s: %s after %" PRId64 ".%03d ms", traced->text,
	           answer ? answer : "an unknown error", took_us / 1000, (int)(took_us % 1000));
}
