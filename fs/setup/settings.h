/* SPDX-License-Identifier: MIT
 *
 * settings.h - what the servers say of their settings (probe.h), and what the mount makes of it:
 * the tick that the lease is computed from is the longest of what the option says and of what any
 * server has told. Servers are asked at the start, and again after each new connection, since a
 * server may be started with other settings, or have been away before.
 *
 * What nobody can know is said: in the log, and in .zklockfs/status.
 */
#ifndef FS_SETTINGS_H
#define FS_SETTINGS_H

#include "setup/probe.h"

#include <poll.h>
#include <stdint.h>

struct lc;

struct settings {
	int64_t option_us; /* tick_time=, or its default */
	bool has_option;
	int64_t tick_us; /* the longest that is known */
	struct prober prober;
	struct probe *answers; /* of the servers that were asked last */
	size_t count;
	bool asked, ready; /* asked for the connection that comes; there is one */
	int64_t ask_us;    /* when to ask; INT64_MAX: not before there is a new connection */
	/* What the log has been told. */
	char version_said[sizeof(((struct probe *)0)->version)];
	size_t said; /* of the answers */
	int64_t tick_said_us;
	bool unsure_said;
};

/* `tick_us`: the option, or its default. */
void settings_init(struct settings *settings, int64_t tick_us, bool has_option);
void settings_finish(struct settings *settings);
/* At the start: asks the servers at these addresses. */
void settings_ask(struct settings *settings, const char *addresses);

/* For the loop, as servers_prepare() and servers_process(). `serves`: the start has not failed. */
int64_t settings_prepare(const struct settings *settings, int64_t now_us,
                         struct pollfd *ret_pollfd);
void settings_process(struct settings *settings, struct lc *lc, const char *addresses,
                      int64_t now_us, short revents, bool serves);
/* What a server has said. */
void settings_hear(struct settings *settings, const struct probe *probe);
/* Has that server, "10.0.0.1:2181", answered, or will it not? */
bool settings_has_heard(const struct settings *settings, const char *server);

/* The oldest version among the servers; "": not known. */
const char *settings_version(const struct settings *settings);
/* How the tick is known: "option"; "conf", "sessions": by the servers (probe.h); "-": it is not. */
const char *settings_tick_by(const struct settings *settings);

#endif
