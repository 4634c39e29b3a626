/* SPDX-License-Identifier: MIT
 *
 * carry.c - see carry.h. Most numbers are small, and there are many. The sign of a number becomes
 * its lowest bit. Then it is written with 7 bits in a byte, the lowest first; the highest bit of a
 * byte says that another byte follows. Texts and bytes have their length before them.
 */
#include "pure/carry.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define NO_TEXT (-1)
/* For 64 bits, 7 in a byte. */
#define NUMBER_BYTES 10
/* Of the clock: later is never, which is a short number. */
#define TIME_MAX (INT64_MAX / 4)
#define NEVER (-1)

void carry_fail(struct carry *carry, const char *why)
{
	if (carry->loads && carry->refuse)
		carry->refuse(why);
	if (!carry->failed)
		carry->failed = why;
}

void carry_refuse(struct carry *carry, const char *why)
{
	if (carry->refuse)
		carry->refuse(why);
	if (!carry->bad)
		carry->bad = why;
	carry->at = carry->len;
}

/* ---- writing ---- */

/* Room for so many bytes more. False: there is no memory, and the record is of no use. */
static bool make_record_room(struct carry *carry, size_t len)
{
	size_t room = 2 * (carry->room + len);
	unsigned char *data;

	if (len <= carry->room - carry->len)
		return true;
	data = carry->failed ? NULL : realloc(carry->data, room);
	if (!data) {
		carry_fail(carry, strerror(ENOMEM));
		return false;
	}
	carry->data = data;
	carry->room = room;
	return true;
}

static void append_bytes(struct carry *carry, const void *bytes, size_t len)
{
	if (!make_record_room(carry, len))
		return;
	if (len > 0)
		memcpy(carry->data + carry->len, bytes, len);
	carry->len += len;
}

void carry_begin(struct carry *carry)
{
	carry->len = 0;
}

void carry_pass(const struct carry *carry, bool pass)
{
	for (size_t i = 0; i < carry->fd_count; i++)
		(void)fcntl(carry->fds[i], F_SETFD, pass ? 0 : FD_CLOEXEC);
}

/* ---- reading ---- */

void carry_read(struct carry *carry, const void *bytes, size_t len)
{
	carry->data = (unsigned char *)bytes;
	carry->len = len;
	carry->at = 0;
}

bool carry_has(const struct carry *carry, unsigned version)
{
	return !carry->loads || carry->version == 0 || carry->version >= version;
}

void carry_read_all(struct carry *carry)
{
	if (carry->loads && carry->at != carry->len && !carry->more)
		carry_refuse(carry, "the state is too long");
	if (!carry->bad)
		carry->kind = 0;
}

void carry_end(struct carry *carry)
{
	if (!carry->loads)
		free(carry->data);
	free(carry->fds);
	*carry = (struct carry){0};
}

static const unsigned char *get_bytes(struct carry *carry, size_t *len)
{
	const unsigned char *bytes = carry->data + carry->at;

	if (*len > carry->len - carry->at) {
		carry_refuse(carry, "the state is too short");
		*len = 0;
	}
	carry->at += *len;
	return bytes;
}

/* ---- both ---- */

static void write_number(struct carry *carry, int64_t number)
{
	uint64_t left = (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0);
	unsigned char *at;

	if (!make_record_room(carry, NUMBER_BYTES))
		return;
	at = carry->data + carry->len;
	for (; left >= 0x80; left >>= 7)
		*at++ = (unsigned char)(left | 0x80);
	*at++ = (unsigned char)left;
	carry->len = (size_t)(at - carry->data);
}

/* The lowest bit was the sign. */
static int64_t with_sign(uint64_t number)
{
	return (int64_t)(number >> 1 ^ -(number & 1));
}

/* All users wait while thousands of records are read: so eight bytes at a time. How many of them
 * belong to the number. `ret_ends`: all of it. */
static size_t get_eight(const unsigned char *bytes, uint64_t *ret_number, bool *ret_ends)
{
	uint64_t number, ends;
	unsigned bits = 64;

	memcpy(&number, bytes, sizeof(number));
	number = le64toh(number);
	ends = ~number & UINT64_C(0x8080808080808080);
	*ret_ends = ends != 0;
	if (ends)
		bits = (unsigned)__builtin_ctzll(ends) + 1;
	number &= UINT64_MAX >> (64 - bits) & UINT64_C(0x7f7f7f7f7f7f7f7f);
	/* 7 bits of each byte, then 14 of each two, then 28 of each four come together. */
	number = (number & UINT64_C(0x007f007f007f007f)) |
	         (number & UINT64_C(0x7f007f007f007f00)) >> 1;
	number = (number & UINT64_C(0x00003fff00003fff)) |
	         (number & UINT64_C(0x3fff00003fff0000)) >> 2;
	*ret_number = (number & UINT64_C(0x0fffffff)) | number >> 32 << 28;
	return bits / 8;
}

static int64_t get_number(struct carry *carry)
{
	const unsigned char *at = carry->data + carry->at;
	size_t left = carry->len - carry->at, most = left < NUMBER_BYTES ? left : NUMBER_BYTES;
	uint64_t number = 0;
	bool ends = false;
	size_t i;

	if (left > 0 && *at < 0x80) { /* most are small */
		carry->at++;
		return with_sign(*at);
	}
	i = left < sizeof(number) ? 0 : get_eight(at, &number, &ends);
	for (; !ends && i < most; i++) {
		number |= (uint64_t)(at[i] & 0x7f) << 7 * i;
		ends = at[i] < 0x80;
	}
	/* It has one form only, the shortest, of 64 bits. */
	if (!ends || at[i - 1] == 0 || (i == NUMBER_BYTES && at[i - 1] > 1)) {
		carry_refuse(carry, ends || left > most ? "the state has an invalid number"
		                                        : "the state is too short");
		return 0;
	}
	carry->at += i;
	return with_sign(number);
}

int64_t carry_number(struct carry *carry, int64_t number, int64_t least, int64_t most)
{
	if (!carry->loads) {
		write_number(carry, number);
		return number;
	}
	number = get_number(carry);
	if (number >= least && number <= most && !carry->bad)
		return number;
	carry_refuse(carry, "the state has a number out of range");
	return least > 0 ? least : 0;
}

int64_t carry_time(struct carry *carry, int64_t us)
{
	us = carry_number(carry, us > TIME_MAX ? NEVER : us, NEVER, TIME_MAX);
	return us == NEVER ? INT64_MAX : us;
}

size_t carry_count(struct carry *carry, size_t count)
{
	return (size_t)carry_number(carry, (int64_t)count, 0, (int64_t)(carry->len - carry->at));
}

const void *carry_bytes(struct carry *carry, const void *bytes, size_t *len)
{
	*len = (size_t)carry_number(carry, (int64_t)*len, 0, INT64_MAX);
	if (carry->loads)
		return get_bytes(carry, len);
	append_bytes(carry, bytes, *len);
	return bytes;
}

static bool is_text(const char *text, size_t size)
{
	return size > 0 && memchr(text, '\0', size) == text + size - 1;
}

const char *carry_text(struct carry *carry, const char *text)
{
	int64_t number =
		carry_number(carry, text ? (int64_t)strlen(text) + 1 : NO_TEXT, NO_TEXT, INT64_MAX);
	size_t size = (size_t)number;

	if (number == NO_TEXT)
		return NULL;
	if (!carry->loads) {
		append_bytes(carry, text, size);
		return text;
	}
	text = (const char *)get_bytes(carry, &size);
	if (is_text(text, size))
		return text;
	carry_refuse(carry, "the state has an invalid text");
	return "";
}

void carry_copy(struct carry *carry, char *text, size_t size)
{
	const char *read = carry_text(carry, text);

	if (!carry->loads)
		return;
	if (!read || strlen(read) >= size) {
		carry_refuse(carry, "the state has a text that is too long");
		read = "";
	}
	strcpy(text, read);
}

static void name_fd(struct carry *carry, int fd)
{
	if (carry->fd_count == carry->fd_room) {
		size_t room = 2 * carry->fd_room + 64;
		int *fds = reallocarray(carry->fds, room, sizeof(fds[0]));

		if (!fds) {
			carry_fail(carry, strerror(ENOMEM));
			return;
		}
		carry->fds = fds;
		carry->fd_room = room;
	}
	carry->fds[carry->fd_count++] = fd;
}

int carry_lasting_fd(struct carry *carry, int fd)
{
	fd = (int)carry_number(carry, fd, -1, INT32_MAX);
	if (!carry->loads) {
		if (fd >= 0 && carry->gathers)
			name_fd(carry, fd);
		return fd;
	}
	if (carry->checks)
		return -1;
	if (fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		carry_refuse(carry, "the state has a descriptor that is not open");
	return fd;
}

int carry_fd(struct carry *carry, int fd)
{
	if (!carry->loads || !carry->crashed)
		return carry_lasting_fd(carry, fd);
	(void)carry_number(carry, -1, -1, INT32_MAX);
	return -1;
}
