/* SPDX-License-Identifier: MIT
 *
 * answers.h - what goes to the kernel: answers, and notices to those who poll. They are kept back
 * until the loop lets them out, after each request and at the end of a turn: nobody is told
 * anything while it is being done.
 */
#ifndef FS_ANSWERS_H
#define FS_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct face;
struct iovec;

/* Bytes that are kept back. With more of them, or without memory, all leave at once; and nobody can
 * take over any more, since they are not recorded. */
#define ANSWERS_MAX (64 * 1024 * 1024)

struct answers {
	int fd; /* the kernel's device; -1: it is closed, and nobody waits for an answer */
	unsigned char *kept;
	size_t len, room;
};

/* Copies them. `opens`: an answer that gives the kernel an open file. */
void answers_keep(struct face *face, bool opens, const struct iovec *iov, int count);
bool answers_are_kept(const struct face *face);
/* The next commit of the store has them, too. */
void answers_record(struct face *face);
/* All that are kept, in the order of their coming. `unopened` is told the number of an open file
 * that the kernel did not take: the mount was aborted, and no RELEASE will come. */
void answers_emit(struct face *face, void (*unopened)(struct face *face, uint64_t fh));
/* Those of the store's last commit, which a crash has left: what the kernel had already, it does
 * not take again. */
void answers_emit_again(struct face *face);
/* The device is closed. */
void answers_end(struct face *face);

#endif
