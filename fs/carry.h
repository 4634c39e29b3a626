/* SPDX-License-Identifier: MIT
 *
 * carry.h - what a daemon leaves to the one that takes over from it: records of numbers, texts and
 * descriptors, one behind the other. Each kind of object has one function that says what is
 * to be kept of it, and in which order; it runs to write, and to read:
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

struct carry {
	bool loads;   /* it is read; otherwise written */
	bool checks;  /* it is read to see if it is good: there are no descriptors, no engine */
	bool crashed; /* who has written it is dead, and with it the descriptors */
	bool gathers; /* it is written for the descriptors that it names */
	/* Of what is read: who has written it; and he may know more than this version, at the end
	 * of each record. */
	unsigned version;
	bool more;
	/* Of what is read: it is not good. */
	void (*refuse)(const char *why) __attribute__((noreturn));
	const char *lacks; /* it cannot be written, and why; or NULL */
	unsigned char *data;
	size_t len, at; /* read up to there; or as much is written, */
	size_t room;    /*   and so much can be */
	int *fds;       /* gathered */
	size_t fd_count, fd_room;
};

/* A record is written next, in the place of the last one. */
void carry_begin(struct carry *carry);
/* A record is read next, which stays where it is. */
void carry_read(struct carry *carry, const void *bytes, size_t len);
/* What a record has at its end since that version: it is written, or there to be read. */
bool carry_has(const struct carry *carry, unsigned version);
/* Nothing of it is left to read, unless it is more than this version knows. */
void carry_read_all(const struct carry *carry);
/* Let an exec pass on the descriptors that were gathered; or no longer. */
void carry_pass(const struct carry *carry, bool pass);
/* Frees what was written. */
void carry_end(struct carry *carry);

/* What is written lacks something, and is of no use. */
void carry_lack(struct carry *carry, const char *why);

/* All return what is written, or what was read. */
int64_t carry_number(struct carry *carry, int64_t number, int64_t least, int64_t most);
size_t carry_count(struct carry *carry, size_t count);
/* May be NULL. What was read is good as long as the record. */
const char *carry_text(struct carry *carry, const char *text);
/* A text in a room of that size. */
void carry_copy(struct carry *carry, char *text, size_t size);
const void *carry_bytes(struct carry *carry, const void *bytes, size_t *len);
/* A descriptor, or -1; and -1 is what is read to check, or after a crash. */
int carry_fd(struct carry *carry, int fd);
/* One that outlives a crash: keeper.h says which do. */
int carry_lasting_fd(struct carry *carry, int fd);
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
#define CARRY_LASTING_FD(carry, x) ((x) = carry_lasting_fd(carry, x))

#endif
