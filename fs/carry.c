/* SPDX-License-Identifier: MIT
 *
 * carry.c - see carry.h.
 *
 *   header: magic, version, length, sum   then: numbers of 8 bytes each; texts and bytes with
 *   their length before them. It stays on one machine, so the bytes of a number are its own.
 */
#include "carry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x6574617453746f4c)
#define NO_TEXT (-1)
/* Before the number of a mark: what stands there by chance is no mark. */
#define MARK INT64_C(0x6b72614d00000000)

struct header {
	uint64_t magic, version, len, sum;
};

/* FNV-1a, of 8 bytes at a time. A state that is cut off or was written over by mistake is
 * noticed. */
static uint64_t sum_of(const unsigned char *data, size_t len)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < len; i += sizeof(sum)) {
		uint64_t part = 0;

		memcpy(&part, data + i, len - i < sizeof(part) ? len - i : sizeof(part));
		sum = (sum ^ part) * UINT64_C(0x100000001b3);
	}
	return sum;
}

void carry_lack(struct carry *carry, const char *why)
{
	if (!carry->lacks)
		carry->lacks = why;
}

/* ---- writing ---- */

static void append_bytes(struct carry *carry, const void *bytes, size_t len)
{
	if (len > carry->room - carry->len) {
		size_t room = 2 * (carry->room + len);
		unsigned char *data = carry->lacks ? NULL : realloc(carry->data, room);

		if (!data) {
			carry_lack(carry, strerror(ENOMEM));
			return;
		}
		carry->data = data;
		carry->room = room;
	}
	if (len > 0)
		memcpy(carry->data + carry->len, bytes, len);
	carry->len += len;
}

void carry_begin(struct carry *carry)
{
	struct header header = {0};

	*carry = (struct carry){0};
	append_bytes(carry, &header, sizeof(header));
}

static int write_all(int fd, const unsigned char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

int carry_write(struct carry *carry)
{
	struct header header = {.magic = MAGIC, .version = CARRY_VERSION, .len = carry->len};
	int fd, r;

	if (carry->lacks)
		return -ENOMEM;
	header.sum = sum_of(carry->data + sizeof(header), carry->len - sizeof(header));
	memcpy(carry->data, &header, sizeof(header));
	fd = memfd_create("zklockfs-state", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = write_all(fd, carry->data, carry->len);
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

void carry_pass(const struct carry *carry, bool pass)
{
	for (size_t i = 0; i < carry->fd_count; i++)
		(void)fcntl(carry->fds[i], F_SETFD, pass ? 0 : FD_CLOEXEC);
}

/* ---- reading ---- */

static const char *check_header(const unsigned char *data, size_t len)
{
	struct header header;

	if (len < sizeof(header))
		return "the state is cut off";
	memcpy(&header, data, sizeof(header));
	if (header.magic != MAGIC)
		return "that is no state of a zklockfs";
	if (header.version != CARRY_VERSION)
		return "the state is of another version";
	if (header.len != len)
		return "the state is cut off";
	if (header.sum != sum_of(data + sizeof(header), len - sizeof(header)))
		return "the state is damaged";
	return NULL;
}

void carry_read(struct carry *carry, int fd, bool checks,
                void (*refuse)(const char *why) __attribute__((noreturn)))
{
	void *data = MAP_FAILED;
	const char *why;
	struct stat st;

	*carry = (struct carry){.loads = true, .checks = checks, .refuse = refuse};
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		refuse("there is no state");
	if (st.st_size > 0)
		data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		refuse("the state is empty, or cannot be read");
	carry->data = data;
	carry->len = (size_t)st.st_size;
	carry->at = sizeof(struct header);
	why = check_header(carry->data, carry->len);
	if (why)
		refuse(why);
}

void carry_read_all(const struct carry *carry)
{
	if (carry->loads && carry->at != carry->len)
		carry->refuse("the state goes on behind its end");
}

void carry_end(struct carry *carry)
{
	if (carry->loads && carry->data)
		munmap(carry->data, carry->len);
	if (!carry->loads)
		free(carry->data);
	free(carry->fds);
	*carry = (struct carry){0};
}

static const unsigned char *get_bytes(struct carry *carry, size_t len)
{
	const unsigned char *bytes = carry->data + carry->at;

	if (len > carry->len - carry->at)
		carry->refuse("the state ends too early");
	carry->at += len;
	return bytes;
}

/* ---- both ---- */

int64_t carry_number(struct carry *carry, int64_t number, int64_t least, int64_t most)
{
	const unsigned char *bytes;

	if (!carry->loads) {
		append_bytes(carry, &number, sizeof(number));
		return number;
	}
	bytes = get_bytes(carry, sizeof(number));
	memcpy(&number, bytes, sizeof(number));
	if (number < least || number > most)
		carry->refuse("the state has a number that cannot be");
	return number;
}

size_t carry_count(struct carry *carry, size_t count)
{
	size_t left = carry->len - carry->at;

	return (size_t)carry_number(carry, (int64_t)count, 0, (int64_t)(left / sizeof(int64_t)));
}

const void *carry_bytes(struct carry *carry, const void *bytes, size_t *len)
{
	*len = (size_t)carry_number(carry, (int64_t)*len, 0, INT64_MAX);
	if (carry->loads)
		return get_bytes(carry, *len);
	append_bytes(carry, bytes, *len);
	return bytes;
}

static bool is_text(const char *text, size_t size)
{
	return size > 0 && memchr(text, '\0', size) == text + size - 1;
}

const char *carry_text(struct carry *carry, const char *text)
{
	int64_t size =
		carry_number(carry, text ? (int64_t)strlen(text) + 1 : NO_TEXT, NO_TEXT, INT64_MAX);

	if (size == NO_TEXT)
		return NULL;
	if (!carry->loads) {
		append_bytes(carry, text, (size_t)size);
		return text;
	}
	text = (const char *)get_bytes(carry, (size_t)size);
	if (!is_text(text, (size_t)size))
		carry->refuse("the state has a text that is none");
	return text;
}

void carry_copy(struct carry *carry, char *text, size_t size)
{
	const char *read = carry_text(carry, text);

	if (!carry->loads)
		return;
	if (!read || strlen(read) >= size)
		carry->refuse("the state has a text that is too long");
	strcpy(text, read);
}

static void name_fd(struct carry *carry, int fd)
{
	if (carry->fd_count == carry->fd_room) {
		size_t room = 2 * carry->fd_room + 64;
		int *fds = reallocarray(carry->fds, room, sizeof(fds[0]));

		if (!fds) {
			carry_lack(carry, strerror(ENOMEM));
			return;
		}
		carry->fds = fds;
		carry->fd_room = room;
	}
	carry->fds[carry->fd_count++] = fd;
}

int carry_fd(struct carry *carry, int fd)
{
	fd = (int)carry_number(carry, fd, -1, INT32_MAX);
	if (!carry->loads) {
		if (fd >= 0)
			name_fd(carry, fd);
		return fd;
	}
	if (carry->checks)
		return -1;
	if (fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		carry->refuse("the state has a descriptor that is not open");
	return fd;
}

void carry_mark(struct carry *carry, unsigned number)
{
	int64_t mark = MARK | number;

	(void)carry_number(carry, mark, mark, mark);
}
