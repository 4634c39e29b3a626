/* SPDX-License-Identifier: MIT
 *
 * host.c - see host.h.
 */
#include "session/base.h" /* first: it sets the options of uthash */

#include "host.h"

#include "trace.h"

#include <stdio.h>

/* From an event until the loop has woken up. */
#define WAKE_US 50

/* ---- the clock ---- */

int64_t host_clock_us(const struct host *host)
{
	int64_t now_us = host->agenda->now_us;

	if (host->still)
		return host->still_clock_us;
	return host->clock_base_us + now_us + now_us / 1000000 * host->drift_ppm +
	       now_us % 1000000 * host->drift_ppm / 1000000;
}

void host_move_clock(struct host *host, int64_t clock_us)
{
	host->clock_base_us += clock_us - host_clock_us(host);
}

void host_slew(struct host *host, int64_t drift_ppm)
{
	int64_t clock_us = host_clock_us(host);

	host->drift_ppm = drift_ppm;
	if (!host->still)
		host_move_clock(host, clock_us);
}

int64_t host_running_us(const struct host *host)
{
	int64_t running = host->agenda->now_us - host->paused_total_us;

	return host->paused ? running - (host->agenda->now_us - host->paused_since_us) : running;
}

/* ---- functions that the engine calls ---- */

static int64_t read_clock(void *ctx)
{
	return host_clock_us(ctx);
}

static int64_t read_wall_clock(void *ctx)
{
	return world_wall_ms(((struct host *)ctx)->world);
}

static void random_bytes(void *ctx, void *ret_bytes, size_t len)
{
	struct host *host = ctx;
	unsigned char *bytes = ret_bytes;

	for (size_t i = 0; i < len; i++)
		bytes[i] = (unsigned char)rng_next(&host->rng);
}

static void report(void *ctx, enum lc_level level, const char *text)
{
	trace("%s: says (%d) %s", ((struct host *)ctx)->name, level, text);
}

struct lc_config host_config(struct host *host, const char *root)
{
	return (struct lc_config){
		.root = root,
		.make_root = true,
		.host = host->name,
		.clock_us = read_clock,
		.wall_ms = read_wall_clock,
		.random = random_bytes,
		.report = report,
		.ctx = host,
		.records = &host->notes.records,
	};
}

/* ---- the loop ---- */

static void turn(void *ctx, uint64_t serial);

static int64_t some_us(struct host *host, uint64_t most_us)
{
	return host->jitter ? (int64_t)rng_below(&host->rng, most_us) : WAKE_US;
}

static void schedule(struct host *host, int64_t when_us)
{
	if (host->turn_at_us <= when_us)
		return;
	host->turn_at_us = when_us;
	agenda_at(host->agenda, when_us, turn, host, ++host->turn_serial);
}

static void wake_up(struct host *host)
{
	schedule(host, host->agenda->now_us + some_us(host, 150));
}

bool host_keeps(const struct host *host)
{
	return host->wire.kept;
}

static void end_turn(struct host *host)
{
	if (host->hooks && host->hooks->ends)
		host->hooks->ends(host);
	else
		lc_send(host->lc);
}

static void end_short_turn(void *ctx, uint64_t arg)
{
	struct host *host = ctx;

	(void)arg;
	if (host_keeps(host))
		end_turn(host);
}

/* Requests that wait are sent at once, because the test counts the lease from the moment when a
 * request is sent, and the engine from the moment when it is made. */
void host_wake(struct host *host)
{
	if (host_keeps(host))
		agenda_in(host->agenda, 0, end_short_turn, host, 0);
	wake_up(host);
}

static void plan_turn(struct host *host)
{
	struct pollfd pollfd;
	int64_t wait_us = lc_prepare(host->lc, &pollfd);

	host->turn_at_us = INT64_MAX;
	if (wait_us < INT64_MAX / 4)
		schedule(host, host->agenda->now_us + wait_us +
		                       wait_us / 1000000 * -host->drift_ppm + 1 +
		                       some_us(host, 100));
}

static void turn(void *ctx, uint64_t serial)
{
	struct host *host = ctx;

	if (serial != host->turn_serial || !host->lc)
		return;
	host->turn_at_us = INT64_MAX;
	if (host->paused)
		return;
	if (host->hooks && host->hooks->turns)
		host->hooks->turns(host);
	lc_process(host->lc, POLLIN);
	end_turn(host);
	plan_turn(host);
}

/* ---- pauses ---- */

static void resume(void *ctx, uint64_t arg)
{
	struct host *host = ctx;

	(void)arg;
	if (host->still) {
		host->still = false;
		host_move_clock(host, host->still_clock_us);
		if (host->hooks && host->hooks->stood_still)
			host->hooks->stood_still(host);
	}
	host->paused = false;
	host->paused_total_us += host->agenda->now_us - host->paused_since_us;
	trace("%s: goes on", host->name);
	host_wake(host);
}

void host_pause(struct host *host, int64_t duration_us)
{
	if (host->paused)
		return;
	host->paused = true;
	host->paused_since_us = host->agenda->now_us;
	agenda_in(host->agenda, duration_us, resume, host, 0);
}

void host_still(struct host *host, int64_t duration_us)
{
	if (host->paused)
		return;
	host->still_clock_us = host_clock_us(host);
	host->still = true;
	host_pause(host, duration_us);
}

/* ---- beginning and end ---- */

static void wake(void *ctx)
{
	wake_up(ctx);
}

static void wire_up(struct host *host)
{
	int64_t dark_until_us = host->wire.dark_until_us;

	wire_init(&host->wire, host->world, rng_fork(&host->rng), read_clock, wake, host);
	host->wire.dark_until_us = dark_until_us;
	if (!host->hooks)
		return;
	host->wire.freeze = host->hooks->freeze;
	host->wire.renews = host->hooks->renews;
	host->wire.joined = host->hooks->joined;
	host->wire.wrote = host->hooks->wrote;
	host->wire.greets = host->hooks->greets;
}

void host_init(struct host *host, struct world *world, int index, struct rng rng,
               const struct host_hooks *hooks, void *owner)
{
	*host = (struct host){.owner = owner,
	                      .hooks = hooks,
	                      .world = world,
	                      .agenda = world->agenda,
	                      .index = index,
	                      .rng = rng,
	                      .turn_at_us = INT64_MAX};
	snprintf(host->name, sizeof(host->name), "m%d", index);
	notes_begin(&host->notes);
	wire_up(host);
}

static int started(struct host *host, int r)
{
	if (r == 0)
		plan_turn(host);
	else
		host->lc = NULL;
	return r;
}

int host_start(struct host *host, const struct lc_config *config)
{
	notes_finish(&host->notes); /* of the engine before */
	notes_begin(&host->notes);
	return started(host, lc_create(config, &host->wire.ensemble, &host->lc));
}

int host_adopt(struct host *host, const struct lc_config *config)
{
	struct codec codec = {.loads = true};
	int r;

	notes_discard(&host->notes);
	host->notes.records.last = 0; /* each process has records of its own */
	host->notes.records.as_recorded = true;
	r = started(host, lc_adopt(config, &host->wire.ensemble, &codec, &host->lc));
	host->notes.records.as_recorded = false;
	return r;
}

void host_stop(struct host *host, bool farewell)
{
	lc_destroy(host->lc, farewell);
	host->lc = NULL;
	host->turn_serial++;
	host->turn_at_us = INT64_MAX;
	wire_finish(&host->wire);
	wire_up(host);
}

void host_finish(struct host *host)
{
	if (host->lc)
		lc_destroy(host->lc, true);
	host->lc = NULL;
	host->turn_serial++;
	wire_finish(&host->wire);
	notes_finish(&host->notes);
}
