/* SPDX-License-Identifier: MIT */
#include "request/answers.h"

#include "host/log.h"
#include "request/frontend.h"
#include "store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* The buffer of unsent messages never shrinks below this. */
#define ROOM_MIN 65536

/* A message that has not left yet. */
struct answer {
	bool opens;
	_Alignas(uint64_t) struct fuse_out_header header; /* `header.len`: with what follows it */
};

/* Its bytes in the buffer. */
static size_t size_of(const struct fuse_out_header *header)
{
	size_t align = _Alignof(struct answer), len = offsetof(struct answer, header) + header->len;

	return (len + align - 1) / align * align;
}

static bool make_answer_room(struct answers *answers, size_t size)
{
	size_t room = answers->room ? answers->room : ROOM_MIN;
	unsigned char *unsent;

	if (size > ANSWERS_MAX - answers->len)
		return false;
	while (room - answers->len < size)
		room *= 2;
	if (room == answers->room)
		return true;
	unsent = realloc(answers->unsent, room);
	if (!unsent)
		return false;
	answers->unsent = unsent;
	answers->room = room;
	return true;
}

/* The kernel did not take the answer to an OPEN, or OPENDIR: no RELEASE will come. */
static void close_unopened(struct frontend *front, const struct fuse_out_header *header)
{
	const struct fuse_open_out *out = (const void *)(header + 1);
	struct open_file *file = open_file_find(front, out->fh);

	if (file)
		open_file_close(file);
}

/* EINVAL is a defect of this program. (ENOENT: the kernel has the answer, or wants none any
 * more.) */
static void log_refused(const struct fuse_out_header *header)
{
	log_line(LC_ERROR,
	         "the kernel cannot read an answer of %" PRIu32 " bytes, with error %" PRId32
	         ", to request %" PRIu64,
	         header->len, header->error, (uint64_t)header->unique);
}

void answers_emit(struct frontend *front, bool closes)
{
	struct answers *answers = &front->answers;

	for (size_t at = 0; at < answers->len;) {
		const struct answer *answer = (const void *)(answers->unsent + at);

		at += size_of(&answer->header);
		if (write(answers->fd, &answer->header, answer->header.len) >= 0)
			continue;
		if (errno == EINVAL)
			log_refused(&answer->header);
		/* This may add an answer and move answers->unsent: `answer` is dead. */
		if (answer->opens && closes)
			close_unopened(front, &answer->header);
	}
	answers->len = 0;
	if (answers->room > ROOM_MIN) {
		free(answers->unsent);
		answers->unsent = NULL;
		answers->room = 0;
	}
}

void answers_add(struct frontend *front, bool opens, const struct fuse_out_header *header,
                 const void *body)
{
	struct answers *answers = &front->answers;
	size_t body_len = header->len - sizeof(*header);
	struct answer *answer;

	if (answers->fd < 0)
		return;
	if (!make_answer_room(answers, size_of(header))) {
		const struct iovec iov[] = {
			{.iov_base = (void *)header, .iov_len = sizeof(*header)},
			{.iov_base = (void *)body, .iov_len = body_len},
		};

		store_spoil(front->records.store);
		/* Nothing closes files here, since the caller may be at work with one. If the
		 * mount was aborted, files_end() closes them. */
		answers_emit(front, /* closes = */ false);
		(void)!writev(answers->fd, iov, 2);
		return;
	}
	answer = (void *)(answers->unsent + answers->len);
	answers->len += size_of(header);
	answer->opens = opens;
	answer->header = *header;
	if (body_len > 0)
		memcpy(&answer->header + 1, body, body_len);
}

void answers_record(struct frontend *front)
{
	const struct answers *answers = &front->answers;

	for (size_t at = 0; at < answers->len;) {
		const struct answer *answer = (const void *)(answers->unsent + at);

		at += size_of(&answer->header);
		if (store_answer(front->records.store, answer->opens, &answer->header,
		                 answer->header.len) < 0)
			return; /* the commit will fail, too */
	}
}

void answers_emit_again(struct frontend *front)
{
	const void *bytes;
	size_t at = 0, len;
	unsigned opens;

	while (store_next_answer(front->records.store, &at, &opens, &bytes, &len))
		(void)!write(front->answers.fd, bytes, len);
}

void answers_wake_poller(struct frontend *front, uint64_t poller)
{
	struct {
		struct fuse_out_header header;
		struct fuse_notify_poll_wakeup_out wakeup;
	} notice = {
		.header = {.len = sizeof(notice), .error = FUSE_NOTIFY_POLL},
		.wakeup = {.kh = poller},
	};

	if (poller)
		answers_add(front, /* opens = */ false, &notice.header, &notice.wakeup);
}

void answers_wake_all(struct frontend *front)
{
	const struct open_file *file;
	uint32_t slot = 0;

	while ((file = open_file_next(front, &slot)))
		answers_wake_poller(front, file->poller);
}

void answers_end(struct frontend *front)
{
	free(front->answers.unsent);
	if (front->answers.fd >= 0)
		close(front->answers.fd);
	front->answers = (struct answers){.fd = -1};
}
