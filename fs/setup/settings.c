/* SPDX-License-Identifier: MIT */
#include "setup/settings.h"

#include "host/log.h"
#include "lockcore.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* After a new connection, up to so long: all mounts connect anew at the same time. Until then no
 * lease rests on what might have changed: its steps take longer. */
#define SPREAD_US 2000000

void settings_init(struct settings *settings, int64_t tick_us, bool has_option)
{
	*settings = (struct settings){
		.option_us = tick_us,
		.has_option = has_option,
		.tick_us = tick_us,
		.tick_said_us = tick_us,
		.ask_us = INT64_MAX,
	};
	prober_init(&settings->prober);
}

void settings_finish(struct settings *settings)
{
	prober_stop(&settings->prober);
	free(settings->answers);
}

static void ask_now(struct settings *settings, const char *addresses)
{
	settings->ask_us = INT64_MAX;
	settings->count = settings->said = 0;
	if (prober_begin(&settings->prober, addresses, true) < 0)
		log_line(LC_WARNING, "the servers cannot be asked for their settings");
}

void settings_ask(struct settings *settings, const char *addresses)
{
	settings->asked = true;
	ask_now(settings, addresses);
}

int64_t settings_prepare(const struct settings *settings, int64_t now_us, struct pollfd *ret_pollfd)
{
	*ret_pollfd = (struct pollfd){.fd = settings->prober.fd, .events = POLLIN};
	return settings->ask_us == INT64_MAX ? INT64_MAX : settings->ask_us - now_us;
}

/* ---- what they say ---- */

void settings_hear(struct settings *settings, const struct probe *probe)
{
	struct probe *answers =
		realloc(settings->answers, (settings->count + 1) * sizeof(*answers));
	bool certain;
	int64_t tick_us = probe_tick(probe, &certain) * 1000;

	if (tick_us > settings->tick_us)
		settings->tick_us = tick_us;
	if (!answers)
		return;
	answers[settings->count++] = *probe;
	settings->answers = answers;
}

static void say_version(struct settings *settings, const struct probe *probe)
{
	const char *oldest = settings_version(settings);

	if (!probe_forgets(oldest) || strcmp(oldest, probe->version) != 0 ||
	    strcmp(oldest, settings->version_said) == 0)
		return;
	strcpy(settings->version_said, oldest);
	log_line(LC_WARNING,
	         "server %s is ZooKeeper %s, which can forget answered writes: use %s or later",
	         probe->address, oldest, PROBE_SAFE);
}

static void say_tick(struct settings *settings, const struct probe *probe)
{
	bool certain;
	int64_t tick_us = probe_tick(probe, &certain) * 1000;

	if (tick_us > settings->tick_said_us) {
		log_line(LC_WARNING,
		         "server %s has a tickTime of %" PRId64
		         " ms by its %s: the lease is computed from it, not from %" PRId64 " ms",
		         probe->address, tick_us / 1000,
		         probe->has_conf ? "conf" : "limits of sessions",
		         settings->tick_said_us / 1000);
		settings->tick_said_us = tick_us;
	}
	if (certain || settings->unsure_said || settings->has_option)
		return;
	settings->unsure_said = true;
	log_line(
		LC_WARNING,
		"server %s does not tell its tickTime; if it is more than %" PRId64
		" ms, two may hold a lock: allow conf in its 4lw.commands.whitelist, or mount with "
		"-o tick_time=",
		probe->address, settings->tick_us / 1000);
}

/* A start that fails says why, and nothing else. */
static void say_news(struct settings *settings)
{
	for (; settings->said < settings->count; settings->said++) {
		const struct probe *probe = &settings->answers[settings->said];

		if (probe->met != PROBE_USABLE)
			continue;
		say_version(settings, probe);
		say_tick(settings, probe);
	}
}

/* ---- when they are asked ---- */

static int64_t at_random(int64_t below)
{
	uint32_t number = 0;

	(void)!getrandom(&number, sizeof(number), GRND_NONBLOCK);
	return number % below;
}

static void plan_to_ask(struct settings *settings, struct lc *lc, int64_t now_us)
{
	struct lc_status status;

	lc_status(lc, &status);
	/* A former daemon may have known more. */
	if (status.tick_time_us > settings->tick_us)
		settings->tick_us = settings->tick_said_us = status.tick_time_us;
	if (!settings->asked)
		settings->ask_us = now_us + at_random(SPREAD_US);
	settings->asked = false;
}

void settings_process(struct settings *settings, struct lc *lc, const char *addresses,
                      int64_t now_us, short revents, bool serves)
{
	bool ready = lc_ready(lc);
	struct probe probe;

	while (revents && prober_read(&settings->prober, &probe)) {
		/* Without contact they may be of another ensemble: they are asked again. */
		if (serves && !ready)
			continue;
		settings_hear(settings, &probe);
		lc_raise_tick(lc, settings->tick_us);
	}
	if (ready && !settings->ready)
		plan_to_ask(settings, lc, now_us);
	settings->ready = ready;
	if (serves)
		say_news(settings);
	if (ready && now_us >= settings->ask_us && addresses)
		ask_now(settings, addresses);
}

bool settings_has_heard(const struct settings *settings, const char *server)
{
	for (size_t i = 0; i < settings->count; i++)
		if (strcmp(settings->answers[i].address, server) == 0)
			return true;
	return settings->prober.fd < 0;
}

/* ---- what is known ---- */

const char *settings_version(const struct settings *settings)
{
	const char *oldest = "";

	for (size_t i = 0; i < settings->count; i++) {
		const char *version = settings->answers[i].version;

		if (*version && (!*oldest || probe_compare_versions(version, oldest) < 0))
			oldest = version;
	}
	return oldest;
}

const char *settings_tick_by(const struct settings *settings)
{
	bool heard = false, all_certain = true, all_conf = true, certain;

	if (settings->has_option && settings->tick_us == settings->option_us)
		return "option";
	for (size_t i = 0; i < settings->count; i++) {
		const struct probe *probe = &settings->answers[i];

		if (probe->met != PROBE_USABLE)
			continue;
		heard = true;
		(void)probe_tick(probe, &certain);
		all_certain &= certain;
		all_conf &= probe->has_conf;
	}
	return !heard || !all_certain ? "-" : all_conf ? "conf" : "sessions";
}
