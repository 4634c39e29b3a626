/* SPDX-License-Identifier: MIT
 *
 * answers.h - messages to the kernel: answers, and notices to processes that poll. They are kept
 * back until the loop lets them out, after each request and at the end of a turn. So no process can
 * notice an unrecorded change.
 */
#ifndef FS_ANSWERS_H
#define FS_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct frontend;
struct fuse_out_header;

/* The most bytes that are kept back. With more, or without memory, all leave at once, unrecorded:
 * no process can take over from this one any more. */
#define ANSWERS_MAX (64 * 1024 * 1024)

struct answers {
	int fd; /* of the kernel's device; -1: closed, no answer is wanted any more */
	unsigned char *unsent;
	size_t len, room; /* bytes that are unsent, and for which there is memory */
};

/* Copies a message, whose header says how long the body is. `opens`: it is an answer that gives the
 * kernel an open file. */
void answers_add(struct frontend *front, bool opens, const struct fuse_out_header *header,
                 const void *body);
/* Tells the kernel that this poller shall poll again. 0: there is no poller. */
void answers_wake_poller(struct frontend *front, uint64_t poller);
/* The same for the pollers of all open files. */
void answers_wake_all(struct frontend *front);
/* Adds the unsent messages to the next commit of the store. */
void answers_record(struct frontend *front);
/* All messages leave, in the order of their coming. `closes`: open files that the kernel did not
 * take end, since the mount was aborted, and no RELEASE will come. */
void answers_emit(struct frontend *front, bool closes);
/* After a crash: the messages of the store's last commit leave. The kernel refuses an answer that
 * it has already. */
void answers_emit_again(struct frontend *front);
/* Closes the device, and drops all messages. */
void answers_end(struct frontend *front);

#endif
