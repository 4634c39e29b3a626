/* SPDX-License-Identifier: MIT
 *
 * writing_names.c - preloaded into a daemon, it is a name service that uses writev(2). It says in
 * the file WRITING_NAMES whether it could, under all numbers that a descriptor may have.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#define NUMBERS 64

static int could_write(void)
{
	char zeros[64] = {0};
	const struct iovec iov = {.iov_base = zeros, .iov_len = sizeof(zeros)};
	int fds[NUMBERS], could = 1;

	for (int i = 0; i < NUMBERS; i++) {
		fds[i] = open("/dev/null", O_WRONLY);
		could &= writev(fds[i], &iov, 1) == (ssize_t)sizeof(zeros);
	}
	for (int i = 0; i < NUMBERS; i++)
		close(fds[i]);
	return could;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret_list)
{
	int (*look_up)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
	int said = open(getenv("WRITING_NAMES"), O_WRONLY | O_APPEND | O_CREAT, 0600);
	int could;

	*(void **)&look_up = dlsym(RTLD_NEXT, "getaddrinfo");
	could = could_write();
	dprintf(said, could ? "1" : "0");
	close(said);
	return look_up(name, service, hints, ret_list);
}
