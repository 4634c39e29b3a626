/* SPDX-License-Identifier: MIT
 *
 * test_mount.h - an engine on the world, with the plainest loop around it, for tests that say
 * themselves what happens. The simulation has a mount of its own, with clocks that drift.
 */
#ifndef WORLD_TEST_MOUNT_H
#define WORLD_TEST_MOUNT_H

#include "lockcore.h"
#include "wire.h"
#include "world.h"

#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)
#define ROOT "/locks"
#define TIMEOUT_US (10 * SECOND)

struct bench; /* the test's own */

struct mount {
	struct bench *bench;
	struct agenda *agenda;
	int index;
	struct lc *lc;    /* NULL: not started yet, or destroyed */
	const char *root; /* NULL: ROOT */
	struct wire wire;
	struct rng rng;
	int64_t turn_at_us, paused_until_us;
	uint64_t turn_serial;
};

/* Called m0, m1... The agenda is the world's. */
void mount_init(struct mount *mount, struct bench *bench, struct world *world, int index,
                uint64_t seed);
/* As lc_create(). */
int mount_start(struct mount *mount, int64_t loss_lead_us);
/* Something was asked of the engine. */
void mount_wake(struct mount *mount);
/* SIGSTOP, and SIGCONT after that time. */
void mount_pause(struct mount *mount, int64_t duration_us);

#endif
