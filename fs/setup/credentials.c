/* SPDX-License-Identifier: MIT */
#include "setup/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE_BYTES 4096 /* at least a line, its newline, and one byte that must not be there */

static const char *check_file(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "it is not a regular file";
	if (st.st_mode & (S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH))
		return "group or others may read or write it; chmod 600 it";
	return NULL;
}

/* Reads the file into the page, through no other buffer. NULL: all of it is there. */
static const char *fill(int fd, char *page, size_t *ret_len)
{
	size_t len = 0;
	ssize_t n;

	do {
		n = read(fd, page + len, PAGE_BYTES - 1 - len);
		if (n < 0 && errno != EINTR)
			return strerror(errno);
		len += n > 0 ? (size_t)n : 0;
	} while (n != 0 && len < PAGE_BYTES - 1);
	*ret_len = len;
	return NULL;
}

/* Checks for one line `user:password`, and takes its newline off. */
static const char *check_line(char *line, size_t len)
{
	const char *colon;

	if (len > 0 && line[len - 1] == '\n')
		line[--len] = '\0';
	if (len == 0)
		return "it is empty";
	if (len > CREDENTIALS_MAX)
		return "its line is too long";
	if (line[len - 1] == '\r')
		return "its line ends as those of Windows do, with CR LF";
	if (line[0] == ' ' || line[len - 1] == ' ')
		return "its line begins or ends with a blank";
	if (len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0)
		return "it begins with a byte order mark";
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			return line[i] == '\n' ? "it has more than one line"
			                       : "it has control characters";
	colon = strchr(line, ':');
	if (!colon || colon == line || !colon[1])
		return "its line is not user:password";
	return NULL;
}

char *credentials_read(const char *path, const char **ret_why)
{
	/* A FIFO is refused, not waited for. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char *page = MAP_FAILED;
	const char *why;
	size_t len = 0;

	if (fd < 0) {
		*ret_why = strerror(errno);
		return NULL;
	}
	why = check_file(fd);
	if (!why) {
		page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		            -1, 0);
		why = page == MAP_FAILED ? strerror(ENOMEM) : NULL;
	}
	if (!why) {
		/* The page stays out of the swap, where the limits allow that. */
		(void)mlock(page, PAGE_BYTES);
		(void)madvise(page, PAGE_BYTES, MADV_DONTDUMP);
		why = fill(fd, page, &len);
	}
	if (!why)
		why = check_line(page, len);
	close(fd);
	if (!why)
		return page;
	if (page != MAP_FAILED)
		credentials_wipe(page);
	*ret_why = why;
	return NULL;
}

void credentials_confine(char *credentials)
{
	if (!credentials)
		return;
	(void)madvise(credentials, PAGE_BYTES, MADV_WIPEONFORK);
	/* The ZooKeeper client keeps a copy, to show it to the next server. */
	(void)prctl(PR_SET_DUMPABLE, 0);
}

void credentials_wipe(char *credentials)
{
	if (!credentials)
		return;
	explicit_bzero(credentials, PAGE_BYTES);
	munmap(credentials, PAGE_BYTES);
}
