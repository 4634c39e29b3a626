/* SPDX-License-Identifier: MIT
 *
 * plan.c - the choices of a seed. Most profiles leave many faults out, so that
 * limits which hold only without faults are tested, too.
 */
#include "sim.h"

#include "pure/lease.h"

#include <string.h>

struct profile {
	const char *name;
	unsigned share;
	int64_t gap_us;
	unsigned weight[FAULT_KINDS];
};

#define WEIGHTS(...)        \
	{                   \
		__VA_ARGS__ \
	}

static const struct profile profiles[] = {
	{"calm", 13, 0, {0}},
	{"operators", 8, 3000000,
         WEIGHTS([FAULT_EVICT] = 6, [FAULT_REMAKE] = 1, [FAULT_KILL_SESSION] = 1)},
	{"cuts", 12, 3000000,
         WEIGHTS([FAULT_CUT] = 3, [FAULT_CUT_BEFORE] = 2, [FAULT_CUT_AFTER] = 4)},
	{"stalls", 15, 6000000,
         WEIGHTS([FAULT_STALL_UP] = 2, [FAULT_STALL_DOWN] = 2, [FAULT_STALL_BOTH] = 1,
                 [FAULT_CUT] = 1)},
	{"servers", 15, 8000000,
         WEIGHTS([FAULT_HANG] = 3, [FAULT_CRASH] = 2, [FAULT_ISOLATE] = 3, [FAULT_LINK] = 4,
                 [FAULT_ELECT] = 2)},
	{"pauses", 10, 5000000, WEIGHTS([FAULT_PAUSE] = 5, [FAULT_CUT] = 1, [FAULT_HANG] = 1)},
	{"refusals", 4, 5000000, WEIGHTS([FAULT_REFUSE] = 3, [FAULT_CUT] = 1)},
	{"leases", 10, 9000000,
         WEIGHTS([FAULT_ISOLATE] = 4, [FAULT_STALL_UP] = 2, [FAULT_STALL_DOWN] = 2,
                 [FAULT_STALL_BOTH] = 2, [FAULT_PAUSE] = 3, [FAULT_LINK] = 2,
                 [FAULT_GREETING] = 6)},
	{"storm", 13, 2500000,
         WEIGHTS([FAULT_CUT] = 2, [FAULT_CUT_BEFORE] = 2, [FAULT_CUT_AFTER] = 3,
                 [FAULT_STALL_UP] = 2, [FAULT_STALL_DOWN] = 2, [FAULT_STALL_BOTH] = 1,
                 [FAULT_HANG] = 2, [FAULT_CRASH] = 1, [FAULT_ISOLATE] = 2, [FAULT_LINK] = 2,
                 [FAULT_ELECT] = 1, [FAULT_PAUSE] = 2, [FAULT_REFUSE] = 1, [FAULT_CRASH_MOUNT] = 1,
                 [FAULT_EVICT] = 2, [FAULT_REMAKE] = 1, [FAULT_KILL_SESSION] = 1)},
};

static const struct profile *pick_profile(struct rng *rng)
{
	unsigned dice = (unsigned)rng_below(rng, 100);
	const struct profile *profile = profiles;

	for (; dice >= profile->share; profile++)
		dice -= profile->share;
	return profile;
}

/* The least limit that a server may have: rule 45 counts with it; and no mount refuses it. */
static int64_t least_limit(const struct plan *plan)
{
	int64_t least_us = lease_smallest_timeout(plan->tick_us, plan->loss_lead_us);

	return least_us > LEASE_FLOOR_US ? least_us : LEASE_FLOOR_US;
}

/* Renewals whose answers are lost with the network, and such as are carried out late. */
static void make_renewals(struct plan *plan, struct rng *rng)
{
	struct world_config *world = &plan->world;
	int64_t asked_us;

	plan->profile = "renewals";
	if (plan->timeout_us < 8000000) {
		plan->timeout_us = 15000000;
		world->tick_us = plan->tick_us = rng_chance(rng, 500) ? 2000000 : 500000;
	}
	asked_us = plan->timeout_us;
	plan->long_holds = 900;
	plan->hold_us = 2 * plan->timeout_us;
	plan->jump_us = 0;
	plan->fault_gap_us = plan->timeout_us / 2;
	plan->chaos_us = 8 * plan->timeout_us;
	world->refuse_session_ppm = 0;
	world->servers = rng_chance(rng, 800) ? 3 : world->servers;
	world->limit_least_us = least_limit(plan);
	if (world->limit_least_us > asked_us)
		world->limit_least_us = asked_us;
	world->limit_most_us = asked_us;
	for (int i = 0; i < WORLD_SERVERS_MAX; i++)
		world->timeout_max_us[i] = rng_chance(rng, 500) ? asked_us : world->limit_least_us;
	if (rng_chance(rng, 300))
		world->timeout_min_us[rng_below(rng, WORLD_SERVERS_MAX)] =
			rng_between(rng, asked_us, 2 * asked_us);
	for (int i = 0; i < FAULT_KINDS; i++)
		plan->weight[i] = 0;
	plan->weight[FAULT_DARK] = plan->weight[FAULT_LATE] = 4;
	plan->weight[FAULT_CRASH] = 2;
	plan->weight[FAULT_CUT] = plan->weight[FAULT_HANG] = plan->weight[FAULT_ELECT] = 1;
}

/* Servers that are silent for 8 s cost no lock, where the session lasts for 15 s. They are so once:
 * a renewal leaves when little of the lease is left, and counts for the rest of the session. */
static void make_silent(struct plan *plan)
{
	struct world_config *world = &plan->world;

	plan->profile = "silent";
	plan->lossless = true;
	plan->timeout_us = 15000000;
	world->tick_us = plan->tick_us = 2000000;
	plan->hold_us = 2 * plan->timeout_us;
	plan->long_holds = 900;
	plan->loss_lead_us = plan->jump_us = 0;
	plan->fault_gap_us = 2 * plan->timeout_us;
	plan->chaos_us = 3 * plan->timeout_us;
	for (int i = 0; i < WORLD_SERVERS_MAX; i++)
		world->timeout_max_us[i] = 0;
	world->snap_per_mille = world->lose_touch_ppm = world->refuse_session_ppm = 0;
	for (int i = 0; i < FAULT_KINDS; i++)
		plan->weight[i] = i == FAULT_SILENCE;
}

/* Creates that a server does when they were given up long ago. */
static void make_backlogs(struct plan *plan)
{
	plan->profile = "backlogs";
	plan->jump_us = 0;
	plan->fault_gap_us = plan->timeout_us / 2;
	plan->chaos_us = 8 * plan->timeout_us;
	plan->world.refuse_session_ppm = 0;
	plan->world.servers = 3;
	for (int i = 0; i < FAULT_KINDS; i++)
		plan->weight[i] = 0;
	plan->weight[FAULT_BACKLOG] = 6;
	plan->weight[FAULT_CUT] = plan->weight[FAULT_HANG] = 1;
}

/* Mounts that nobody uses for a while, again and again: for so long that their leases end. */
static void make_rests(struct plan *plan, struct rng *rng)
{
	plan->profile = "rests";
	plan->lossless = rng_chance(rng, 300);
	plan->programs = (int)rng_between(rng, 1, 2);
	plan->outsiders = plan->lossless ? 0 : plan->outsiders;
	plan->think_us = 5 * plan->timeout_us;
	plan->hold_us = rng_chance(rng, 500) ? plan->timeout_us : 100000;
	plan->chaos_us = 15 * plan->timeout_us;
	plan->fault_gap_us = plan->lossless ? 0 : plan->timeout_us / 2;
	plan->world.refuse_session_ppm = 0;
	if (plan->lossless)
		plan->jump_us = plan->world.snap_per_mille = plan->world.lose_touch_ppm = 0;
	for (int i = 0; i < WORLD_SERVERS_MAX && plan->lossless; i++)
		plan->world.timeout_max_us[i] = 0;
	for (int i = 0; i < FAULT_KINDS; i++)
		plan->weight[i] = 0;
	if (plan->lossless)
		return;
	plan->weight[FAULT_EVICT] = 3;
	plan->weight[FAULT_CUT] = plan->weight[FAULT_HANG] = plan->weight[FAULT_CRASH] =
		plan->weight[FAULT_ELECT] = plan->weight[FAULT_PAUSE] =
			plan->weight[FAULT_KILL_SESSION] = plan->weight[FAULT_SUSPECT] = 1;
}

/* Rare worlds, with random numbers of their own, so that all other seeds stay the same. */
static void make_rare(struct plan *plan, uint64_t seed)
{
	struct rng rng = {seed * 0x9e3779b97f4a7c15u + 5};
	unsigned dice = (unsigned)rng_below(&rng, 1000);

	if (plan->near_overflow)
		plan->profile = "overflow";
	if (plan->weight[FAULT_PAUSE] && rng_chance(&rng, 700))
		plan->jump_us = plan->timeout_us;
	if (rng_chance(&rng, plan->jump_us ? 600 : 100)) {
		plan->loss_lead_us = rng_chance(&rng, 500) ? 800000 : 2500000;
		if (!lease_possible(plan->timeout_us * 9 / 10, plan->tick_us, plan->loss_lead_us))
			plan->loss_lead_us = 0;
	}
	if (dice < 30) {
		plan->profile = "namesakes";
		plan->namesakes = true;
		plan->outsiders = 4;
	} else if (dice < 50) {
		plan->profile = "hung";
		plan->lossless = true;
		plan->timeout_us = 8000000;
		plan->world.tick_us = plan->tick_us = 2000000;
		plan->hold_us = 2 * plan->timeout_us;
		plan->long_holds = 900;
		plan->loss_lead_us = plan->jump_us = 0;
		plan->fault_gap_us = 3 * plan->timeout_us;
		plan->world.servers = 3;
		plan->world.timeout_max_us[0] = plan->world.timeout_max_us[1] =
			plan->world.timeout_max_us[2] = 0;
		plan->world.snap_per_mille = plan->world.lose_touch_ppm =
			plan->world.refuse_session_ppm = 0;
		for (int i = 0; i < FAULT_KINDS; i++)
			plan->weight[i] = i == FAULT_HANG;
	} else if (dice < 62) {
		/* A long queue that moves on quickly, while its entries are deleted. */
		plan->profile = "evictions";
		plan->mounts = 1;
		plan->evict_waiters = true;
		plan->locks = 1;
		plan->programs = 30;
		plan->outsiders = 0;
		plan->chaos_us = 3000000;
		plan->timeout_us = 4000000;
		plan->world.tick_us = plan->tick_us = 500000;
		plan->world.timeout_max_us[0] = plan->world.timeout_max_us[1] =
			plan->world.timeout_max_us[2] = 0;
		plan->think_us = 100000;
		plan->hold_us = 1000000;
		plan->long_holds = 0;
		plan->loss_lead_us = plan->jump_us = 0;
		plan->fault_gap_us = 200000;
		plan->world.delay_max_us = plan->world.commit_max_us = 5000;
		plan->world.snap_per_mille = plan->world.lose_touch_ppm =
			plan->world.refuse_session_ppm = 0;
		for (int i = 0; i < FAULT_KINDS; i++)
			plan->weight[i] = i == FAULT_EVICT;
	} else if (dice >= 900 && dice < 910) {
		/* Many takers on one or two locks, which they hold for a short time. */
		plan->profile = "crowd";
		plan->mounts = plan->mounts > 2 ? 2 : plan->mounts;
		plan->locks = 1 + plan->locks / LOCKS_MAX;
		plan->programs = 12;
		plan->chaos_us = 2000000;
		plan->think_us = 200000;
		plan->hold_us = 100000;
		plan->world.delay_max_us = plan->world.commit_max_us = 3000;
	} else if (dice >= 910 && dice < 916) {
		/* Entries, locks, sessions and connections vanish, while takers come and go
		 * quickly. */
		plan->profile = "havoc";
		plan->mounts = plan->mounts > 2 ? 2 : plan->mounts;
		plan->locks = plan->locks > 2 ? 2 : plan->locks;
		plan->programs = (int)rng_between(&rng, 4, 16);
		plan->chaos_us = 2000000;
		plan->timeout_us = 4000000;
		plan->world.tick_us = plan->tick_us = 500000;
		plan->world.timeout_max_us[0] = plan->world.timeout_max_us[1] =
			plan->world.timeout_max_us[2] = 0;
		plan->think_us = 100000;
		plan->hold_us = rng_chance(&rng, 500) ? 300000 : 30000;
		plan->long_holds = 0;
		plan->loss_lead_us = plan->jump_us = 0;
		plan->fault_gap_us = rng_chance(&rng, 500) ? 200000 : 50000;
		plan->world.delay_max_us = plan->world.commit_max_us =
			rng_chance(&rng, 500) ? 5000 : 20000;
		plan->world.snap_per_mille = plan->world.lose_touch_ppm =
			plan->world.refuse_session_ppm = 0;
		for (int i = 0; i < FAULT_KINDS; i++)
			plan->weight[i] = 0;
		plan->weight[FAULT_EVICT] = 6;
		plan->weight[FAULT_CUT] = plan->weight[FAULT_CUT_BEFORE] =
			(unsigned)rng_below(&rng, 3);
		plan->weight[FAULT_CUT_AFTER] = plan->weight[FAULT_REMAKE] =
			(unsigned)rng_below(&rng, 3);
		plan->weight[FAULT_KILL_SESSION] = plan->weight[FAULT_REFUSE] =
			(unsigned)rng_below(&rng, 2);
	} else if (dice >= 920 && dice < 960) {
		/* Machines are paused, mounts doubt their clocks, and clocks change their rate. */
		plan->profile = "clocks";
		plan->fault_gap_us = 4000000;
		plan->long_holds = 500;
		plan->hold_us = 2 * plan->timeout_us;
		plan->jump_us = rng_chance(&rng, 300) ? plan->timeout_us : 0;
		plan->world.refuse_session_ppm = 0;
		for (int i = 0; i < FAULT_KINDS; i++)
			plan->weight[i] = 0;
		plan->weight[FAULT_STILL] = 4;
		plan->weight[FAULT_SUSPECT] = 3;
		plan->weight[FAULT_SLEW] = plan->weight[FAULT_CUT] = plan->weight[FAULT_HANG] = 1;
	} else if (dice >= 960 && dice < 970) {
		/* Mounts doubt their clocks, as when somebody sets the wall clock; nothing else. */
		plan->profile = "suspicions";
		plan->lossless = true;
		plan->fault_gap_us = 3000000;
		plan->long_holds = 500;
		plan->jump_us = 0;
		plan->world.snap_per_mille = plan->world.lose_touch_ppm =
			plan->world.refuse_session_ppm = 0;
		plan->world.timeout_max_us[0] = plan->world.timeout_max_us[1] =
			plan->world.timeout_max_us[2] = 0;
		for (int i = 0; i < FAULT_KINDS; i++)
			plan->weight[i] = i == FAULT_SUSPECT;
	} else if (dice >= 970) {
		/* Addresses lead to another ensemble for a while. */
		plan->profile = "strays";
		plan->world.refuse_session_ppm = 0;
		plan->fault_gap_us = plan->timeout_us / 2;
		for (int i = 0; i < FAULT_KINDS; i++)
			plan->weight[i] = 0;
		plan->weight[FAULT_STRAY] = 4;
		plan->weight[FAULT_CUT] = plan->weight[FAULT_KILL_SESSION] = 1;
	} else if (dice >= 790 && dice < 820) {
		make_rests(plan, &rng);
	} else if (dice >= 820 && dice < 830) {
		make_silent(plan);
	} else if (dice >= 830 && dice < 840) {
		make_backlogs(plan);
	} else if (dice >= 840 && dice < 880) {
		make_renewals(plan, &rng);
	} else if (dice >= 880 && dice < 900) {
		/* Other clients make entries with the UUIDs of takers, at any place in a queue. */
		plan->profile = "forgers";
		plan->copies = 800;
		plan->outsiders = (int)rng_between(&rng, 2, 6);
		plan->foreign_families = false;
		plan->locks = plan->locks > 2 ? 2 : plan->locks;
		plan->near_overflow |= rng_chance(&rng, 200);
		if (rng_chance(&rng, 500))
			plan->weight[FAULT_EVICT] += 2;
	} else if (dice < 67) {
		plan->profile = "short";
		plan->short_sessions = true;
		plan->loss_lead_us = 0;
		for (int i = 0; i < 3; i++)
			plan->world.timeout_max_us[i] = plan->tick_us * 3 / 2;
	}
}

/* In about half of all seeds all takers are exclusive, and all locks have one slot. */
static void choose_modes(struct plan *plan, uint64_t seed)
{
	static const unsigned shares[] = {100, 300, 500, 800, 950};
	struct rng rng = {seed * 0x9e3779b97f4a7c15u + 11};
	bool crowd = !strcmp(plan->profile, "crowd");

	plan->slots_max = 1;
	if (rng_chance(&rng, 400) || crowd)
		plan->shared = shares[rng_below(&rng, sizeof(shares) / sizeof(shares[0]))];
	if (plan->shared && (rng_chance(&rng, 500) || plan->loss_lead_us))
		plan->upgrades = rng_chance(&rng, 300) || plan->loss_lead_us ? 500 : 50;
	if (rng_chance(&rng, crowd ? 600 : 200) && !plan->evict_waiters)
		plan->slots_max = (unsigned)rng_spread(&rng, 2, 10);
	if (rng_chance(&rng, 350))
		plan->data = 150;
	if (rng_chance(&rng, 250) && !plan->lossless)
		plan->evictions = rng_chance(&rng, 500) ? 20 : 100;
	/* An evictor measures time, and a mount whose clock alone jumps or stands still would
	 * measure a wrong time. */
	if (plan->weight[FAULT_STILL])
		plan->evictions = 0;
	if (plan->evictions)
		plan->jump_us = 0;
	if (rng_chance(&rng, 250))
		plan->curious = 300;
}

static void choose_limits(struct plan *plan, uint64_t seed)
{
	struct rng rng = {seed * 0x9e3779b97f4a7c15u + 23};

	if (rng_chance(&rng, 100) && !plan->lossless)
		plan->limits = 300;
}

/* What servers do with sessions. */
static void choose_servers(struct plan *plan, uint64_t seed)
{
	struct rng rng = {seed * 0x9e3779b97f4a7c15u + 47};
	struct world_config *world = &plan->world;
	int64_t least_us = least_limit(plan);

	/* A process that goes on knows no locks but those of its takers (rule 18), and has perhaps
	 * given up a renewal of the one before (rule 45). */
	if (plan->weight[FAULT_BACKLOG] || plan->weight[FAULT_SILENCE])
		plan->reloads = plan->deaths = 0;
	world->takes_old_mail = true;
	/* By chance a server that stands still is met again and again. */
	world->balanced = rng_chance(&rng, 200) && !plan->lossless;
	if (plan->short_sessions)
		return;
	/* A limit of nine tenths, which was chosen above, is not always allowed. */
	for (int i = 0; i < WORLD_SERVERS_MAX; i++)
		if (world->timeout_max_us[i] &&
		    (world->timeout_max_us[i] < least_us || rng_chance(&rng, 500)))
			world->timeout_max_us[i] = least_us;
}

static void choose_reuse(struct plan *plan, uint64_t seed)
{
	struct rng rng = {seed * 0x9e3779b97f4a7c15u + 41};

	plan->reuse = rng_chance(&rng, 400);
}

static void choose_rest(struct plan *plan, uint64_t seed)
{
	struct rng rng = {seed * 0x9e3779b97f4a7c15u + 53};

	if (rng_chance(&rng, 250) || !strcmp(plan->profile, "rests"))
		plan->rest_us = rng_spread(&rng, 10000, plan->timeout_us);
}

static void lose_nothing(struct plan *plan)
{
	plan->lossless = true;
	plan->evictions = 0;
	plan->outsiders = 0;
	plan->world.snap_per_mille = plan->world.lose_touch_ppm = plan->world.refuse_session_ppm =
		0;
	plan->world.timeout_max_us[0] = plan->world.timeout_max_us[1] =
		plan->world.timeout_max_us[2] = 0;
}

/* In addition to other faults. In most seeds without other faults reloads may cost no lock. */
static void choose_reloads(struct plan *plan, uint64_t seed)
{
	static const unsigned shares[] = {2, 10, 50};
	struct rng rng = {seed * 0x9e3779b97f4a7c15u + 17};

	if (!rng_chance(&rng, 150))
		return;
	plan->reloads = shares[rng_below(&rng, sizeof(shares) / sizeof(shares[0]))];
	if (strcmp(plan->profile, "calm") != 0 || rng_chance(&rng, 300))
		return;
	plan->profile = "reloads";
	lose_nothing(plan);
}

/* The clients that share the locks with the mounts, if there are any. */
static void choose_clients(struct plan *plan, uint64_t seed)
{
	static const char *const clients[] = {"curator-rw", "curator-rw", "curator-rw",
	                                      "kazoo",      "kazoo-rw",   "ruby"};
	struct rng rng = {seed * 0x9e3779b97f4a7c15u + 31};

	plan->clients = "curator";
	if (!plan->outsiders || plan->copies || plan->namesakes || !rng_chance(&rng, 500))
		return;
	plan->clients = clients[rng_below(&rng, sizeof(clients) / sizeof(clients[0]))];
	plan->late_readers = !strcmp(plan->clients, "curator-rw") && !plan->near_overflow;
	if (plan->late_readers)
		plan->profile = "readers";
}

/* As with reloads. */
static void choose_deaths(struct plan *plan, uint64_t seed)
{
	static const unsigned shares[] = {2, 10, 50, 200};
	struct rng rng = {seed * 0x9e3779b97f4a7c15u + 29};

	plan->records = seed % 4 == 0;
	if (!rng_chance(&rng, 150))
		return;
	plan->records = true;
	plan->deaths = shares[rng_below(&rng, sizeof(shares) / sizeof(shares[0]))];
	if (strcmp(plan->profile, "calm") != 0 || rng_chance(&rng, 300))
		return;
	plan->profile = "deaths";
	lose_nothing(plan);
}

void plan_choose(struct plan *plan, uint64_t seed, struct rng *rng)
{
	/* T, tick: pairs that leave a lease which is long enough (lockcore/RULES.md, rule 4). */
	static const int64_t pairs[][2] = {
		{15000000, 2000000}, {15000000, 2000000}, {30000000, 2000000}, {8000000, 2000000},
		{6000000, 2000000},  {4000000, 500000},   {10000000, 500000},
	};
	const int64_t *pair = pairs[rng_below(rng, sizeof(pairs) / sizeof(pairs[0]))];
	const struct profile *profile = pick_profile(rng);

	*plan = (struct plan){
		.profile = profile->name,
		.mounts = (int)rng_between(rng, 1, MOUNTS_MAX),
		.locks = (int)rng_between(rng, 1, LOCKS_MAX),
		.programs = rng_chance(rng, 950) ? (int)rng_between(rng, 1, 6)
	                                         : (int)rng_between(rng, 10, 40),
		.timeout_us = pair[0],
		.tick_us = pair[1],
		.chaos_us = rng_between(rng, 10000000, 60000000),
		.long_holds = 150,
		.hold_us = rng_spread(rng, 100000, 30000000),
		.fault_gap_us = profile->gap_us,
		.outsiders = rng_chance(rng, 300) ? (int)rng_between(rng, 1, 3) : 0,
		.foreign_families = rng_chance(rng, 300),
		.near_overflow = rng_chance(rng, 40),
	};
	for (int i = 0; i < FAULT_KINDS; i++)
		plan->weight[i] = profile->weight[i];
	if (plan->weight[FAULT_GREETING]) {
		plan->long_holds = 900;
		plan->hold_us = 2 * plan->timeout_us;
	}
	/* So that a run has some hundreds of takers at most. */
	plan->think_us =
		plan->chaos_us / rng_spread(rng, 10, 400) * plan->mounts * plan->programs * 2;
	plan->world = (struct world_config){
		.servers = rng_chance(rng, 700) ? 3 : (int)rng_between(rng, 1, 2),
		.tick_us = plan->tick_us,
		.delay_max_us = rng_spread(rng, 200, 100000),
		.commit_max_us = rng_spread(rng, 200, 30000),
	};
	if (rng_chance(rng, 100))
		plan->world.timeout_max_us[rng_below(rng, 3)] = plan->timeout_us * 9 / 10;
	if (plan->weight[FAULT_CUT] && rng_chance(rng, 500))
		plan->world.snap_per_mille = (unsigned)rng_between(rng, 2, 50);
	if (rng_chance(rng, 100) && !plan->weight[FAULT_LINK])
		plan->world.lose_touch_ppm = 5000;
	if (profile->gap_us && rng_chance(rng, 30))
		plan->world.refuse_session_ppm = 100000;
	make_rare(plan, seed);
	choose_modes(plan, seed);
	choose_reloads(plan, seed);
	choose_deaths(plan, seed);
	choose_limits(plan, seed);
	choose_reuse(plan, seed);
	choose_rest(plan, seed);
	choose_servers(plan, seed);
	choose_clients(plan, seed);
}
