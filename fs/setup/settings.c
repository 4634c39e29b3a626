/* SPDX-License-Identifier: MIT */
#include "setup/settings.h"

#include "host/log.h"
#include "lockcore.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* After a new connection, up to so long: all mounts connect anew at the same time. Until then no
 * lease rests on what might have changed: its steps take longer. */
#define SPREAD_US 2000000

void settings_init(struct settings *settings, const struct options *options)
{
	*settings = (struct settings){
		.options = options,
		.tick_us = options->tick_time_us,
		.limit_us = INT64_MAX,
		.tick_said_us = options->tick_time_us,
		.limit_said_us = options->session_timeout_us,
		.ask_us = INT64_MAX,
	};
	prober_init(&settings->prober);
}

void settings_finish(struct settings *settings)
{
	prober_stop(&settings->prober);
	free(settings->answers);
}

int settings_begin(struct settings *settings, const char *addresses, const char *only)
{
	const struct probe_question question = {
		.root = settings->options->root,
		.credentials = settings->options->credentials,
	};

	size_t kept = 0;

	for (size_t i = 0; i < settings->count; i++)
		if (only && strcmp(settings->answers[i].probe.address, only) != 0)
			settings->answers[kept++] = settings->answers[i];
	settings->ask_us = INT64_MAX;
	settings->count = kept;
	settings->early = false;
	return prober_begin(&settings->prober, only ? only : addresses, &question);
}

static void ask_now(struct settings *settings, const char *addresses, const char *only)
{
	if (settings_begin(settings, addresses, only) < 0)
		log_line(LC_WARNING, "the servers cannot be asked for their settings");
}

void settings_ask(struct settings *settings, const char *addresses)
{
	settings->asked = true;
	ask_now(settings, addresses, NULL);
	settings->early = true;
}

int64_t settings_prepare(const struct settings *settings, int64_t now_us, struct pollfd *ret_pollfd)
{
	*ret_pollfd = (struct pollfd){.fd = settings->prober.fd, .events = POLLIN};
	return settings->ask_us == INT64_MAX ? INT64_MAX : settings->ask_us - now_us;
}

/* ---- what they say ---- */

void settings_hear(struct settings *settings, const struct probe *probe)
{
	struct settings_answer *answers =
		realloc(settings->answers, (settings->count + 1) * sizeof(*answers));

	if (!answers)
		return;
	answers[settings->count++] = (struct settings_answer){.probe = *probe};
	settings->answers = answers;
}

void settings_believe(struct settings *settings, struct settings_answer *answer)
{
	bool certain;
	int64_t tick_us = probe_tick(&answer->probe, &certain) * 1000;
	int64_t limit_us = answer->probe.longest_ms * 1000;

	answer->whose = SETTINGS_OURS;
	if (tick_us > settings->tick_us)
		settings->tick_us = tick_us;
	if (limit_us > 0 && limit_us < settings->limit_us)
		settings->limit_us = limit_us;
}

static void weigh(struct settings *settings, struct lc *lc)
{
	for (size_t i = 0; i < settings->count; i++) {
		struct settings_answer *answer = &settings->answers[i];

		if (!answer->probe.looked || answer->whose == SETTINGS_OURS)
			continue;
		if (lc_is_mark(lc, &answer->probe.mark))
			settings_believe(settings, answer);
		else if (!settings->early) /* otherwise it may have looked too soon */
			answer->whose = SETTINGS_FOREIGN;
	}
	lc_raise_tick(lc, settings->tick_us);
	lc_limit_session(lc, settings->limit_us);
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
	if (certain || settings->unsure_said || settings->options->has_tick_time)
		return;
	settings->unsure_said = true;
	log_line(
		LC_WARNING,
		"server %s does not tell its tickTime; if it is more than %" PRId64
		" ms, two may hold a lock: allow conf in its 4lw.commands.whitelist, or mount with "
		"-o tick_time=",
		probe->address, settings->tick_us / 1000);
}

static void say_limit(struct settings *settings, const struct probe *probe)
{
	int64_t limit_us = probe->longest_ms * 1000;

	if (limit_us == 0 || limit_us >= settings->limit_said_us)
		return;
	log_line(LC_WARNING,
	         "server %s grants no longer sessions than %" PRId64
	         " ms: the lease is computed from it, not from %" PRId64 " ms",
	         probe->address, limit_us / 1000, settings->limit_said_us / 1000);
	settings->limit_said_us = limit_us;
}

static bool is_unproved(const struct settings_answer *answer)
{
	return answer->whose == SETTINGS_UNPROVED && answer->probe.met == PROBE_USABLE;
}

static void say_strangers(struct settings *settings)
{
	char wrong[sizeof(settings->wrong_said)];
	bool strange = false;

	if (settings->prober.fd >= 0 || settings->early || settings->ask_us == INT64_MIN)
		return;
	for (size_t i = 0; i < settings->count; i++)
		strange |= settings->answers[i].whose == SETTINGS_FOREIGN ||
		           is_unproved(&settings->answers[i]);
	settings_wrong(settings, wrong, sizeof(wrong));
	for (size_t i = 0; i < settings->count && strcmp(wrong, settings->wrong_said) != 0; i++) {
		const struct probe *probe = &settings->answers[i].probe;

		if (settings->answers[i].whose == SETTINGS_FOREIGN)
			log_line(
				LC_WARNING,
				"server %s is of another ensemble, and what it says does not count",
				probe->address);
		else if (is_unproved(&settings->answers[i]))
			log_line(LC_WARNING,
			         "server %s has not shown that it is of this ensemble, and what it "
			         "says does not count",
			         probe->address);
	}
	if (settings->count > 0)
		strcpy(settings->wrong_said, strange ? wrong : "");
}

/* A start that fails says why, and nothing else. */
static void say_news(struct settings *settings)
{
	for (size_t i = 0; i < settings->count; i++) {
		struct settings_answer *answer = &settings->answers[i];

		if (answer->said || answer->whose != SETTINGS_OURS)
			continue;
		answer->said = true;
		say_version(settings, &answer->probe);
		say_tick(settings, &answer->probe);
		say_limit(settings, &answer->probe);
	}
	say_strangers(settings);
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
	/* The log had the length of so short a session when it was granted. */
	if (status.session_timeout_us > 0 && status.session_timeout_us < settings->limit_said_us)
		settings->limit_said_us = status.session_timeout_us;
	if (!settings->asked)
		settings->ask_us = now_us + at_random(SPREAD_US);
	settings->asked = false;
}

/* Servers that have not shown the mark are asked again, now that the mount knows its ensemble. */
static void end_early(struct settings *settings)
{
	settings->early = false;
	for (size_t i = 0; i < settings->count; i++)
		if (is_unproved(&settings->answers[i]))
			settings->ask_us = INT64_MIN;
}

void settings_process(struct settings *settings, struct lc *lc, const char *addresses,
                      int64_t now_us, short revents, bool serves)
{
	struct lc_status status;
	bool ready = lc_ready(lc);
	struct probe probe;

	while (revents && prober_read(&settings->prober, &probe))
		settings_hear(settings, &probe);
	if (lc_knows_mark(lc))
		weigh(settings, lc);
	if (!ready && settings->ready)
		settings->woken = lc_woken(lc);
	if (ready && !settings->ready) {
		lc_status(lc, &status);
		settings->woken &= status.epoch == settings->epoch;
		settings->epoch = status.epoch;
		plan_to_ask(settings, lc, now_us);
	}
	settings->ready = ready;
	if (ready && settings->early && settings->prober.fd < 0)
		end_early(settings);
	if (serves)
		say_news(settings);
	if (!ready || now_us < settings->ask_us || !addresses)
		return;
	/* What the others have said is so until there is another leader, with another epoch. */
	lc_status(lc, &status);
	ask_now(settings, addresses, settings->woken ? status.server : NULL);
}

bool settings_has_heard(const struct settings *settings, const char *server)
{
	for (size_t i = 0; i < settings->count; i++)
		if (settings->answers[i].whose == SETTINGS_OURS &&
		    strcmp(settings->answers[i].probe.address, server) == 0)
			return true;
	return settings->prober.fd < 0;
}

/* ---- what is known ---- */

const char *settings_version(const struct settings *settings)
{
	const char *oldest = "";

	for (size_t i = 0; i < settings->count; i++) {
		const char *version = settings->answers[i].probe.version;

		if (settings->answers[i].whose == SETTINGS_OURS && *version &&
		    (!*oldest || probe_compare_versions(version, oldest) < 0))
			oldest = version;
	}
	return oldest;
}

const char *settings_judge_version(const struct settings *settings, char *text, size_t size)
{
	const char *version = settings_version(settings);

	if (!probe_forgets(version))
		return version;
	snprintf(text, size, "%s, which can forget answered writes: use %s or later", version,
	         PROBE_SAFE);
	return text;
}

/* A foreign server is not one of those that the lease relies on; one that is not proved may be. */
const char *settings_tick_by(const struct settings *settings)
{
	bool heard = false, all_certain = true, all_conf = true, certain;

	if (settings->options->has_tick_time &&
	    settings->tick_us == settings->options->tick_time_us)
		return "option";
	for (size_t i = 0; i < settings->count; i++) {
		const struct probe *probe = &settings->answers[i].probe;

		if (probe->met != PROBE_USABLE || settings->answers[i].whose == SETTINGS_FOREIGN)
			continue;
		heard = true;
		(void)probe_tick(probe, &certain);
		all_certain &= certain && settings->answers[i].whose == SETTINGS_OURS;
		all_conf &= probe->has_conf;
	}
	return !heard || !all_certain ? "-" : all_conf ? "conf" : "sessions";
}

static int64_t shortest_tick_ms(const struct settings *settings)
{
	int64_t shortest_ms = INT64_MAX;
	bool certain;

	for (size_t i = 0; i < settings->count; i++) {
		int64_t tick_ms = probe_tick(&settings->answers[i].probe, &certain);

		if (settings->answers[i].whose == SETTINGS_OURS && tick_ms > 0 &&
		    tick_ms < shortest_ms)
			shortest_ms = tick_ms;
	}
	return shortest_ms;
}

__attribute__((format(printf, 3, 4))) static void add(char *text, size_t size, const char *format,
                                                      ...)
{
	size_t len = strlen(text);
	va_list args;

	if (len > 0)
		len += (size_t)snprintf(text + len, size - len, "; ");
	if (len >= size)
		return;
	va_start(args, format);
	vsnprintf(text + len, size - len, format, args);
	va_end(args);
}

const char *settings_wrong(const struct settings *settings, char *ret_text, size_t size)
{
	int64_t shortest_ms = shortest_tick_ms(settings);
	int64_t asked_ms = settings->options->session_timeout_us / 1000;

	*ret_text = '\0';
	for (size_t i = 0; i < settings->count; i++) {
		const struct settings_answer *answer = &settings->answers[i];
		const struct probe *probe = &answer->probe;
		bool certain;
		int64_t tick_ms = probe_tick(probe, &certain);

		if (answer->whose == SETTINGS_FOREIGN)
			add(ret_text, size,
			    "server %s is of another ensemble, and what it says does not count",
			    probe->address);
		else if (is_unproved(answer))
			add(ret_text, size,
			    "server %s has not shown that it is of this ensemble, and what it says "
			    "does not count",
			    probe->address);
		if (answer->whose != SETTINGS_OURS)
			continue;
		if (tick_ms > shortest_ms)
			add(ret_text, size,
			    "server %s has a tickTime of %" PRId64 " ms, and another one of "
			    "%" PRId64 " ms",
			    probe->address, tick_ms, shortest_ms);
		if (probe->longest_ms > 0 && probe->longest_ms < asked_ms)
			add(ret_text, size,
			    "server %s grants no longer sessions than %" PRId64 " ms",
			    probe->address, probe->longest_ms);
		if (probe->shortest_ms > asked_ms)
			add(ret_text, size,
			    "server %s grants no shorter sessions than %" PRId64 " ms",
			    probe->address, probe->shortest_ms);
	}
	return ret_text;
}
