/* SPDX-License-Identifier: MIT
 *
 * codec.h - the fields of a record (records.h): numbers, texts and descriptors, one behind the
 * other. Each kind of object has one function, X_save_load(), that names the fields of its record
 * in their order. The same function writes and reads:
 *
 *   CODEC_PID(codec, thing->pid)    writes it; or reads it, and checks that it can be a pid
 *
 * Nothing that is read is believed without a check, and no list is longer than the rest of the
 * record. If something does not fit, all records are refused: see codec_refuse().
 */
#ifndef LOCKCORE_CODEC_H
#define LOCKCORE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct codec {
	bool loads;   /* a record is read; otherwise it is written */
	bool checks;  /* it is only read to check it: there are no descriptors, no engine */
	bool crashed; /* the process that has written it is dead, its descriptors are closed */
	bool gathers; /* it is written only to gather its descriptors */
	/* Reading: the version of the records (mount_records.c), 0 for this program's own; and
	 * whether there may be more at the end of each than this program knows. */
	unsigned version;
	bool more;
	/* The record that is read is not good, and why. NULL: see codec_refuse(). */
	void (*give_up)(const char *why) __attribute__((noreturn));
	const char *bad;    /* reading, without `give_up`: why the first bad record is not good */
	unsigned kind;      /* of the record; reading: 0 between two records */
	const char *failed; /* see codec_fail(); or NULL */
	unsigned char *data;
	size_t len, at; /* the length of the record; reading: how far it was read */
	size_t room;    /* writing: the size of `data` */
	int *fds;       /* the gathered descriptors */
	size_t fd_count, fd_room;
};

/* Begins to write a record, in the place of the last one. */
void codec_begin(struct codec *codec);
/* Begins to read a record, which stays where it is. */
void codec_read(struct codec *codec, const void *bytes, size_t len);
/* Whether the fields that came with that version are written, or are there to be read:
 *
 *   if (codec_has(codec, 7))
 *           CODEC_64(codec, thing->since_us);
 *
 * Otherwise they keep the values that the object has had before. */
bool codec_has(const struct codec *codec, unsigned version);
/* The whole record was read: refuses if something is left that this version should know. */
void codec_read_all(struct codec *codec);
/* Whether an exec passes on the gathered descriptors. */
void codec_pass(const struct codec *codec, bool pass);
/* Frees what was written. */
void codec_end(struct codec *codec);

/* The record that is read is not good. Does not return if there is a codec->give_up(). Otherwise
 * codec->bad says why, and each field that follows is 0 (or its least), or "". */
void codec_refuse(struct codec *codec, const char *why);
/* The record lacks something, and is of no use; or, reading, there is no memory for its object. As
 * codec_refuse(), but codec->failed says why. */
void codec_fail(struct codec *codec, const char *why);

/* All of these return the value that is written, or that was read. */
int64_t codec_number(struct codec *codec, int64_t number, int64_t least, int64_t most);
size_t codec_count(struct codec *codec, size_t count);
/* May be NULL. A text that was read is good as long as the record. */
const char *codec_text(struct codec *codec, const char *text);
/* A text in an array of that size. */
void codec_copy(struct codec *codec, char *text, size_t size);
const void *codec_bytes(struct codec *codec, const void *bytes, size_t *len);
/* A descriptor, or -1. To check, or after a crash, -1 is read in any case. */
int codec_fd(struct codec *codec, int fd);
/* A descriptor that outlives a crash: supervisor.h says which do. */
int codec_lasting_fd(struct codec *codec, int fd);
/* A moment, from 0 on: of this machine's clock, or INT64_MAX for never. */
int64_t codec_time(struct codec *codec, int64_t us);
#define CODEC_TIME(codec, x) ((x) = codec_time(codec, x))
#define CODEC_RANGE(codec, x, least, most) \
	((x) = (__typeof__(x))codec_number(codec, (int64_t)(x), least, most))
#define CODEC_64(codec, x) CODEC_RANGE(codec, x, INT64_MIN, INT64_MAX)
#define CODEC_U32(codec, x) CODEC_RANGE(codec, x, 0, UINT32_MAX)
#define CODEC_INT(codec, x) CODEC_RANGE(codec, x, INT32_MIN, INT32_MAX)
#define CODEC_PID(codec, x) CODEC_RANGE(codec, x, 0, INT32_MAX)
#define CODEC_BOOL(codec, x) CODEC_RANGE(codec, x, 0, 1)
/* An enum, up to that value. */
#define CODEC_ENUM(codec, x, last) CODEC_RANGE(codec, x, 0, last)
#define CODEC_SIZE(codec, x, most) CODEC_RANGE(codec, x, 0, (int64_t)(most))
#define CODEC_FD(codec, x) ((x) = codec_fd(codec, x))
#define CODEC_LASTING_FD(codec, x) ((x) = codec_lasting_fd(codec, x))

#endif
