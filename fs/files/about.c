/* SPDX-License-Identifier: MIT */
#include "files/about.h"

#include "guard/guardian.h"
#include "hold/hold.h"
#include "hold/linger.h"
#include "host/clock.h"
#include "host/log.h"
#include "setup/servers.h"
#include "setup/settings.h"

#include <string.h>
#include <sys/stat.h>
#include <utlist.h>

/* ---- the oldest ---- */

/* Holds are in the order of their grants. */
static int64_t find_oldest_hold(const struct frontend *front, int64_t now)
{
	const struct hold *hold;

	DL_FOREACH(front->holds->held, hold)
		if (hold->audit.granted_us != 0) /* not lost */
			return now - hold->audit.granted_us;
	return 0;
}

/* A wait that a signal has interrupted goes on behind those that came meanwhile. */
static int64_t find_oldest_wait(const struct frontend *front, int64_t now)
{
	const struct hold *hold;
	int64_t oldest = 0;

	DL_FOREACH(front->holds->waiting, hold)
		if (now - hold->audit.asked_us > oldest)
			oldest = now - hold->audit.asked_us;
	return oldest;
}

static unsigned count_kept(const struct frontend *front)
{
	const struct lingering *lingering;
	unsigned count;

	DL_COUNT(front->holds->linger.lists[LINGERS_KEPT], lingering, count);
	return count;
}

/* ---- all facts ---- */

/* The engine's clock goes on while the machine is suspended, as the wall clock does. */
static int64_t wall_time_ms(const struct frontend *front, int64_t at_us)
{
	int64_t ago_us = front->clock_us() - at_us;

	return at_us < 0 ? -1 : (clock_read_ns(CLOCK_REALTIME) / 1000 - ago_us) / 1000;
}

static int64_t ensemble_ahead_ms(const struct frontend *front)
{
	int64_t now_ms = clock_read_ns(CLOCK_REALTIME) / 1000000;

	return lc_ensemble_ms(front->lc, now_ms) - now_ms;
}

static uint64_t pid_namespace(void)
{
	struct stat stat_of;

	return stat("/proc/self/ns/pid", &stat_of) == 0 ? stat_of.st_ino : 0;
}

static void learn_processes(const struct frontend *front, struct facts *facts)
{
	struct guardian_counts stops = guardian_counts(front->guardian);

	log_count();
	facts->counts = counted;
	facts->terms = stops.terms;
	facts->kills = stops.kills;
	facts->spared = stops.spared;
	facts->looks_ended = stops.looks_ended;
	facts->guardian_up = front->guardian ? guardian_fd(front->guardian) >= 0 : -1;
}

static void learn_holds(const struct frontend *front, struct facts *facts)
{
	int64_t now = front->clock_us();

	facts->history = &front->holds->audit_log.history;
	facts->oldest_hold_us = find_oldest_hold(front, now);
	facts->oldest_wait_us = find_oldest_wait(front, now);
	facts->kept = count_kept(front);
}

int about_text(struct frontend *front, uid_t reader, view_fn *view, struct text *ret_text)
{
	char watched_by[64], left_out[1024], wrong[1024], version[128];
	const struct servers *servers = front->facts.servers;
	const struct settings *settings = front->facts.settings;
	struct facts facts = {
		.mount = front->facts,
		.reader = reader,
		.addresses = servers->addresses,
		.left_out = servers_problems(servers, left_out, sizeof(left_out)),
		.tried = servers->tried,
		.clock_watched_by = watched_by,
		.tick_time_by = settings_tick_by(settings),
		.wrong_servers = settings_wrong(settings, wrong, sizeof(wrong)),
		.server_version = settings_judge_version(settings, version, sizeof(version)),
		.ensemble_ahead_ms = ensemble_ahead_ms(front),
		.pid_namespace = pid_namespace(),
		.open_bytes = front->files.bytes,
	};

	lc_status(front->lc, &facts.engine);
	if (facts.engine.resting || facts.engine.leaseless)
		facts.engine.lease_left_us = -1; /* whoever watches it raises no alarm */
	facts.away_since_ms = wall_time_ms(front, facts.engine.away_us);
	pauses_names(&front->pauses, watched_by, sizeof(watched_by));
	learn_processes(front, &facts);
	learn_holds(front, &facts);
	return view(&facts, ret_text);
}
