/* SPDX-License-Identifier: MIT */
#include "behind.h"

#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static struct stage stage;
static struct host *host;

static void complain(struct stage *at, const char *text)
{
	(void)at;
	fprintf(stderr, "%s\n", text);
	abort();
}

struct lc *behind_begin(const char *(*reserved)(const char *name))
{
	static const struct stage_hooks hooks = {.complain = complain};
	struct lc_config config;

	stage_init(&stage, 100 * SECOND, 1, &hooks, NULL);
	host = stage_host(&stage, 77);
	config = host_config(host, ROOT);
	config.session_timeout_us = TIMEOUT_US;
	config.tick_time_us = 2 * SECOND;
	config.without = (struct lc_attributes){.mode = 0755, .lock_file_mode = 0666};
	config.reserved = reserved;
	if (host_start(host, &config) < 0)
		abort();
	stage_run(&stage, 5 * SECOND);
	return host->lc;
}

int64_t behind_clock_us(void)
{
	return host_clock_us(host);
}

void behind_run(int64_t us)
{
	host_wake(host);
	stage_run(&stage, us);
}

void behind_end(void)
{
	stage_stop(host, true);
	stage_finish(&stage);
}

int behind_connect(int *ret_daemons)
{
	int fds[2], bytes = 8 << 20;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		abort();
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
	*ret_daemons = fds[0];
	return fds[1];
}

ssize_t behind_receive(int fd, void *bytes, size_t size)
{
	return recv(fd, bytes, size, MSG_DONTWAIT);
}
