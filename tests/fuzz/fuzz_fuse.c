/* SPDX-License-Identifier: MIT
 *
 * The kernel's requests in any order and with any content that a kernel may send, to the frontend
 * with an engine on the ensemble in memory (tests/world). The inodes are those that it was told,
 * the open files those that it has, names end and lengths are right; all else is the input's. Each
 * request is answered once, with an errno or with what Linux can read; when all are interrupted,
 * all files closed, and time has passed, none waits and no entry is left.
 */
#define FUSE_USE_VERSION 314

#include "fuzz.h"

#include "behind.h"
#include "files/file.h"
#include "files/lists.h"
#include "files/ops.h"
#include "hold/hold.h"
#include "hold/linger.h"
#include "host/log.h"
#include "request/frontend.h"
#include "request/request.h"
#include "setup/servers.h"
#include "setup/settings.h"
#include "store/store.h"
#include "tree/fixed.h"

#include <fcntl.h>
#include <fuse_opt.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NODES_MAX 64
#define FILES_MAX 32
#define ASKED_MAX 256
#define SECOND INT64_C(1000000)
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* ---- the input ---- */

static uint64_t next_number(void)
{
	static const uint64_t edges[] = {0,    1,      2,          63,        64,        4095,
	                                 4096, 131072, UINT32_MAX, INT64_MAX, UINT64_MAX};
	unsigned byte = next_byte();

	return byte < 64 ? edges[byte % LENGTH(edges)] : (uint64_t)byte << (next_byte() % 56);
}

static const char *next_name(void)
{
	static const char *const names[] = {
		"a",
		"b",
		"a.b",
		"lock",
		"shared",
		"try",
		"reentrant",
		"flock",
		"lock@1s",
		"lock@ahead=1",
		"lock@0s,most=1s,least=1ms",
		"flock@ahead=1,most=2s",
		"lock@",
		"queue",
		"holder",
		"value",
		"slots",
		".zklockfs",
		"locks",
		"history",
		"status",
		"metrics",
		"x0123456789",
		".",
		"..",
	};
	static char name[300];
	size_t n = next_byte();

	if (n < 200)
		return names[n % LENGTH(names)];
	n = n == 255 ? 256 : n - 200;
	for (size_t i = 0; i < n; i++) {
		name[i] = (char)next_byte();
		if (name[i] == '\0' || name[i] == '/')
			name[i] = 'x';
	}
	name[n ? n : 1] = '\0';
	if (n == 0)
		name[0] = 'y';
	return name;
}

/* ---- the kernel ---- */

static struct {
	struct {
		uint64_t ino, lookups;
		unsigned opens;
		bool is_dir;
	} nodes[NODES_MAX];
	size_t node_count;
	struct {
		uint64_t fh;
		size_t node;
		bool is_dir;
	} files[FILES_MAX];
	size_t file_count;
	/* Requests without an answer. */
	struct {
		uint64_t unique;
		uint32_t opcode;
		uint32_t size; /* READ, READDIR, WRITE: so many bytes */
		size_t node;
	} asked[ASKED_MAX];
	size_t asked_count;
	uint64_t unique;
	int fd; /* the kernel's end */
} kernel;

static void see_node(const struct fuse_entry_out *entry)
{
	size_t i = 0;

	if (entry->nodeid == 0)
		return;
	while (i < kernel.node_count && kernel.nodes[i].ino != entry->nodeid)
		i++;
	if (i == NODES_MAX)
		return; /* it is remembered for ever */
	if (i == kernel.node_count) {
		memset(&kernel.nodes[i], 0, sizeof(kernel.nodes[i]));
		kernel.node_count++;
	}
	kernel.nodes[i].ino = entry->nodeid;
	kernel.nodes[i].lookups++;
	kernel.nodes[i].is_dir = S_ISDIR(entry->attr.mode);
}

static void see_open(const struct fuse_open_out *open, size_t node, bool is_dir)
{
	MUST(kernel.file_count < FILES_MAX);
	kernel.files[kernel.file_count].fh = open->fh;
	kernel.files[kernel.file_count].node = node;
	kernel.files[kernel.file_count++].is_dir = is_dir;
}

static void check_attr(const struct fuse_attr *attr, uint32_t valid_ns)
{
	MUST(S_ISREG(attr->mode) || S_ISDIR(attr->mode));
	MUST(attr->size <= INT64_MAX && valid_ns < 1000000000);
	MUST(attr->atimensec < 1000000000 && attr->mtimensec < 1000000000 &&
	     attr->ctimensec < 1000000000);
}

static void check_names(const unsigned char *bytes, size_t len)
{
	while (len > 0) {
		struct fuse_dirent entry;
		size_t size;

		MUST(len >= FUSE_NAME_OFFSET);
		memcpy(&entry, bytes, FUSE_NAME_OFFSET);
		size = FUSE_DIRENT_SIZE(&entry);
		MUST(size <= len && entry.namelen > 0 && entry.namelen <= 1024);
		MUST(!memchr(bytes + FUSE_NAME_OFFSET, '/', entry.namelen));
		MUST(!memchr(bytes + FUSE_NAME_OFFSET, '\0', entry.namelen));
		bytes += size;
		len -= size;
	}
}

static void check_lock(const struct fuse_file_lock *lock)
{
	MUST(lock->type == F_RDLCK || lock->type == F_WRLCK || lock->type == F_UNLCK);
	MUST(lock->type == F_UNLCK || (lock->start <= lock->end && lock->end <= INT64_MAX));
}

/* What Linux checks of an answer, by fuse_copy_out_args() and by the operation that has asked. */
static void check_body(uint32_t opcode, uint32_t size, const struct fuse_out_header *out)
{
	size_t len = out->len - sizeof(*out);
	const struct fuse_entry_out *entry = (const void *)(out + 1);
	const struct fuse_attr_out *attr = (const void *)(out + 1);
	const struct fuse_write_out *write = (const void *)(out + 1);
	const struct fuse_lk_out *lock = (const void *)(out + 1);

	if (out->error != 0) {
		MUST(len == 0);
		return;
	}
	switch (opcode) {
	case FUSE_INIT:
		MUST(len >= FUSE_COMPAT_22_INIT_OUT_SIZE && len <= sizeof(struct fuse_init_out));
		return;
	case FUSE_LOOKUP:
	case FUSE_MKDIR:
		MUST(len == sizeof(*entry) && entry->entry_valid_nsec < 1000000000);
		MUST(entry->nodeid != FUSE_ROOT_ID && entry->nodeid != 0);
		check_attr(&entry->attr, entry->attr_valid_nsec);
		return;
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		MUST(len == sizeof(*attr));
		check_attr(&attr->attr, attr->attr_valid_nsec);
		return;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		MUST(len == sizeof(struct fuse_open_out));
		return;
	case FUSE_READ:
		MUST(len <= size);
		return;
	case FUSE_READDIR:
		MUST(len <= size);
		check_names((const void *)(out + 1), len);
		return;
	case FUSE_WRITE:
		MUST(len == sizeof(*write) && write->size <= size);
		return;
	case FUSE_GETLK:
		MUST(len == sizeof(*lock));
		check_lock(&lock->lk);
		return;
	case FUSE_POLL:
		MUST(len == sizeof(struct fuse_poll_out));
		return;
	default:
		MUST(len == 0);
	}
}

static void see_answer(const unsigned char *bytes, size_t len)
{
	const struct fuse_out_header *out = (const void *)bytes;
	size_t i = 0;

	MUST(len >= sizeof(*out) && out->len == len);
	if (out->unique == 0) { /* a notice: its kind */
		MUST(out->error > 0 && out->error <= FUSE_NOTIFY_DELETE);
		return;
	}
	MUST(out->error <= 0 && out->error > -512);
	while (i < kernel.asked_count && kernel.asked[i].unique != out->unique)
		i++;
	MUST(i < kernel.asked_count); /* asked, and not answered yet */
	check_body(kernel.asked[i].opcode, kernel.asked[i].size, out);
	if (kernel.asked[i].opcode == FUSE_OPEN || kernel.asked[i].opcode == FUSE_OPENDIR) {
		kernel.nodes[kernel.asked[i].node].opens--;
		if (out->error == 0) {
			kernel.nodes[kernel.asked[i].node].opens++;
			see_open((const void *)(out + 1), kernel.asked[i].node,
			         kernel.asked[i].opcode == FUSE_OPENDIR);
		}
	} else if ((kernel.asked[i].opcode == FUSE_LOOKUP ||
	            kernel.asked[i].opcode == FUSE_MKDIR) &&
	           out->error == 0) {
		see_node((const void *)(out + 1));
	}
	kernel.asked[i] = kernel.asked[--kernel.asked_count];
}

static void see_answers(void)
{
	static unsigned char bytes[1 << 20];
	ssize_t n;

	while ((n = behind_receive(kernel.fd, bytes, sizeof(bytes))) > 0)
		see_answer(bytes, (size_t)n);
}

/* ---- the daemon ---- */

static struct frontend front;
static struct fuse_session *fuse;

static void turn(int64_t us)
{
	behind_run(us);
	holds_process(&front, true, false);
	answers_emit(&front, /* closes = */ true);
	see_answers();
}

static void serve(const struct fuse_in_header *header)
{
	struct request *request = request_new(&front, header, header->len, NULL);

	MUST(request);
	request_take(request);
	answers_emit(&front, /* closes = */ true);
	see_answers();
}

static uint32_t size_asked(uint32_t opcode, const void *body)
{
	if (opcode == FUSE_READ || opcode == FUSE_READDIR)
		return ((const struct fuse_read_in *)body)->size;
	return opcode == FUSE_WRITE ? ((const struct fuse_write_in *)body)->size : 0;
}

static void ask(uint32_t opcode, size_t node, const void *body, size_t len)
{
	struct fuse_in_header *header = malloc(sizeof(*header) + len);
	static const uint32_t pids[] = {0, 1, 4000000, UINT32_MAX};
	unsigned who = next_byte();

	MUST(header);
	*header = (struct fuse_in_header){
		.len = (uint32_t)(sizeof(*header) + len),
		.opcode = opcode,
		.unique = kernel.unique += 2,
		.nodeid = kernel.nodes[node].ino,
		.uid = who & 1 ? 1000 : 0,
		.gid = who & 2 ? 1000 : 0,
		.pid = who & 4 ? (uint32_t)getpid() : pids[who >> 3 & 3],
	};
	if (len)
		memcpy(header + 1, body, len);
	if (opcode != FUSE_FORGET && opcode != FUSE_BATCH_FORGET && opcode != FUSE_INTERRUPT) {
		MUST(kernel.asked_count < ASKED_MAX);
		kernel.asked[kernel.asked_count].unique = header->unique;
		kernel.asked[kernel.asked_count].opcode = opcode;
		kernel.asked[kernel.asked_count].size = size_asked(opcode, body);
		kernel.asked[kernel.asked_count++].node = node;
	}
	serve(header);
	free(header);
}

static void begin(void)
{
	static struct holds holds;
	static struct lists lists;
	static const struct options options = {.has_tick_time = true,
	                                       .tick_time_us = 2 * SECOND,
	                                       .session_timeout_us = 10 * SECOND};
	static struct settings settings;
	static struct servers servers;
	char *argv[] = {"fuzz"}, device[32];
	struct store *store;
	struct fuse_args args = {.argc = 1, .argv = argv};
	struct fuse_init_in init = {.major = 7,
	                            .minor = 31,
	                            .max_readahead = 131072,
	                            .flags = UINT32_MAX & ~(1u << 30)};
	int fd;

	holds = (struct holds){0};
	lists = (struct lists){0};
	settings_init(&settings, &options);
	front = (struct frontend){
		.clock_us = behind_clock_us,
		.lc = behind_begin(fixed_reserved),
		.holds = &holds,
		.lists = &lists,
		.facts = {.host = "m",
	                  .mountpoint = "/m",
	                  .settings = &settings,
	                  .servers = &servers,
	                  .on_lost = "none"},
		.without = {.mode = 0755, .lock_file_mode = 0666},
		.files.what = "open files",
		.requests.what = "requests",
	};
	MUST(store_create(&store, &(const char *){NULL}) == 0);
	front.records.memory = &store_memory;
	front.records.store = store;
	log_level(LC_ERROR);
	front.contents.budget = &front.files;
	front.contents.records = &front.records;
	holds.audit_log.clock_us = behind_clock_us;
	holds.audit_log.lc = front.lc;
	holds.audit_log.history.records = &front.records;
	kernel.fd = behind_connect(&fd);
	MUST(nodes_create(&front.records, &front.nodes) == 0 && holds_init(&front));
	front.pending.fuse = fuse = fuse_session_new(&args, &ops, sizeof(ops), &front);
	fuse_opt_free_args(&args);
	front.answers.fd = fd;
	snprintf(device, sizeof(device), "/dev/fd/%d", requests_begin(&front));
	MUST(fuse && fuse_session_mount(fuse, device) == 0);
	kernel.nodes[0].ino = FUSE_ROOT_ID;
	kernel.nodes[0].is_dir = true;
	kernel.node_count = 1;
	ask(FUSE_INIT, 0, &init, sizeof(init));
	MUST(front.serving);
}

/* ---- requests ---- */

static size_t pick_node(bool is_dir)
{
	size_t first = next_byte() % kernel.node_count;

	for (size_t i = 0; i < kernel.node_count; i++)
		if (kernel.nodes[(first + i) % kernel.node_count].is_dir == is_dir)
			return (first + i) % kernel.node_count;
	return 0;
}

static void ask_name(uint32_t opcode, const void *before, size_t len)
{
	char body[600];
	const char *name = next_name();

	if (len)
		memcpy(body, before, len);
	strcpy(body + len, name);
	ask(opcode, pick_node(true), body, len + strlen(name) + 1);
}

static void ask_open(void)
{
	size_t node = pick_node(next_byte() % 4 == 0);
	struct fuse_open_in in = {.flags = (uint32_t)(next_byte() % 4 |
	                                              (next_byte() & 8 ? O_NONBLOCK : 0) |
	                                              (next_byte() & 8 ? O_TRUNC : 0))};
	size_t waiting = 0;

	for (size_t i = 0; i < kernel.asked_count; i++)
		waiting += kernel.asked[i].opcode == FUSE_OPEN ||
		           kernel.asked[i].opcode == FUSE_OPENDIR;
	if (kernel.file_count + waiting >= FILES_MAX)
		return;
	kernel.nodes[node].opens++;
	ask(kernel.nodes[node].is_dir ? FUSE_OPENDIR : FUSE_OPEN, node, &in, sizeof(in));
}

static void ask_release(size_t file)
{
	struct fuse_release_in in = {.fh = kernel.files[file].fh,
	                             .release_flags = next_byte() & 2,
	                             .lock_owner = next_byte() % 3};
	size_t node = kernel.files[file].node;
	bool is_dir = kernel.files[file].is_dir;

	/* Nothing else of it is under way any more. */
	for (size_t i = 0; i < kernel.asked_count; i++)
		if (kernel.asked[i].node == node && kernel.asked[i].opcode != FUSE_OPEN)
			return;
	kernel.files[file] = kernel.files[--kernel.file_count];
	kernel.nodes[node].opens--;
	ask(is_dir ? FUSE_RELEASEDIR : FUSE_RELEASE, node, &in, sizeof(in));
}

static void ask_write(size_t file)
{
	static struct {
		struct fuse_write_in in;
		char bytes[MAX_WRITE];
	} write;
	size_t n = next_byte() < 240 ? next_byte() % 32 : next_number() % MAX_WRITE;

	write.in = (struct fuse_write_in){.fh = kernel.files[file].fh,
	                                  .offset = next_number() & INT64_MAX,
	                                  .size = (uint32_t)n};
	for (size_t i = 0; i < n; i++)
		write.bytes[i] = i < 40 ? (char)next_byte() : 'z';
	ask(FUSE_WRITE, kernel.files[file].node, &write, sizeof(write.in) + n);
}

static void ask_lock(size_t file)
{
	static const uint32_t opcodes[] = {FUSE_GETLK, FUSE_SETLK, FUSE_SETLKW};
	struct fuse_lk_in in = {.fh = kernel.files[file].fh,
	                        .owner = next_byte() % 4,
	                        .lk = {.start = next_byte() < 200 ? 0 : next_number(),
	                               .end = next_byte() < 200 ? INT64_MAX : next_number(),
	                               .type = next_byte() % 3,
	                               .pid = (uint32_t)getpid()},
	                        .lk_flags = next_byte() & 1};

	ask(opcodes[next_byte() % 3], kernel.files[file].node, &in, sizeof(in));
}

/* Of an open file. */
static void ask_file(void)
{
	size_t file = kernel.file_count ? next_byte() % kernel.file_count : 0;
	struct fuse_read_in read = {.offset = next_number() & INT64_MAX,
	                            .size = (uint32_t)(next_number() % MAX_WRITE)};
	struct fuse_fsync_in fsync = {.fsync_flags = next_byte() & 1};
	struct fuse_flush_in flush = {.lock_owner = next_byte() % 4};
	struct fuse_poll_in poll = {
		.kh = next_byte() % 4 + 1, .flags = next_byte() & 1, .events = next_byte()};

	if (kernel.file_count == 0)
		return;
	read.fh = fsync.fh = flush.fh = poll.fh = kernel.files[file].fh;
	if (kernel.files[file].is_dir) {
		if (next_byte() % 4)
			ask(FUSE_READDIR, kernel.files[file].node, &read, sizeof(read));
		else
			ask_release(file);
		return;
	}
	switch (next_byte() % 8) {
	case 0:
		ask(FUSE_READ, kernel.files[file].node, &read, sizeof(read));
		return;
	case 1:
		ask_write(file);
		return;
	case 2:
		ask(FUSE_FSYNC, kernel.files[file].node, &fsync, sizeof(fsync));
		return;
	case 3:
		ask(FUSE_FLUSH, kernel.files[file].node, &flush, sizeof(flush));
		return;
	case 4:
		ask(FUSE_POLL, kernel.files[file].node, &poll, sizeof(poll));
		return;
	case 5:
		ask_release(file);
		return;
	default:
		ask_lock(file);
		return;
	}
}

static void ask_attributes(void)
{
	size_t node = next_byte() % kernel.node_count;
	struct fuse_getattr_in get = {0};
	struct fuse_setattr_in set = {.valid = next_byte() & (FATTR_MODE | FATTR_UID | FATTR_GID |
	                                                      FATTR_SIZE | FATTR_MTIME),
	                              .size = next_number(),
	                              .mode = (uint32_t)next_number(),
	                              .uid = (uint32_t)next_number(),
	                              .gid = (uint32_t)next_number()};

	if (next_byte() & 1)
		ask(FUSE_GETATTR, node, &get, sizeof(get));
	else
		ask(FUSE_SETATTR, node, &set, sizeof(set));
}

static void ask_xattr(void)
{
	struct {
		struct fuse_setxattr_in in;
		char text[40];
	} set = {.in = {.size = 1}};
	const char *name = next_byte() & 1 ? "user.evict" : "user.x";
	size_t len = FUSE_COMPAT_SETXATTR_IN_SIZE;
	char body[60];

	memcpy(body, &set.in, len);
	strcpy(body + len, name);
	len += strlen(name) + 1;
	body[len++] = '1';
	ask(FUSE_SETXATTR, next_byte() % kernel.node_count, body, len);
}

static void ask_forget(void)
{
	size_t node = pick_node(false);
	struct fuse_forget_in in = {.nlookup = kernel.nodes[node].lookups};

	if (node == 0 || kernel.nodes[node].is_dir || kernel.nodes[node].opens > 0 ||
	    in.nlookup == 0)
		return;
	for (size_t i = 0; i < kernel.asked_count; i++)
		if (kernel.asked[i].node == node || kernel.asked[i].node == kernel.node_count - 1)
			return;
	for (size_t i = 0; i < kernel.file_count; i++)
		if (kernel.files[i].node == kernel.node_count - 1)
			return;
	ask(FUSE_FORGET, node, &in, sizeof(in));
	kernel.nodes[node] = kernel.nodes[--kernel.node_count];
}

static void ask_interrupt(uint64_t unique)
{
	struct fuse_interrupt_in in = {.unique = unique};

	ask(FUSE_INTERRUPT, 0, &in, sizeof(in));
}

static void ask_something(void)
{
	struct fuse_mkdir_in mkdir = {.mode = 0755 | (next_byte() & 2)};

	switch (next_byte() % 16) {
	case 0:
		ask_name(FUSE_MKDIR, &mkdir, sizeof(mkdir));
		return;
	case 1:
		ask_name(next_byte() & 1 ? FUSE_RMDIR : FUSE_UNLINK, NULL, 0);
		return;
	case 2:
	case 3:
	case 4:
		ask_name(FUSE_LOOKUP, NULL, 0);
		return;
	case 5:
	case 6:
	case 7:
		ask_open();
		return;
	case 8:
		ask_attributes();
		return;
	case 9:
		ask_xattr();
		return;
	case 10:
		ask_forget();
		return;
	case 11:
		if (kernel.asked_count)
			ask_interrupt(kernel.asked[next_byte() % kernel.asked_count].unique);
		return;
	case 12:
		turn((int64_t)(next_number() % (3 * SECOND)));
		return;
	default:
		ask_file();
		return;
	}
}

/* All that it knows, as at unmount. What nobody else needs is not known any more then. */
static void forget_all(void)
{
	struct {
		struct fuse_batch_forget_in in;
		struct fuse_forget_one one[NODES_MAX];
	} forgets = {.in.count = (uint32_t)kernel.node_count - 1};

	/* Children first. */
	for (size_t i = kernel.node_count; i-- > 1;)
		forgets.one[kernel.node_count - 1 - i] = (struct fuse_forget_one){
			.nodeid = kernel.nodes[i].ino, .nlookup = kernel.nodes[i].lookups};
	if (kernel.node_count > 1)
		ask(FUSE_BATCH_FORGET, 0, &forgets,
		    sizeof(forgets.in) + forgets.in.count * sizeof(forgets.one[0]));
	for (size_t i = 1; i < kernel.node_count; i++)
		MUST(kernel.nodes[i].is_dir || !node_by_ino(front.nodes, kernel.nodes[i].ino));
}

/* ---- a run ---- */

static void finish(void)
{
	struct lc_status status;

	for (int tries = 0; tries < 8 && (kernel.asked_count || kernel.file_count); tries++) {
		for (size_t i = kernel.asked_count; i-- > 0;)
			if (i < kernel.asked_count)
				ask_interrupt(kernel.asked[i].unique);
		turn(5 * SECOND);
		for (size_t i = kernel.file_count; i-- > 0;)
			ask_release(i);
	}
	MUST(kernel.asked_count == 0 && kernel.file_count == 0);
	holds_drop_all(&front); /* places that are kept for a moment, by another clock */
	turn(30 * SECOND);
	lc_status(front.lc, &status);
	MUST(status.holders == 0 && status.waiters == 0 && status.entries == 0);
	forget_all();
	behind_end();
	front.lc = NULL;
	holds_end(&front);
	files_end(&front);
	fuse_session_unmount(fuse);
	fuse_session_destroy(fuse);
	answers_end(&front);
	close(kernel.fd);
	inbox_finish(&front.inbox);
	close(front.pending.libfuse);
	requests_finish(&front);
	linger_finish(&front.holds->linger);
	nodes_destroy(front.nodes);
	history_finish(&front.holds->audit_log.history);
	store_close(front.records.store);
	records_finish(&front.records);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	input = data;
	input_left = size;
	memset(&kernel, 0, sizeof(kernel));
	begin();
	turn(SECOND);
	while (input_left > 0 && kernel.asked_count < ASKED_MAX / 2)
		ask_something();
	finish();
	return 0;
}
