/* SPDX-License-Identifier: MIT */
#include "health.h"

#include "clean.h"
#include "span.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

void health_read(const struct mount *mount, struct health *ret_health)
{
	ret_health->text = mount_read(mount, ".zklockfs", "status");
	ret_health->error = ret_health->text ? 0 : errno;
}

void health_free(struct health *health)
{
	free(health->text);
	health->text = NULL;
}

const char *health_value(const struct health *health, const char *key, char *value, size_t size)
{
	size_t n = strlen(key);

	snprintf(value, size, "-");
	for (const char *line = health->text; line && *line; line += strcspn(line, "\n")) {
		line += *line == '\n';
		if (strncmp(line, key, n) == 0 && strncmp(line + n, ": ", 2) == 0)
			snprintf(value, size, "%.*s", (int)strcspn(line + n + 2, "\n"),
			         line + n + 2);
	}
	return value;
}

/* Writes " (since 02:41:07, for 45s)"; nothing when that is not known. */
static const char *tell_since(const struct health *health, char *buffer, size_t size)
{
	char time[48], at[SPAN_TIME_MAX], age[SPAN_MAX];
	int64_t ms = span_since(health_value(health, "no_contact_since", time, sizeof(time)));

	*buffer = '\0';
	if (ms >= 0)
		snprintf(buffer, size, " (since %s, for %s)", span_time(at, time),
		         span_format(age, ms));
	return buffer;
}

static void add(char why[HEALTH_MAX], const char *text)
{
	char shown[CLEAN_MAX];
	size_t n = strlen(why);

	snprintf(why + n, HEALTH_MAX - n, "; %s", clean(shown, sizeof(shown), text));
}

/* What the server did at the last look, if it is the one that `met` names; else NULL. Both texts
 * name a server first. */
static const char *look_at_same(const char *server, const char *met)
{
	size_t name = strcspn(met, " ");

	if (strncmp(server, met, name) != 0 || strncmp(server + name, ": ", 2) != 0)
		return NULL;
	return server + name + strlen(": ");
}

/* The last look at the server that `met` names has shown something else since. */
static bool is_outdated(const char *met, const char *tried)
{
	for (const char *server = tried; server; server = strstr(server, "; ")) {
		const char *look;

		server += server == tried ? 0 : strlen("; ");
		look = look_at_same(server, met);
		if (look)
			return strncmp(look, "answers", strlen("answers")) != 0;
	}
	return false;
}

/* Adds what each server did last. What the mount met at one server says more, and is still true
 * while the server only answers. */
static void add_servers(const struct health *health, char why[HEALTH_MAX])
{
	char met[HEALTH_MAX], tried[HEALTH_MAX], *next;
	bool outdated;

	health_value(health, "no_contact_why", met, sizeof(met));
	health_value(health, "servers_tried", tried, sizeof(tried));
	outdated = is_outdated(met, tried);
	if (strcmp(met, "-") != 0 && !outdated)
		add(why, met);
	for (char *server = tried; server && strcmp(server, "-") != 0; server = next) {
		next = strstr(server, "; ");
		if (next) {
			*next = '\0';
			next += strlen("; ");
		}
		if (outdated || !look_at_same(server, met))
			add(why, server);
	}
}

bool health_is_good(const struct health *health, char why[HEALTH_MAX])
{
	char state[60], shown[60], since[80], left[SPAN_MAX], lease[32];

	if (!health->text)
		return health->error == ENOENT;
	health_value(health, "state", state, sizeof(state));
	tell_since(health, since, sizeof(since));
	health_value(health, "lease_left", lease, sizeof(lease));
	if (strcmp(state, "ready") == 0)
		return true;
	if (strcmp(state, "suspended") == 0 && strcmp(lease, "-") == 0)
		snprintf(why, HEALTH_MAX, "the ensemble does not answer%s; no lock is held here",
		         since);
	else if (strcmp(state, "suspended") == 0)
		snprintf(why, HEALTH_MAX,
		         "the ensemble does not answer%s; locks held here stay good for "
		         "%s",
		         since, span_format(left, strtoll(lease, NULL, 10)));
	else if (strcmp(state, "lost") == 0)
		snprintf(why, HEALTH_MAX,
		         "the ensemble does not answer%s: locks held here are lost", since);
	else if (strcmp(state, "connecting") == 0)
		snprintf(why, HEALTH_MAX,
		         "the ensemble does not answer%s: the mount has no session", since);
	else if (strcmp(state, "another_ensemble") == 0)
		snprintf(why, HEALTH_MAX,
		         "the servers are of another ensemble%s: its log says more; only a restart "
		         "of the mount accepts it",
		         since);
	else if (strcmp(state, "unguarded") == 0)
		snprintf(why, HEALTH_MAX,
		         "on_lost of the mount can stop nobody, and it grants no lock: its log "
		         "says why; restart it");
	else if (strcmp(state, "unusable") == 0)
		snprintf(why, HEALTH_MAX, "the mount is unusable%s: its log says why; restart it",
		         since);
	else
		snprintf(why, HEALTH_MAX, "the mount is not ready%s: %s", since,
		         clean(shown, sizeof(shown), state));
	add_servers(health, why);
	return false;
}

const char *health_explain(const struct mount *mount, int error, char why[HEALTH_MAX])
{
	static const struct {
		int error;
		const char *text;
	} texts[] = {
		{ENOTCONN, "the daemon of the mount is dead"},
		{ECONNABORTED, "the daemon of the mount is dead"},
		{EHOSTUNREACH, "the ensemble did not answer in time"},
		{ESHUTDOWN, "the mount is shutting down, or unusable"},
		{EBUSY, "you send the mount too many requests at a time"},
		{ENFILE, "too many files are open on the mount"},
	};
	char cover[PLACE_COVER_MAX];
	struct health health;

	if (error == EXDEV) {
		snprintf(why, HEALTH_MAX, "%s", mount_covered(mount, "", cover));
		return why;
	}
	snprintf(why, HEALTH_MAX, "%s", strerror(error));
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].error == error)
			snprintf(why, HEALTH_MAX, "%s", texts[i].text);
	health_read(mount, &health);
	if (error == EHOSTUNREACH || error == ESHUTDOWN)
		health_is_good(&health, why);
	health_free(&health);
	return why;
}

int health_exit_status(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
		return EX_NOINPUT;
	case EACCES:
	case EPERM:
		return EX_NOPERM;
	default:
		return EX_UNAVAILABLE;
	}
}

bool health_sees_pids(const struct health *health, const char *session)
{
	char own[40], namespace[32], self[32];
	ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);
	struct stat stat_of;

	if (n <= 0 || stat("/proc/self/ns/pid", &stat_of) < 0)
		return false;
	self[n] = '\0';
	health_value(health, "session", own, sizeof(own));
	health_value(health, "pid_namespace", namespace, sizeof(namespace));
	return strcmp(own, session) == 0 && strcmp(own, "-") != 0 && atoi(self) == getpid() &&
	       strtoull(namespace, NULL, 10) == stat_of.st_ino;
}
