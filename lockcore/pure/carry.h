/* SPDX-License-Identifier: MIT
 *
 * carry.h - the fields of a record (book.h): numbers, texts and descriptors, one behind the other.
 * Each kind of object has one function, X_carry(), that names the fields of its record in their
 * order. The same function writes and reads:
 *
 *   CARRY_PID(carry, thing->pid)    writes it; or reads it, and checks that it can be a pid
 *
 * Nothing that is read is believed without a check, and no list is longer than the rest of the
 * record. If something does not fit, all records are refused: see carry_refuse().
 */
#ifndef LOCKCORE_CARRY_H
#define LOCKCORE_CARRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct carry {
	bool loads;   /* a record is read; otherwise it is written */
	bool checks;  /* it is only read to check it: there are no descriptors, no engine */
	bool crashed; /* the process that has written it is dead, its descriptors are closed */
	bool gathers; /* it is written only to gather its descriptors */
	/* Reading: the version of the records (ledger.c), 0 for this program's own; and whether
	 * there may be more at the end of each than this program knows. */
	unsigned version;
	bool more;
	/* The record that is read is not good, and why. NULL: see carry_refuse(). */
	void (*refuse)(const char *why) __attribute__((noreturn));
	const char *bad;    /* reading, without `refuse`: why the first bad record is not good */
	unsigned kind;      /* of the record; reading: 0 between two records */
	const char *failed; /* see carry_fail(); or NULL */
	unsigned char *data;
	size_t len, at; /* the length of the record; reading: how far it was read */
	size_t room;    /* writing: the size of `data` */
	int *fds;       /* the gathered descriptors */
	size_t fd_count, fd_room;
};

/* Begins to write a record, in the place of the last one. */
void carry_begin(struct carry *carry);
/* Begins to read a record, which stays where it is. */
void carry_read(struct carry *carry, const void *bytes, size_t len);
/* Whether the fields that came with that version are written, or are there to be read:
 *
 *   if (carry_has(carry, 7))
 *           CARRY_64(carry, thing->since_us);
 *
 * Otherwise they keep the values that the object has had before. */
bool carry_has(const struct carry *carry, unsigned version);
/* The whole record was read: refuses if something is left that this version should know. */
void carry_read_all(struct carry *carry);
/* Whether an exec passes on the gathered descriptors. */
void carry_pass(const struct carry *carry, bool pass);
/* Frees what was written. */
void carry_end(struct carry *carry);

/* The record that is read is not good. Does not return if there is a carry->refuse(). Otherwise
 * carry->bad says why, and each field that follows is 0 (or its least), or "". */
void carry_refuse(struct carry *carry, const char *why);
/* The record lacks something, and is of no use; or, reading, there is no memory for its object. As
 * carry_refuse(), but carry->failed says why. */
void carry_fail(struct carry *carry, const char *why);

/* All of these return the value that is written, or that was read. */
int64_t carry_number(struct carry *carry, int64_t number, int64_t least, int64_t most);
size_t carry_count(struct carry *carry, size_t count);
/* May be NULL. A text that was read is good as long as the record. */
const char *carry_text(struct carry *carry, const char *text);
/* A text in an array of that size. */
void carry_copy(struct carry *carry, char *text, size_t size);
const void *carry_bytes(struct carry *carry, const void *bytes, size_t *len);
/* A descriptor, or -1. To check, or after a crash, -1 is read in any case. */
int carry_fd(struct carry *carry, int fd);
/* A descriptor that outlives a crash: keeper.h says which do. */
int carry_lasting_fd(struct carry *carry, int fd);
/* A moment, from 0 on: of this machine's clock, or INT64_MAX for never. */
int64_t carry_time(struct carry *carry, int64_t us);
#define CARRY_TIME(carry, x) ((x) = carry_time(carry, x))
#define CARRY_RANGE(carry, x, least, most) \
	((x) = (__typeof__(x))carry_number(carry, (int64_t)(x), least, most))
#define CARRY_64(carry, x) CARRY_RANGE(carry, x, INT64_MIN, INT64_MAX)
#define CARRY_U32(carry, x) CARRY_RANGE(carry, x, 0, UINT32_MAX)
#define CARRY_INT(carry, x) CARRY_RANGE(carry, x, INT32_MIN, INT32_MAX)
#define CARRY_PID(carry, x) CARRY_RANGE(carry, x, 0, INT32_MAX)
#define CARRY_BOOL(carry, x) CARRY_RANGE(carry, x, 0, 1)
/* An enum, up to that value. */
#define CARRY_ENUM(carry, x, last) CARRY_RANGE(carry, x, 0, last)
#define CARRY_SIZE(carry, x, most) CARRY_RANGE(carry, x, 0, (int64_t)(most))
#define CARRY_FD(carry, x) ((x) = carry_fd(carry, x))
#define CARRY_LASTING_FD(carry, x) ((x) = carry_lasting_fd(carry, x))

#endif
