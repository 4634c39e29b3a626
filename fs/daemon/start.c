/* SPDX-License-Identifier: MIT
 *
 * start.c - see start.h: the engine as the daemon makes it, with its clocks, its log, what it
 * tells, and the port to ZooKeeper; and the loop until there is a session.
 */
#include "daemon/start.h"

#include "guard/guardian.h"
#include "hold/hold.h"
#include "host/clock.h"
#include "host/log.h"
#include "port/ensemble_zookeeper.h"
#include "store/store.h"
#include "tree/fixed.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* ---- the engine ---- */

/* lc_config.rest_us */
#define REST_US 120000000

static int64_t clock_us(void *ctx)
{
	(void)ctx;
	return clock_now_us();
}

static int64_t wall_ms(void *ctx)
{
	(void)ctx;
	return clock_read_ns(CLOCK_REALTIME) / 1000000;
}

static void random_bytes(void *ctx, void *ret_bytes, size_t len)
{
	static unsigned char store[256]; /* getrandom(2) of so many never fails */
	static size_t left;

	(void)ctx;
	assert(len <= sizeof(store));
	if (left < len) {
		if (getrandom(store, sizeof(store), 0) != sizeof(store))
			abort();
		left = sizeof(store);
	}
	left -= len;
	memcpy(ret_bytes, store + left, len);
}

static void log_report(void *ctx, enum lc_level level, const char *text)
{
	(void)ctx;
	log_line(level, "%s", text);
}

static bool look_for_pause(void *ctx)
{
	const struct loop *loop = ctx;

	return pauses_look(&loop->front->pauses);
}

static void set_deadline(void *ctx, int64_t deadline_us)
{
	const struct loop *loop = ctx;

	store_head(loop->front->records.store)->deadline_us = deadline_us;
	guardian_deadline(loop->front->guardian, deadline_us);
}

int engine_port(const struct options *options, const char *addresses,
                struct ensemble **ret_ensemble)
{
	return ensemble_zookeeper_create(addresses, options->credentials, clock_us, NULL,
	                                 ret_ensemble);
}

static int servers_moved(void *ctx, const char *addresses)
{
	return ensemble_zookeeper_move(ctx, addresses);
}

struct lc_config engine_config(const struct options *options, struct loop *loop)
{
	return (struct lc_config){
		.root = options->root,
		.make_root = options->make_root,
		.host = options->host,
		.clients = options->clients,
		.session_timeout_us = options->session_timeout_us,
		.tick_time_us = options->tick_time_us,
		.loss_lead_us = guardian_lead_us(options->on_lost),
		.reuse = options->reuse,
		.rest_us = REST_US,
		.uid = loop->front->uid,
		.without = loop->front->without,
		.reserved = fixed_reserved,
		.clock_us = clock_us,
		.wall_ms = wall_ms,
		.random = random_bytes,
		.report = log_report,
		.disrupted = look_for_pause,
		.evicted = hold_evicted,
		.deadline = set_deadline,
		.ctx = loop,
		.records = &loop->front->records,
	};
}

int engine_begin(const struct options *options, struct loop *loop, struct codec *codec)
{
	struct lc_config config = engine_config(options, loop);
	int r;

	if (codec && codec->checks)
		return lc_adopt(&config, NULL, codec, &loop->front->lc);
	r = engine_port(options, loop->servers.addresses, &loop->ensemble);
	loop->servers.moved = servers_moved;
	loop->servers.ctx = loop->ensemble;
	if (r == 0)
		r = codec ? lc_adopt(&config, loop->ensemble, codec, &loop->front->lc)
		          : lc_create(&config, loop->ensemble, &loop->front->lc);
	loop->front->holds->audit_log.lc = loop->front->lc;
	if (r < 0)
		log_line(LC_ERROR, r == -EINVAL ? "'%s' cannot be a root" : "cannot start at '%s'",
		         options->root);
	return r;
}

/* ---- a session ---- */

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
		contact_log_error(options, &loop->servers, r);
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
