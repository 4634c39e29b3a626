/* SPDX-License-Identifier: MIT */
#include "request/pending.h"

#include "host/log.h"
#include "request/frontend.h"
#include "request/trace.h"
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <linux/fuse.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utlist.h>

_Static_assert(sizeof(void *) != 8 || sizeof(struct request) <= 72, "a request has grown");

static struct request *request_of(struct table_link *unique)
{
	return (struct request *)unique;
}

/* ---- between libfuse and the kernel ---- */

struct request *pending_find(const struct frontend *front, uint64_t unique)
{
	return request_of(table_find(&front->pending.waiting, unique));
}

/* The request of that number; NULL: there is none. */
static const struct fuse_in_header *answered_request(const struct frontend *front, uint64_t unique)
{
	const struct request *request;

	if (front->pending.now && unique == pending_unique(front))
		return front->pending.now;
	request = pending_find(front, unique);
	return request ? (const void *)request->bytes : NULL;
}

static bool gives_open_file(const struct frontend *front, const struct fuse_out_header *answer)
{
	const struct fuse_in_header *request = answered_request(front, answer->unique);

	return answer->error == 0 && request &&
	       (request->opcode == FUSE_OPEN || request->opcode == FUSE_OPENDIR);
}

void pending_drop(struct frontend *front, struct request *request)
{
	table_remove(&front->pending.waiting, &request->unique);
	stored_end(&request->stored);
	free(request);
}

static void forget_request(struct frontend *front, uint64_t unique)
{
	struct request *request = pending_find(front, unique);

	if (request)
		pending_drop(front, request);
}

static void see_answer(struct frontend *front, uint64_t unique)
{
	struct pending *pending = &front->pending;

	if (pending->now && unique == pending_unique(front))
		pending->answered = true;
	else
		forget_request(front, unique);
}

/* libfuse 3.14.0 does not ask the kernel for parallel lookups, though it says that it does. Then
 * the names of a directory are looked up one after the other, and a process that looks up thousands
 * makes all others wait. */
static void fix_init_answer(const struct fuse_in_header *request, const struct iovec *answer,
                            int count)
{
	const struct fuse_init_in *in;
	struct fuse_init_out *out;

	if (!request || request->opcode != FUSE_INIT || count < 2 ||
	    answer[1].iov_len < offsetof(struct fuse_init_out, flags) + sizeof(out->flags))
		return;
	in = (const void *)(request + 1);
	out = answer[1].iov_base;
	out->flags |= in->flags & FUSE_PARALLEL_DIROPS;
}

/* Whether the kernel takes the answer is known later: in answers_emit(). */
static ssize_t take_answer(struct frontend *front, const struct iovec *iov, int count)
{
	const struct fuse_out_header *answer = iov[0].iov_base;
	bool opens = gives_open_file(front, answer);

	see_answer(front, answer->unique);
	fix_init_answer(front->pending.now, iov, count);
	if (!front->pending.replays) /* the kernel had this answer long ago */
		answers_add(front, opens, iov, count);
	return answer->len;
}

/* Whose answers libfuse writes to which descriptor. */
static struct {
	struct frontend *front; /* or NULL */
	int fd;
	pid_t pid; /* a child may have closed it, and got another one of that number */
} libfuse;

/* Instead of the C library's, for all of this process, because libfuse writes its answers with it.
 * Its own interface for that, fuse_session_custom_io(), is switched off from 3.18.3 on. */
__attribute__((visibility("default"))) ssize_t writev(int fd, const struct iovec *iov, int count)
{
	if (libfuse.front && fd == libfuse.fd && getpid() == libfuse.pid)
		return take_answer(libfuse.front, iov, count);
	return syscall(SYS_writev, fd, iov, count);
}

void pending_follow(struct frontend *front, struct fuse_session *fuse)
{
	libfuse.front = front;
	libfuse.fd = fuse_session_fd(fuse);
	libfuse.pid = getpid();
	assert(libfuse.fd < 0 || libfuse.fd != front->answers.fd);
}

void pending_finish(struct frontend *front)
{
	struct table_link *unique;

	libfuse.front = NULL;
	while ((unique = table_next(&front->pending.waiting, NULL)))
		pending_drop(front, request_of(unique));
	table_finish(&front->pending.waiting);
	free(front->pending.init);
	front->pending.init = NULL;
}

/* ---- serving ---- */

static struct request *copy_request(const void *bytes, size_t len)
{
	struct request *request = malloc(sizeof(*request) + len);

	if (!request)
		return NULL;
	*request = (struct request){.len = (uint32_t)len};
	memcpy(request->bytes, bytes, len);
	return request;
}

/* False: no memory, or there is one of that number. */
static bool add_request(struct frontend *front, struct request *request)
{
	const struct fuse_in_header *header = (const void *)request->bytes;

	return !pending_find(front, header->unique) &&
	       table_add(&front->pending.waiting, &request->unique, header->unique);
}

struct request *pending_copy(struct frontend *front, const struct fuse_buf *buffer)
{
	struct request *request = copy_request(buffer->mem, buffer->size);

	if (request && add_request(front, request))
		return request;
	free(request);
	return NULL;
}

void pending_record(struct frontend *front, struct request *request)
{
	stored_begin(&front->stored, &request->stored, STORED_REQUEST, 0);
}

static void keep_request(struct frontend *front, const struct fuse_buf *buffer, bool begun)
{
	struct request *request = pending_copy(front, buffer);

	front->pending.out_of_memory |= !request;
	if (!request)
		return;
	request->begun = begun;
	pending_record(front, request);
}

/* The kernel waits for an answer. */
static bool is_question(const struct fuse_in_header *request)
{
	return request->opcode != FUSE_FORGET && request->opcode != FUSE_BATCH_FORGET &&
	       request->opcode != FUSE_INTERRUPT && request->opcode != FUSE_NOTIFY_REPLY;
}

/* Whether it waits for an answer from now on. */
static bool serve(struct frontend *front, struct fuse_session *fuse, const struct fuse_buf *buffer)
{
	struct pending *pending = &front->pending;
	const struct fuse_in_header *request = buffer->mem;

	pending->now = request;
	pending->answered = false;
	pending->begun = false;
	store_set_serving(front->stored.store, request->unique);
	fuse_session_process_buf(fuse, buffer);
	store_set_serving(front->stored.store, 0);
	pending->now = NULL;
	return !pending->answered && is_question(request);
}

/* libfuse has called our init() in any case. */
static bool init_was_answered(struct frontend *front)
{
	if (front->pending.answered)
		return true;
	front->serving = false;
	log_line(LC_ERROR, "libfuse %s does not write its answers with writev(2)",
	         fuse_pkgversion());
	return false;
}

void pending_serve(struct frontend *front, struct fuse_session *fuse, const struct fuse_buf *buffer)
{
	struct pending *pending = &front->pending;
	const struct fuse_in_header *request = buffer->mem;

	if (request->opcode == FUSE_INIT && !pending->init)
		pending->init = copy_request(buffer->mem, buffer->size);
	if (request->unique == pending->deferred) {
		forget_request(front, pending->deferred);
		pending->deferred = 0;
	}
	if (serve(front, fuse, buffer))
		keep_request(front, buffer, pending->begun);
	if (request->opcode == FUSE_INIT && !init_was_answered(front))
		fuse_session_exit(fuse);
}

bool pending_serve_copy(struct frontend *front, struct fuse_session *fuse, struct request *request)
{
	struct fuse_buf buffer = {.mem = request->bytes, .size = request->len};

	if (!serve(front, fuse, &buffer))
		return true;
	if (request->begun != front->pending.begun) {
		request->begun = front->pending.begun;
		stored_touch(&request->stored);
	}
	return false;
}

void pending_defer(struct frontend *front, const struct fuse_buf *buffer)
{
	const struct fuse_in_header *request = buffer->mem;

	if (request->unique == front->pending.deferred)
		return;
	front->pending.deferred = request->unique;
	keep_request(front, buffer, false);
}

void pending_begun(struct frontend *front)
{
	assert(front->pending.now);
	front->pending.begun = true;
}

uint64_t pending_unique(const struct frontend *front)
{
	return ((const struct fuse_in_header *)front->pending.now)->unique;
}

uint64_t pending_poller(const struct frontend *front)
{
	const struct fuse_in_header *request = front->pending.now;

	return ((const struct fuse_poll_in *)(request + 1))->kh;
}

void pending_wake_poller(struct frontend *front, uint64_t poller)
{
	struct {
		struct fuse_out_header header;
		struct fuse_notify_poll_wakeup_out wakeup;
	} notice = {
		.header = {.len = sizeof(notice), .error = FUSE_NOTIFY_POLL},
		.wakeup = {.kh = poller},
	};
	const struct iovec iov = {.iov_base = &notice, .iov_len = sizeof(notice)};

	if (poller)
		answers_add(front, false, &iov, 1);
}

void pending_wake_all(struct frontend *front)
{
	const struct open_file *file;
	uint32_t slot = 0;

	while ((file = open_file_next(front, &slot)))
		pending_wake_poller(front, file->poller);
}

/* ---- over a reload ---- */

static bool is_request(const void *bytes, size_t len)
{
	struct fuse_in_header header;
	size_t least = sizeof(header);

	if (len < least || len > REQUEST_BYTES)
		return false;
	memcpy(&header, bytes, sizeof(header));
	if (header.opcode == FUSE_POLL)
		least += sizeof(struct fuse_poll_in);
	return header.len == len && len >= least;
}

static struct request *request_bytes_carry(struct carry *carry, struct request *request)
{
	size_t len = request ? request->len : 0;
	const void *bytes = carry_bytes(carry, request ? request->bytes : NULL, &len);

	if (!carry->loads)
		return request;
	if (!is_request(bytes, len))
		carry->refuse("the state has an invalid request");
	request = copy_request(bytes, len);
	if (!request)
		carry->refuse(strerror(ENOMEM));
	return request;
}

void request_stored_carry(struct carry *carry, struct frontend *front, struct stored *stored)
{
	struct request *request = request_bytes_carry(carry, STORED_IN(stored, struct request));

	CARRY_BOOL(carry, request->begun);
	if (!carry->loads)
		return;
	if (!add_request(front, request))
		carry->refuse("the state has a request twice");
	pending_record(front, request);
}

/* INIT comes only once. */
void init_carry(struct carry *carry, struct frontend *front)
{
	struct pending *pending = &front->pending;

	if (pending->out_of_memory || (!carry->loads && !pending->init))
		carry_fail(carry, "there was no memory for a request");
	else
		pending->init = request_bytes_carry(carry, pending->init);
	CARRY_LASTING_FD(carry, front->answers.fd);
}

bool pending_give(struct frontend *front, uint64_t unique, void *owner)
{
	struct request *request = pending_find(front, unique);

	if (!request || request->owner)
		return false;
	request->owner = owner;
	return true;
}

void *pending_owner(const struct frontend *front)
{
	return front->pending.owner;
}

bool pending_serve_init(struct frontend *front, struct fuse_session *fuse)
{
	struct request *init = front->pending.init;

	front->pending.replays = true;
	(void)pending_serve_copy(front, fuse, init);
	front->pending.replays = false;
	return init_was_answered(front);
}

/* An fsync may be done twice, and EIO would say that the lock is lost. */
static bool may_be_done_twice(const struct request *request)
{
	const struct fuse_in_header *header = (const void *)request->bytes;

	return header->opcode == FUSE_FSYNC;
}

static void refuse_request(struct frontend *front, const struct request *request)
{
	struct fuse_out_header header = {
		.len = sizeof(header),
		.error = -EIO,
		.unique = request->unique.number,
	};
	const struct iovec iov = {.iov_base = &header, .iov_len = sizeof(header)};

	answers_add(front, false, &iov, 1);
}

static int compare_coming(const struct table_link *a, const struct table_link *b)
{
	uint64_t x = ((const struct request *)a)->stored.key;
	uint64_t y = ((const struct request *)b)->stored.key;

	return x < y ? -1 : x > y;
}

static bool replay(struct frontend *front, struct fuse_session *fuse, struct request *request,
                   bool crashed)
{
	bool answered;

	if (crashed && request->begun && !may_be_done_twice(request)) {
		refuse_request(front, request);
		return true;
	}
	front->pending.owner = request->owner;
	request->owner = NULL;
	answered = pending_serve_copy(front, fuse, request);
	front->pending.owner = NULL;
	return answered;
}

void pending_replay(struct frontend *front, struct fuse_session *fuse, bool crashed,
                    pending_stays_fn *stays)
{
	struct pending *pending = &front->pending;
	struct table_link *all = table_take_all(&pending->waiting), *unique, *next;

	LL_SORT(all, compare_coming);
	LL_FOREACH_SAFE(all, unique, next) {
		struct request *request = request_of(unique);
		const struct fuse_buf buffer = {.mem = request->bytes, .size = request->len};
		/* There is room: it was there before. */
		bool added = table_add(&pending->waiting, unique, unique->number);

		(void)added;
		assert(added);
		trace_request(front, request->bytes, request->len);
		if (!request->owner && !request->begun && stays(front, &buffer, request))
			continue;
		if (replay(front, fuse, request, crashed))
			pending_drop(front, request);
	}
}

void pending_replay_read(struct frontend *front, struct fuse_session *fuse, pending_stays_fn *stays)
{
	struct fuse_buf buffer = {0};
	const void *bytes;
	size_t at = 0;

	while (store_next_request(front->stored.store, &at, &bytes, &buffer.size) &&
	       is_request(bytes, buffer.size)) {
		buffer.mem = (void *)(uintptr_t)bytes;
		trace_request(front, bytes, buffer.size);
		if (!stays(front, &buffer, NULL))
			pending_serve(front, fuse, &buffer);
	}
}
