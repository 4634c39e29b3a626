/* SPDX-License-Identifier: MIT */
#include "setup/servers.h"

#include "host/log.h"
#include "lockcore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Without contact: between the first two looks; each further pause is twice as long. */
#define AGAIN_US 500000
/* The pause between two looks while no name has an address. */
#define NOWHERE_US 1000000
#define PATIENCE_US 500000

bool servers_init(struct servers *servers, const char *names, int64_t period_us)
{
	*servers = (struct servers){.names = names,
	                            .count = resolve_count(names),
	                            .named = !resolve_are_numbers(names),
	                            .away = true,
	                            .period_us = period_us,
	                            .patience_us = PATIENCE_US};
	resolver_init(&servers->resolver);
	prober_init(&servers->prober);
	servers->each = calloc(servers->count, sizeof(*servers->each));
	return servers->each;
}

void servers_finish(struct servers *servers)
{
	resolver_stop(&servers->resolver);
	prober_stop(&servers->prober);
	for (size_t i = 0; servers->each && i < servers->count; i++) {
		free(servers->each[i].addresses);
		free(servers->each[i].problem);
	}
	free(servers->each);
	free(servers->addresses);
	free(servers->tried);
	free(servers->trying);
}

const char *servers_problems(const struct servers *servers, char *text, size_t size)
{
	size_t len = 0;

	*text = '\0';
	for (size_t i = 0; i < servers->count && len < size; i++)
		if (servers->each[i].problem)
			len += (size_t)snprintf(text + len, size - len, "%s%s", len ? "; " : "",
			                        servers->each[i].problem);
	return text;
}

int64_t servers_prepare(const struct servers *servers, int64_t now_us,
                        struct pollfd ret_fds[SERVERS_POLLED])
{
	bool busy = servers->resolver.fd >= 0;
	int64_t at_us = busy ? servers->slow_us : servers->next_us;

	ret_fds[SERVERS_RESOLVER] = (struct pollfd){.fd = servers->resolver.fd, .events = POLLIN};
	ret_fds[SERVERS_PROBER] = (struct pollfd){.fd = servers->prober.fd, .events = POLLIN};
	return at_us == INT64_MAX ? INT64_MAX : at_us - now_us;
}

/* ---- what the names say ---- */

static void say_left_out(const struct servers *servers)
{
	for (size_t i = 0; i < servers->count; i++)
		if (servers->each[i].problem)
			log_line(LC_WARNING,
			         "%s: left out until it has an address; the others are used",
			         servers->each[i].problem);
}

/* The names may have other addresses than those in use. If none has one, that is no reason to give
 * anything up. */
static void take_addresses(struct servers *servers)
{
	const char **lists = calloc(servers->count, sizeof(*lists));
	char *now = NULL;

	for (size_t i = 0; lists && i < servers->count; i++)
		lists[i] = servers->each[i].addresses;
	if (lists)
		now = resolve_join(lists, servers->count);
	free(lists);
	if (!now || (servers->addresses && (strcmp(now, servers->addresses) == 0 ||
	                                    servers->moved(servers->ctx, now) < 0))) {
		free(now);
		return;
	}
	if (servers->addresses)
		log_line(LC_NOTICE, "the servers have new addresses: %s", now);
	else
		say_left_out(servers);
	free(servers->addresses);
	servers->addresses = now;
	servers->unrecorded = true;
}

/* No memory: what was known stays. */
static void keep_text(char **text, const char *value)
{
	char *copy = value ? strdup(value) : NULL;

	if (value && !copy)
		return;
	free(*text);
	*text = copy;
}

static void heard(void *ctx, enum resolver_answer answer, size_t name, char *text)
{
	struct servers *servers = ctx;
	struct server_name *of = &servers->each[name < servers->count ? name : 0];

	switch (answer) {
	case RESOLVER_FOUND:
		keep_text(&of->addresses, text);
		keep_text(&of->problem, NULL);
		return;
	case RESOLVER_NONE:
		keep_text(&of->addresses, NULL);
		keep_text(&of->problem, text);
		return;
	case RESOLVER_UNKNOWN:
		keep_text(&of->problem, text);
		return;
	}
}

/* All answers are taken together, but a slow one keeps the others back for a moment only. */
static bool may_take(const struct servers *servers, int64_t now_us, bool heard_one, bool all)
{
	if (all)
		return true;
	return servers->slow_us == INT64_MAX ? heard_one : servers->slow_us <= now_us;
}

static void hear_answers(struct servers *servers, int64_t now_us, short revents)
{
	bool all = revents && resolver_read(&servers->resolver, heard, servers);

	if (!may_take(servers, now_us, revents, all))
		return;
	take_addresses(servers);
	servers->recorded = false;
	servers->slow_us = INT64_MAX;
	if (all && !servers->addresses)
		servers->failures++;
}

/* ---- what the servers do ---- */

static void hear_tries(struct servers *servers)
{
	struct probe probe;

	while (prober_read(&servers->prober, &probe)) {
		char *text;

		if (asprintf(&text, "%s%s%s: %s%s%s%s", servers->trying ? servers->trying : "",
		             servers->trying ? "; " : "", probe.address, probe_text(&probe),
		             probe.met == PROBE_USABLE ? ", but gives no session" : "",
		             *probe.mode ? ": " : "", probe.mode) < 0)
			continue;
		free(servers->trying);
		servers->trying = text;
	}
	if (servers->prober.fd >= 0 || !servers->trying)
		return;
	free(servers->tried);
	servers->tried = servers->trying;
	servers->trying = NULL;
}

static void stop_trying(struct servers *servers)
{
	prober_stop(&servers->prober);
	keep_text(&servers->tried, NULL);
	keep_text(&servers->trying, NULL);
}

static void begin_to_try(struct servers *servers)
{
	if (servers->addresses && servers->prober.fd < 0)
		(void)prober_begin(&servers->prober, servers->addresses, NULL);
}

void servers_try(struct servers *servers)
{
	if (!servers->tried)
		begin_to_try(servers);
}

/* ---- when they are asked ---- */

static int64_t next_pause(const struct servers *servers)
{
	if (!servers->away)
		return servers->period_us;
	if (!servers->addresses)
		return NOWHERE_US;
	if (servers->looks > 16 || AGAIN_US << (servers->looks - 1) > servers->period_us)
		return servers->period_us;
	return AGAIN_US << (servers->looks - 1);
}

static void note_contact(struct servers *servers, bool away, int64_t now_us)
{
	if (away == servers->away)
		return;
	servers->away = away;
	servers->looks = 0;
	servers->next_us = away ? now_us : now_us + servers->period_us;
	if (!away)
		stop_trying(servers);
}

static void begin_look(struct servers *servers, int64_t now_us)
{
	servers->looks++;
	if (servers->named || servers->recorded || !servers->addresses)
		servers->error = -resolver_begin(&servers->resolver, servers->names);
	servers->failures += servers->error != 0;
	/* Most often the next server gives contact at once: then nothing is wrong. */
	if (servers->away && servers->looks > 1)
		begin_to_try(servers);
	servers->slow_us = now_us + servers->patience_us;
	servers->next_us = now_us + next_pause(servers);
}

void servers_process(struct servers *servers, const struct lc *lc, int64_t now_us,
                     const struct pollfd fds[SERVERS_POLLED])
{
	if (servers->resolver.fd >= 0)
		hear_answers(servers, now_us, fds[SERVERS_RESOLVER].revents);
	if (fds[SERVERS_PROBER].revents)
		hear_tries(servers);
	note_contact(servers, !lc || !lc_ready(lc), now_us);
	if (now_us >= servers->next_us && servers->resolver.fd < 0)
		begin_look(servers, now_us);
}

/* After a load nobody knows which name has which address, until each was looked up. */
void servers_save_load(struct codec *codec, struct servers *servers)
{
	const char *addresses = codec_text(codec, servers->addresses);

	if (!codec->loads)
		return;
	servers->recorded = true;
	servers->addresses = addresses ? strdup(addresses) : NULL;
	if (!servers->addresses)
		codec->give_up("the state has no servers");
	for (size_t i = 0; i < servers->count; i++)
		keep_text(&servers->each[i].addresses, servers->addresses);
}
