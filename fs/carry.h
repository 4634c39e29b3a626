/* SPDX-License-Identifier: MIT
 *
 * carry.h - what a daemon leaves to the one that takes over from it (reload.h): numbers, texts and
 * descriptors, one behind the other. Each part of the daemon has one function that says what
 * is to be kept of it, and in which order; it runs once to write, and once to read:
 *
 *   CARRY_PID(carry, thing->pid)    writes it; or reads it, and checks that it can be one
 *
 * What is read is believed in nothing, and a list cannot be longer than what is left to read.
 * Whoever finds something that does not fit does not go on: carry->refuse() does not return.
 */
#ifndef FS_CARRY_H
#define FS_CARRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Another number: another order of what is kept, or another meaning. Whoever knows this one
 * takes over from all who have written it. */
#define CARRY_VERSION 1

struct carry {
	bool loads;  /* it is read; otherwise written */
	bool checks; /* it is read to see if it is good: there are no descriptors, no engine */
	/* Of what is read: it is not good. */
	void (*refuse)(const char *why) __attribute__((noreturn));
	const char *lacks; /* it cannot be written, and why; or NULL */
	unsigned char *data;
	size_t len, at; /* read up to there; or as much is written, */
	size_t room;    /*   and so much can be */
	int *fds;       /* written: the descriptors that it names */
	size_t fd_count, fd_room;
};

/* To be written; and then to a new descriptor that an exec closes, or -ENOMEM or another errno. */
void carry_begin(struct carry *carry);
int carry_write(struct carry *carry);
/* Let an exec pass on the descriptors that the state names; or no longer. */
void carry_pass(const struct carry *carry, bool pass);
/* What such a descriptor has. */
void carry_read(struct carry *carry, int fd, bool checks,
                void (*refuse)(const char *why) __attribute__((noreturn)));
/* Nothing is left to read. */
void carry_read_all(const struct carry *carry);
void carry_end(struct carry *carry);

/* What is written lacks something, and is of no use. */
void carry_lack(struct carry *carry, const char *why);

/* All return what is written, or what was read. */
int64_t carry_number(struct carry *carry, int64_t number, int64_t least, int64_t most);
size_t carry_count(struct carry *carry, size_t count);
/* May be NULL. What was read is good until carry_end(). */
const char *carry_text(struct carry *carry, const char *text);
/* A text in a room of that size. */
void carry_copy(struct carry *carry, char *text, size_t size);
const void *carry_bytes(struct carry *carry, const void *bytes, size_t *len);
/* A descriptor, or -1. Who checks reads -1. */
int carry_fd(struct carry *carry, int fd);
/* Between two parts: they have not run apart. */
void carry_mark(struct carry *carry, unsigned number);

#define CARRY_RANGE(carry, x, least, most) \
	((x) = (__typeof__(x))carry_number(carry, (int64_t)(x), least, most))
#define CARRY_64(carry, x) CARRY_RANGE(carry, x, INT64_MIN, INT64_MAX)
#define CARRY_U32(carry, x) CARRY_RANGE(carry, x, 0, UINT32_MAX)
#define CARRY_INT(carry, x) CARRY_RANGE(carry, x, INT32_MIN, INT32_MAX)
#define CARRY_PID(carry, x) CARRY_RANGE(carry, x, 0, INT32_MAX)
#define CARRY_BOOL(carry, x) CARRY_RANGE(carry, x, 0, 1)
/* An enum whose last value is that. */
#define CARRY_ENUM(carry, x, last) CARRY_RANGE(carry, x, 0, last)
#define CARRY_SIZE(carry, x, most) CARRY_RANGE(carry, x, 0, (int64_t)(most))
#define CARRY_FD(carry, x) ((x) = carry_fd(carry, x))

#endif
