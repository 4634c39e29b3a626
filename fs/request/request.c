/* SPDX-License-Identifier: MIT */
#include "request/request.h"

#include "host/log.h"
#include "request/frontend.h"
#include "request/trace.h"
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

/* Thousands of requests may wait, so the struct stays small. */
_Static_assert(sizeof(void *) != 8 || sizeof(struct request) <= 160, "a request has grown");

/* Room for any answer of libfuse's own: the one to INIT is the longest. */
#define LIBFUSE_BYTES 1024

struct request *request_find(const struct frontend *front, uint64_t unique)
{
	return (struct request *)(table_find(&front->pending.kept, unique));
}

/* ---- from the first to the last ---- */

int requests_begin(struct frontend *front)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return -1;
	front->pending.libfuse = fds[0];
	return fds[1];
}

struct request *request_alloc(size_t len)
{
	return len < sizeof(struct fuse_in_header) ? NULL
	                                           : malloc(offsetof(struct request, in) + len);
}

struct request *request_new(struct frontend *front, const void *bytes, size_t len,
                            struct request *room)
{
	struct request *request = room ? room : request_alloc(len);

	if (!request)
		return NULL;
	memset(request, 0, offsetof(struct request, in));
	memmove(&request->in, bytes, len);
	request->front = front;
	request->len = (uint32_t)len;
	request->traced = trace_begin(front, &request->in);
	return request;
}

bool request_list(struct request *request)
{
	struct frontend *front = request->front;

	request->kept = !request_find(front, request->in.unique) &&
	                table_add(&front->pending.kept, &request->unique, request->in.unique);
	return request->kept;
}

void request_record(struct request *request)
{
	record_begin(&request->front->records, &request->record, RECORD_REQUEST, 0);
}

void request_keep(struct request *request)
{
	if (request->kept)
		return;
	if (request_list(request))
		request_record(request);
	else
		request->front->pending.out_of_memory = true;
}

void request_drop(struct request *request)
{
	if (request->kept)
		table_remove(&request->front->pending.kept, &request->unique);
	record_end(&request->record);
	free(request->traced);
	free(request);
}

void requests_finish(struct frontend *front)
{
	struct pending *pending = &front->pending;
	struct table_link *unique;

	while ((unique = table_next(&pending->kept, NULL)))
		request_drop((struct request *)unique);
	table_finish(&pending->kept);
	if (pending->init)
		request_drop(pending->init);
	pending->init = NULL;
}

/* ---- answers ---- */

void request_end(struct request *request, int error)
{
	fuse_req_t fuse = request->fuse;

	assert(request->state != REQUEST_ANSWERED);
	trace_end(request, error);
	request->fuse = NULL;
	if (request->state == REQUEST_SERVED)
		request->state = REQUEST_ANSWERED;
	else
		request_drop(request);
	if (fuse)
		fuse_reply_none(fuse);
}

void request_answer(struct request *request, int error, const void *body, size_t len)
{
	struct fuse_out_header header = {
		.len = (uint32_t)(sizeof(header) + len),
		.error = error,
		.unique = request->in.unique,
	};
	bool opens = error == 0 &&
	             (request->in.opcode == FUSE_OPEN || request->in.opcode == FUSE_OPENDIR);

	answers_add(request->front, opens, &header, body);
	request_end(request, error);
}

/* libfuse 3.14.0 does not ask the kernel for parallel lookups, though it says that it does. Then
 * the names of a directory are looked up one after the other, and a process that looks up thousands
 * makes all others wait. */
static void fix_init_answer(const struct request *request, unsigned char *answer, size_t len)
{
	const struct fuse_init_in *in = (const void *)(&request->in + 1);
	struct fuse_init_out *out = (void *)(answer + sizeof(struct fuse_out_header));

	if (request->in.opcode == FUSE_INIT &&
	    len >= sizeof(struct fuse_out_header) + offsetof(struct fuse_init_out, flags) +
	                    sizeof(out->flags))
		out->flags |= in->flags & FUSE_PARALLEL_DIROPS;
}

/* Passes on what libfuse has written by itself: the answers to INIT, to operations that this
 * filesystem does not have, and to an interrupt that came before its request. */
static void pass_on(struct request *request)
{
	struct frontend *front = request->front;
	_Alignas(uint64_t) unsigned char bytes[LIBFUSE_BYTES];
	const struct fuse_out_header *header = (const void *)bytes;
	ssize_t n;

	while ((n = recv(front->pending.libfuse, bytes, sizeof(bytes), MSG_DONTWAIT)) >=
	       (ssize_t)sizeof(*header)) {
		bool own = header->unique == request->in.unique;

		if (own)
			fix_init_answer(request, bytes, (size_t)n);
		/* The kernel has had the answer to INIT since the mount. */
		if (request != front->pending.init)
			answers_add(front, /* opens = */ false, header, header + 1);
		if (own)
			request_end(request, header->error);
	}
}

/* ---- serving ---- */

/* The kernel waits for an answer. */
static bool is_question(const struct request *request)
{
	uint32_t opcode = request->in.opcode;

	return opcode != FUSE_FORGET && opcode != FUSE_BATCH_FORGET && opcode != FUSE_INTERRUPT &&
	       opcode != FUSE_NOTIFY_REPLY;
}

bool request_serve(struct request *request)
{
	const struct fuse_buf buffer = {.mem = &request->in, .size = request->len};
	struct frontend *front = request->front;

	request->state = REQUEST_SERVED;
	if (request->begun)
		record_touch(&request->record);
	request->begun = false;
	front->pending.now = request;
	store_head(front->records.store)->serving = request->in.unique;
	fuse_session_process_buf(front->pending.fuse, &buffer);
	pass_on(request);
	store_head(front->records.store)->serving = 0;
	front->pending.now = NULL;
	if (request->state == REQUEST_ANSWERED || !is_question(request))
		return true;
	request->state = REQUEST_WAITS;
	return false;
}

/* Whether libfuse has answered INIT. It calls our init(), which sets front->serving, in any
 * case. */
static bool init_was_answered(struct frontend *front, bool answered)
{
	if (answered)
		return true;
	front->serving = false;
	log_line(LC_ERROR, "libfuse %s does not answer the kernel's first request",
	         fuse_pkgversion());
	return false;
}

void request_take(struct request *request)
{
	struct frontend *front = request->front;
	bool init = request->in.opcode == FUSE_INIT, answered = request_serve(request);

	if (!answered)
		request_keep(request);
	else if (init && !front->pending.init)
		front->pending.init = request;
	else
		request_drop(request);
	if (init && !init_was_answered(front, answered))
		fuse_session_exit(front->pending.fuse);
}

/* ---- for handlers ---- */

struct request *request_of(fuse_req_t fuse)
{
	const struct frontend *front = fuse_req_userdata(fuse);
	struct request *request = front->pending.now;

	request->fuse = fuse;
	return request;
}

bool request_is_interrupted(const struct request *request)
{
	return fuse_req_interrupted(request->fuse);
}

static void interrupt(fuse_req_t fuse, void *ctx)
{
	const struct request *request = ctx;

	(void)fuse;
	request->interrupted(request->owner);
}

void request_wait(struct request *request, void (*interrupted)(void *owner), void *owner)
{
	request->owner = owner;
	request->interrupted = interrupted;
	fuse_req_interrupt_func(request->fuse, interrupt, request);
}

void request_begun(struct request *request)
{
	request->begun = true;
	record_touch(&request->record);
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

static struct request *request_bytes_save_load(struct codec *codec, struct frontend *front,
                                               struct request *request)
{
	size_t len = request ? request->len : 0;
	const void *bytes = codec_bytes(codec, request ? &request->in : NULL, &len);

	if (!codec->loads)
		return request;
	if (!is_request(bytes, len))
		codec->give_up("the state has an invalid request");
	request = request_new(front, bytes, len, NULL);
	if (!request)
		codec->give_up(strerror(ENOMEM));
	return request;
}

void request_record_save_load(struct codec *codec, void *front, struct record *record)
{
	struct request *request =
		request_bytes_save_load(codec, front, RECORD_IN(record, struct request));

	CODEC_BOOL(codec, request->begun);
	if (!codec->loads)
		return;
	if (!request_list(request))
		codec->give_up("the state has a request twice");
	request_record(request);
}

/* INIT comes only once. */
void init_save_load(struct codec *codec, struct frontend *front)
{
	struct pending *pending = &front->pending;

	if (pending->out_of_memory || (!codec->loads && !pending->init))
		codec_fail(codec, "there was no memory for a request");
	else
		pending->init = request_bytes_save_load(codec, front, pending->init);
	CODEC_LASTING_FD(codec, front->answers.fd);
}

struct request *request_give(struct frontend *front, uint64_t unique, void *owner)
{
	struct request *request = request_find(front, unique);

	if (!request || request->owner)
		return NULL;
	request->owner = owner;
	return request;
}

bool requests_serve_init(struct frontend *front)
{
	return init_was_answered(front, request_serve(front->pending.init));
}

/* An fsync may be done twice, and EIO would say that the lock is lost. */
static bool may_be_done_twice(const struct request *request)
{
	return request->in.opcode == FUSE_FSYNC;
}

static int compare_coming(const struct table_link *a, const struct table_link *b)
{
	uint64_t x = ((const struct request *)a)->record.key;
	uint64_t y = ((const struct request *)b)->record.key;

	return x < y ? -1 : x > y;
}

static void replay(struct request *request, bool crashed)
{
	if (crashed && request->begun && !may_be_done_twice(request))
		request_answer(request, -EIO, NULL, 0);
	else if (request_serve(request))
		request_drop(request);
}

void requests_replay(struct frontend *front, bool crashed, request_stays_fn *stays)
{
	struct pending *pending = &front->pending;
	struct table_link *all = table_take_all(&pending->kept), *unique, *next;

	LL_SORT(all, compare_coming);
	LL_FOREACH_SAFE(all, unique, next) {
		struct request *request = (struct request *)unique;
		/* The table had this request before, so there is room. */
		bool added = table_add(&pending->kept, unique, unique->number);

		(void)added;
		assert(added);
		if (!request->owner && !request->begun && stays(request))
			continue;
		replay(request, crashed);
	}
}

bool requests_replay_read(struct frontend *front, request_stays_fn *stays)
{
	struct request *request;
	const void *bytes;
	size_t at = 0, len;

	while (store_next_request(front->records.store, &at, &bytes, &len) &&
	       is_request(bytes, len)) {
		request = request_new(front, bytes, len, NULL);
		if (!request)
			return false;
		if (!stays(request))
			request_take(request);
	}
	return true;
}
