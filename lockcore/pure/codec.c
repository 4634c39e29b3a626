/* SPDX-License-Identifier: MIT
 *
 * codec.c - see codec.h. Most numbers are small, and there are many. The sign of a number becomes
 * its lowest bit. Then it is written with 7 bits in a byte, the lowest first; the highest bit of a
 * byte says that another byte follows. Texts and bytes have their length before them.
 */
#include "pure/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define NO_TEXT (-1)
/* A number of 64 bits takes so many bytes, with 7 bits in each. */
#define NUMBER_BYTES 10
/* Times of the clock beyond this one are never, which is a short number. */
#define TIME_MAX (INT64_MAX / 4)
#define NEVER (-1)

void codec_fail(struct codec *codec, const char *why)
{
	if (codec->loads && codec->give_up)
		codec->give_up(why);
	if (!codec->failed)
		codec->failed = why;
}

void codec_refuse(struct codec *codec, const char *why)
{
	if (codec->give_up)
		codec->give_up(why);
	if (!codec->bad)
		codec->bad = why;
	codec->at = codec->len;
}

/* ---- writing ---- */

/* Room for so many bytes more. False: there is no memory, and the record is of no use. */
static bool make_record_room(struct codec *codec, size_t len)
{
	size_t room = 2 * (codec->room + len);
	unsigned char *data;

	if (len <= codec->room - codec->len)
		return true;
	data = codec->failed ? NULL : realloc(codec->data, room);
	if (!data) {
		codec_fail(codec, strerror(ENOMEM));
		return false;
	}
	codec->data = data;
	codec->room = room;
	return true;
}

static void append_bytes(struct codec *codec, const void *bytes, size_t len)
{
	if (!make_record_room(codec, len))
		return;
	if (len > 0)
		memcpy(codec->data + codec->len, bytes, len);
	codec->len += len;
}

void codec_begin(struct codec *codec)
{
	codec->len = 0;
}

void codec_pass(const struct codec *codec, bool pass)
{
	for (size_t i = 0; i < codec->fd_count; i++)
		(void)fcntl(codec->fds[i], F_SETFD, pass ? 0 : FD_CLOEXEC);
}

/* ---- reading ---- */

void codec_read(struct codec *codec, const void *bytes, size_t len)
{
	codec->data = (unsigned char *)bytes;
	codec->len = len;
	codec->at = 0;
}

bool codec_has(const struct codec *codec, unsigned version)
{
	return !codec->loads || codec->version == 0 || codec->version >= version;
}

void codec_read_all(struct codec *codec)
{
	if (codec->loads && codec->at != codec->len && !codec->more)
		codec_refuse(codec, "the state is too long");
	if (!codec->bad)
		codec->kind = 0;
}

void codec_end(struct codec *codec)
{
	if (!codec->loads)
		free(codec->data);
	free(codec->fds);
	*codec = (struct codec){0};
}

static const unsigned char *get_bytes(struct codec *codec, size_t *len)
{
	const unsigned char *bytes = codec->data + codec->at;

	if (*len > codec->len - codec->at) {
		codec_refuse(codec, "the state is too short");
		*len = 0;
	}
	codec->at += *len;
	return bytes;
}

/* ---- both ---- */

static void write_number(struct codec *codec, int64_t number)
{
	uint64_t left = (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0);
	unsigned char *at;

	if (!make_record_room(codec, NUMBER_BYTES))
		return;
	at = codec->data + codec->len;
	for (; left >= 0x80; left >>= 7)
		*at++ = (unsigned char)(left | 0x80);
	*at++ = (unsigned char)left;
	codec->len = (size_t)(at - codec->data);
}

/* The lowest bit was the sign. */
static int64_t with_sign(uint64_t number)
{
	return (int64_t)(number >> 1 ^ -(number & 1));
}

/* A number has one form only, the shortest, of 64 bits. */
static int64_t get_number(struct codec *codec)
{
	const unsigned char *at = codec->data + codec->at;
	size_t left = codec->len - codec->at, most = left < NUMBER_BYTES ? left : NUMBER_BYTES;
	uint64_t number = 0;
	bool ends = false;
	size_t i;

	for (i = 0; !ends && i < most; i++) {
		number |= (uint64_t)(at[i] & 0x7f) << 7 * i;
		ends = at[i] < 0x80;
	}
	if (!ends || (i > 1 && at[i - 1] == 0) || (i == NUMBER_BYTES && at[i - 1] > 1)) {
		codec_refuse(codec, ends || left > most ? "the state has an invalid number"
		                                        : "the state is too short");
		return 0;
	}
	codec->at += i;
	return with_sign(number);
}

int64_t codec_number(struct codec *codec, int64_t number, int64_t least, int64_t most)
{
	if (!codec->loads) {
		write_number(codec, number);
		return number;
	}
	number = get_number(codec);
	if (number >= least && number <= most && !codec->bad)
		return number;
	codec_refuse(codec, "the state has a number out of range");
	return least > 0 ? least : 0;
}

int64_t codec_time(struct codec *codec, int64_t us)
{
	us = codec_number(codec, us > TIME_MAX ? NEVER : us, NEVER, TIME_MAX);
	return us == NEVER ? INT64_MAX : us;
}

size_t codec_count(struct codec *codec, size_t count)
{
	return (size_t)codec_number(codec, (int64_t)count, 0, (int64_t)(codec->len - codec->at));
}

const void *codec_bytes(struct codec *codec, const void *bytes, size_t *len)
{
	*len = (size_t)codec_number(codec, (int64_t)*len, 0, INT64_MAX);
	if (codec->loads)
		return get_bytes(codec, len);
	append_bytes(codec, bytes, *len);
	return bytes;
}

static bool is_text(const char *text, size_t size)
{
	return size > 0 && memchr(text, '\0', size) == text + size - 1;
}

const char *codec_text(struct codec *codec, const char *text)
{
	int64_t number =
		codec_number(codec, text ? (int64_t)strlen(text) + 1 : NO_TEXT, NO_TEXT, INT64_MAX);
	size_t size = (size_t)number;

	if (number == NO_TEXT)
		return NULL;
	if (!codec->loads) {
		append_bytes(codec, text, size);
		return text;
	}
	text = (const char *)get_bytes(codec, &size);
	if (is_text(text, size))
		return text;
	codec_refuse(codec, "the state has an invalid text");
	return "";
}

void codec_copy(struct codec *codec, char *text, size_t size)
{
	const char *read = codec_text(codec, text);

	if (!codec->loads)
		return;
	if (!read || strlen(read) >= size) {
		codec_refuse(codec, "the state has a text that is too long");
		read = "";
	}
	strcpy(text, read);
}

static void name_fd(struct codec *codec, int fd)
{
	if (codec->fd_count == codec->fd_room) {
		size_t room = 2 * codec->fd_room + 64;
		int *fds = reallocarray(codec->fds, room, sizeof(fds[0]));

		if (!fds) {
			codec_fail(codec, strerror(ENOMEM));
			return;
		}
		codec->fds = fds;
		codec->fd_room = room;
	}
	codec->fds[codec->fd_count++] = fd;
}

int codec_lasting_fd(struct codec *codec, int fd)
{
	fd = (int)codec_number(codec, fd, -1, INT32_MAX);
	if (!codec->loads) {
		if (fd >= 0 && codec->gathers)
			name_fd(codec, fd);
		return fd;
	}
	if (codec->checks)
		return -1;
	if (fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		codec_refuse(codec, "the state has a descriptor that is not open");
	return fd;
}

int codec_fd(struct codec *codec, int fd)
{
	if (!codec->loads || !codec->crashed)
		return codec_lasting_fd(codec, fd);
	(void)codec_number(codec, -1, -1, INT32_MAX);
	return -1;
}
