/* SPDX-License-Identifier: MIT */
#include "daemon/start.h"

#include "host/log.h"
#include "setup/mount_error.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

static int await_addresses(struct loop *loop, int64_t retry_until_us, int64_t until_us)
{
	for (;;) {
		int64_t now = loop->front->clock_us();

		if (loop->terms > 0)
			return -EINTR;
		if (loop->servers.addresses)
			return 0;
		if (loop->servers.failures > 0 && now >= retry_until_us)
			return -EADDRNOTAVAIL;
		if (now >= until_us)
			return -ETIMEDOUT;
		loop_turn(loop, until_us);
	}
}

int start_find(struct loop *loop, int64_t until_us)
{
	const struct options *options = loop->options;
	int64_t retry_us = options->check ? 0 : options->retry_us;
	int r = await_addresses(loop, loop->front->clock_us() + retry_us, until_us);

	if (r < 0)
		mount_error_log(options, &loop->servers, r);
	return r;
}

/* Tells a person at a terminal why the start takes long. True: it was said. */
static bool say_waiting(const struct loop *loop, int64_t until_us)
{
	if (!loop->servers.tried || !isatty(STDERR_FILENO))
		return false;
	log_line(LC_NOTICE, "no session yet, waiting %" PRId64 " s longer: %s",
	         (until_us - loop->front->clock_us()) / 1000000 + 1, loop->servers.tried);
	return true;
}

int start_connect(struct loop *loop, int64_t until_us)
{
	struct lc_status status;
	bool said = false;

	for (;;) {
		lc_status(loop->front->lc, &status);
		if (loop->terms > 0)
			return -EINTR;
		if (status.state == LC_READY)
			return 0;
		if (status.state == LC_UNUSABLE)
			return status.why;
		if (loop->front->clock_us() >= until_us)
			return -ETIMEDOUT;
		said = said || say_waiting(loop, until_us);
		loop_turn(loop, until_us);
	}
}

int start_learn(struct loop *loop, int64_t until_us)
{
	struct lc_status status;

	for (;;) {
		lc_status(loop->front->lc, &status);
		if (loop->terms > 0)
			return -EINTR;
		if (status.state == LC_UNUSABLE)
			return status.why;
		if (settings_has_heard(&loop->settings, status.server) ||
		    loop->front->clock_us() >= until_us)
			return 0;
		loop_turn(loop, until_us);
	}
}

void start_try(struct loop *loop)
{
	/* The loop runs without a limit, since each question has its own (probe.h). */
	servers_try(&loop->servers);
	while (!loop->servers.tried && loop->servers.prober.fd >= 0 && loop->terms == 0)
		loop_turn(loop, INT64_MAX);
}
