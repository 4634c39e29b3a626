/* SPDX-License-Identifier: MIT
 *
 * test_mount.c - see test_mount.h.
 */
#include "test_mount.h"

#include "trace.h"

#include <stdio.h>
#include <string.h>

/* From an event until the loop has woken up. */
#define WAKE_US 50

static int64_t clock_us(void *ctx)
{
	return ((struct mount *)ctx)->agenda->now_us;
}

static int64_t wall_ms(void *ctx)
{
	return world_wall_ms(((struct mount *)ctx)->wire.world);
}

static void random_bytes(void *ctx, void *ret_bytes, size_t len)
{
	struct mount *mount = ctx;
	unsigned char *bytes = ret_bytes;

	for (size_t i = 0; i < len; i++)
		bytes[i] = (unsigned char)rng_next(&mount->rng);
}

static void report(void *ctx, enum lc_level level, const char *text)
{
	struct mount *mount = ctx;

	trace("m%d: says (%d) %s", mount->index, level, text);
}

static void turn(void *ctx, uint64_t serial);

static void schedule(struct mount *mount, int64_t when_us)
{
	if (when_us < mount->paused_until_us)
		when_us = mount->paused_until_us;
	if (mount->turn_at_us <= when_us)
		return;
	mount->turn_at_us = when_us;
	agenda_at(mount->agenda, when_us, turn, mount, ++mount->turn_serial);
}

void mount_wake(struct mount *mount)
{
	schedule(mount, mount->agenda->now_us + WAKE_US);
}

static void wake(void *ctx)
{
	mount_wake(ctx);
}

static void plan_turn(struct mount *mount)
{
	struct pollfd pollfd;
	int64_t wait_us = lc_prepare(mount->lc, &pollfd);

	mount->turn_at_us = INT64_MAX;
	if (wait_us < INT64_MAX / 4)
		schedule(mount, mount->agenda->now_us + wait_us + WAKE_US);
}

static void turn(void *ctx, uint64_t serial)
{
	struct mount *mount = ctx;

	if (serial != mount->turn_serial || !mount->lc)
		return;
	mount->turn_at_us = INT64_MAX;
	lc_process(mount->lc, POLLIN);
	plan_turn(mount);
}

void mount_init(struct mount *mount, struct bench *bench, struct world *world, int index,
                uint64_t seed)
{
	*mount = (struct mount){.bench = bench,
	                        .agenda = world->agenda,
	                        .index = index,
	                        .turn_at_us = INT64_MAX,
	                        .rng = {seed + 77 + (uint64_t)index}};
	wire_init(&mount->wire, world, (struct rng){seed + 177 + (uint64_t)index}, clock_us, wake,
	          mount);
}

int mount_start(struct mount *mount, int64_t loss_lead_us)
{
	char host[16];
	struct lc_config config = {
		.root = mount->root ? mount->root : ROOT,
		.make_root = true,
		.host = host,
		.session_timeout_us = TIMEOUT_US,
		.tick_time_us = 2 * SECOND,
		.loss_lead_us = loss_lead_us,
		.clock_us = clock_us,
		.wall_ms = wall_ms,
		.random = random_bytes,
		.report = report,
		.ctx = mount,
		.without = {.uid = 5, .gid = 6, .mode = 0755, .door_mode = 0600},
	};
	int r;

	snprintf(host, sizeof(host), "m%d", mount->index);
	r = lc_create(&config, &mount->wire.ensemble, &mount->lc);
	if (r < 0)
		mount->lc = NULL;
	else
		plan_turn(mount);
	return r;
}

void mount_pause(struct mount *mount, int64_t duration_us)
{
	mount->paused_until_us = mount->agenda->now_us + duration_us;
	mount->turn_at_us = INT64_MAX;
	mount->turn_serial++;
	if (mount->lc)
		schedule(mount, mount->paused_until_us);
}
