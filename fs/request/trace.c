/* SPDX-License-Identifier: MIT
 *
 * trace.c - see trace.h.
 */
#include "request/trace.h"

#include "host/family.h"
#include "host/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of an operation and its file in a line; longer texts are cut. */
#define TEXT_MAX 400

/* A request that is not answered yet. */
struct traced {
	uint64_t unique;
	int64_t since_us;
	pid_t pid; /* 0: not visible here */
	uid_t uid;
	char *text; /* the operation and its file */
	UT_hash_handle hh;
};

struct trace {
	struct nodes *nodes;
	int64_t (*clock_us)(void);
	struct traced *pending;
};

static const char *const opcode_names[] = {
	[FUSE_LOOKUP] = "lookup",
	[FUSE_FORGET] = "forget",
	[FUSE_GETATTR] = "getattr",
	[FUSE_SETATTR] = "setattr",
	[FUSE_READLINK] = "readlink",
	[FUSE_SYMLINK] = "symlink",
	[FUSE_MKNOD] = "mknod",
	[FUSE_MKDIR] = "mkdir",
	[FUSE_UNLINK] = "unlink",
	[FUSE_RMDIR] = "rmdir",
	[FUSE_RENAME] = "rename",
	[FUSE_LINK] = "link",
	[FUSE_OPEN] = "open",
	[FUSE_READ] = "read",
	[FUSE_WRITE] = "write",
	[FUSE_STATFS] = "statfs",
	[FUSE_RELEASE] = "release",
	[FUSE_FSYNC] = "fsync",
	[FUSE_SETXATTR] = "setxattr",
	[FUSE_GETXATTR] = "getxattr",
	[FUSE_LISTXATTR] = "listxattr",
	[FUSE_REMOVEXATTR] = "removexattr",
	[FUSE_FLUSH] = "flush",
	[FUSE_INIT] = "init",
	[FUSE_OPENDIR] = "opendir",
	[FUSE_READDIR] = "readdir",
	[FUSE_RELEASEDIR] = "releasedir",
	[FUSE_FSYNCDIR] = "fsyncdir",
	[FUSE_GETLK] = "fcntl F_GETLK",
	[FUSE_SETLK] = "fcntl F_SETLK",
	[FUSE_SETLKW] = "fcntl F_SETLKW",
	[FUSE_ACCESS] = "access",
	[FUSE_CREATE] = "create",
	[FUSE_INTERRUPT] = "interrupt",
	[FUSE_IOCTL] = "ioctl",
	[FUSE_POLL] = "poll",
	[FUSE_BATCH_FORGET] = "forget",
	[FUSE_FALLOCATE] = "fallocate",
	[FUSE_RENAME2] = "rename",
	[FUSE_LSEEK] = "lseek",
	[FUSE_COPY_FILE_RANGE] = "copy_file_range",
	[FUSE_SYNCFS] = "syncfs",
};

static const char *opcode_name(uint32_t opcode)
{
	const char *name = NULL;

	if (opcode < sizeof(opcode_names) / sizeof(*opcode_names))
		name = opcode_names[opcode];
	return name ? name : "another operation";
}

/* ---- the text of a request ---- */

static void print_lock(FILE *out, uint32_t opcode, const struct fuse_lk_in *in)
{
	static const char *const types[] = {
		[F_RDLCK] = "F_RDLCK",
		[F_WRLCK] = "F_WRLCK",
		[F_UNLCK] = "F_UNLCK",
	};
	static const char *const operations[] = {
		[F_RDLCK] = "LOCK_SH",
		[F_WRLCK] = "LOCK_EX",
		[F_UNLCK] = "LOCK_UN",
	};
	uint32_t type = in->lk.type > F_UNLCK ? F_UNLCK : in->lk.type;

	if (in->lk_flags & FUSE_LK_FLOCK)
		fprintf(out, "flock %s%s", operations[type],
		        opcode == FUSE_SETLK && type != F_UNLCK ? "|LOCK_NB" : "");
	else
		fprintf(out, "%s %s", opcode_name(opcode), types[type]);
}

static void print_open(FILE *out, const struct fuse_open_in *in)
{
	static const char *const modes[] = {"O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"};

	fprintf(out, "open %s%s%s", modes[in->flags & O_ACCMODE],
	        in->flags & O_NONBLOCK ? "|O_NONBLOCK" : "", in->flags & O_TRUNC ? "|O_TRUNC" : "");
}

static void print_operation(FILE *out, const struct fuse_in_header *header)
{
	const void *body = header + 1;
	size_t len = header->len - sizeof(*header);

	if (header->opcode == FUSE_OPEN && len >= sizeof(struct fuse_open_in))
		print_open(out, body);
	else if (header->opcode >= FUSE_GETLK && header->opcode <= FUSE_SETLKW &&
	         len >= sizeof(struct fuse_lk_in))
		print_lock(out, header->opcode, body);
	else
		fputs(opcode_name(header->opcode), out);
}

static void print_path(FILE *out, const struct node *node)
{
	if (node->parent && node->parent->parent) {
		print_path(out, node->parent);
		putc('/', out);
	}
	fputs(node->parent ? node->name : "/", out);
}

/* The number of bytes in the body before the name in the directory; -1: there is none. */
static ssize_t offset_of_name(uint32_t opcode)
{
	switch (opcode) {
	case FUSE_LOOKUP:
	case FUSE_UNLINK:
	case FUSE_RMDIR:
	case FUSE_SYMLINK:
		return 0;
	case FUSE_MKNOD:
		return sizeof(struct fuse_mknod_in);
	case FUSE_MKDIR:
		return sizeof(struct fuse_mkdir_in);
	case FUSE_RENAME:
		return sizeof(struct fuse_rename_in);
	case FUSE_RENAME2:
		return sizeof(struct fuse_rename2_in);
	case FUSE_LINK:
		return sizeof(struct fuse_link_in);
	}
	return -1;
}

static void print_file(FILE *out, struct nodes *nodes, const struct fuse_in_header *header)
{
	const struct node *node = node_by_ino(nodes, header->nodeid);
	ssize_t offset = offset_of_name(header->opcode);
	const char *name = (const char *)(header + 1) + offset;
	ssize_t len = (ssize_t)(header->len - sizeof(*header)) - offset;

	if (!node)
		fputs("-", out);
	else if (node->parent || offset < 0)
		print_path(out, node);
	if (offset >= 0 && len > 0)
		fprintf(out, "%s%.*s", node && node->parent ? "/" : "", (int)len, name);
}

/* NULL: no memory. */
static char *request_text(struct nodes *nodes, const struct fuse_in_header *header)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	print_operation(out, header);
	putc(' ', out);
	print_file(out, nodes, header);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

/* ---- requests and answers ---- */

static void free_traced(struct trace *trace, struct traced *traced)
{
	HASH_DEL(trace->pending, traced);
	free(traced->text);
	free(traced);
}

/* The kernel expects no answer to these. */
static void trace_unanswered(struct trace *trace, const struct fuse_in_header *header)
{
	const struct fuse_interrupt_in *in = (const void *)(header + 1);
	struct traced *traced = NULL;

	if (header->opcode != FUSE_INTERRUPT) {
		log_trace("%s", opcode_name(header->opcode));
		return;
	}
	if (header->len >= sizeof(*header) + sizeof(*in))
		HASH_FIND(hh, trace->pending, &in->unique, sizeof(in->unique), traced);
	if (traced)
		log_trace("interrupt of %.*s by pid %d", TEXT_MAX, traced->text, (int)traced->pid);
	else
		log_trace("interrupt of an answered request");
}

void trace_request(struct face *face, const void *request, size_t len)
{
	const struct fuse_in_header *header = request;
	struct trace *trace = face->trace;
	struct traced *traced;

	if (!trace || len < sizeof(*header) || header->len != len)
		return;
	if (header->opcode == FUSE_FORGET || header->opcode == FUSE_BATCH_FORGET ||
	    header->opcode == FUSE_INTERRUPT) {
		trace_unanswered(trace, header);
		return;
	}
	traced = calloc(1, sizeof(*traced));
	if (!traced)
		return;
	traced->unique = header->unique;
	traced->since_us = trace->clock_us();
	traced->pid = family_process((pid_t)header->pid);
	traced->uid = header->uid;
	traced->text = request_text(trace->nodes, header);
	if (traced->text)
		HASH_ADD(hh, trace->pending, unique, sizeof(traced->unique), traced);
	if (!traced->hh.tbl) {
		free(traced->text);
		free(traced);
	}
}

void trace_answer(struct trace *trace, uint64_t unique, int error)
{
	struct traced *traced;
	const char *answer;
	int64_t took_us;

	HASH_FIND(hh, trace->pending, &unique, sizeof(unique), traced);
	if (!traced)
		return;
	took_us = trace->clock_us() - traced->since_us;
	answer = error == 0 ? "success" : strerrorname_np(-error);
	log_trace("%.*s by pid %d, uid %u: %s after %" PRId64 ".%03d ms", TEXT_MAX, traced->text,
	          (int)traced->pid, (unsigned)traced->uid, answer ? answer : "an unknown error",
	          took_us / 1000, (int)(took_us % 1000));
	free_traced(trace, traced);
}

int trace_begin(struct face *face)
{
	struct trace *trace = calloc(1, sizeof(*trace));

	if (!trace)
		return -ENOMEM;
	*trace = (struct trace){.nodes = face->nodes, .clock_us = face->clock_us};
	face->trace = trace;
	return 0;
}

void trace_finish(struct face *face)
{
	struct traced *traced, *next;

	if (!face->trace)
		return;
	HASH_ITER(hh, face->trace->pending, traced, next)
		free_traced(face->trace, traced);
	free(face->trace);
	face->trace = NULL;
}
