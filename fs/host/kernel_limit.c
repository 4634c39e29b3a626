/* SPDX-License-Identifier: MIT */
#include "host/kernel_limit.h"

#include "host/who.h"

#include <fcntl.h>
#include <stdlib.h>

/* The kernel looks every 15 s, and takes no limit below that (fs/fuse/req_timeout.c). */
#define STEP_S 15

int64_t kernel_limit_effective(int64_t by_default_s, int64_t max_s)
{
	int64_t limit = by_default_s;

	if (max_s > 0 && (limit == 0 || limit > max_s))
		limit = max_s;
	return limit > 0 && limit < STEP_S ? STEP_S : limit;
}

static int64_t read_limit(const char *path)
{
	char text[32];
	/* A kernel without it has no file. */
	long long limit_s =
		who_read(AT_FDCWD, path, text, sizeof(text)) ? strtoll(text, NULL, 10) : 0;

	return limit_s > 0 ? limit_s : 0;
}

int64_t kernel_limit_read(void)
{
	return kernel_limit_effective(read_limit("/proc/sys/fs/fuse/default_request_timeout"),
	                              read_limit("/proc/sys/fs/fuse/max_request_timeout"));
}

int64_t kernel_limit_wait_us(int64_t limit_s)
{
	int64_t wait = limit_s - STEP_S;

	if (limit_s == 0)
		return INT64_MAX;
	return (wait > limit_s / 2 ? wait : limit_s / 2) * 1000000;
}
