/* SPDX-License-Identifier: MIT
 *
 * settings.h - what the servers say of their settings (probe.h), and what the mount makes of it:
 * the tick that the lease is computed from is the longest of what the option says and of what any
 * server has told, and its session is no longer than any server grants. Servers are asked at the
 * start, and again after each new connection, since a server may be started with other settings, or
 * have been away before.
 *
 * Only a server of this mount's ensemble counts, which has shown the mark (rule 41): an address may
 * have become somebody else's. What others say changes nothing.
 *
 * What nobody can know is said: in the log, and in .zklockfs/status.
 */
#ifndef FS_SETTINGS_H
#define FS_SETTINGS_H

#include "setup/options.h"
#include "setup/probe.h"

#include <poll.h>
#include <stdint.h>

/* UNPROVED: it has not shown the mark, or the mount does not know its own yet. */
enum settings_whose { SETTINGS_UNPROVED, SETTINGS_OURS, SETTINGS_FOREIGN };

struct settings_answer {
	struct probe probe;
	enum settings_whose whose;
	bool said; /* to the log */
};

struct settings {
	const struct options *options;
	int64_t tick_us;  /* the longest that is known */
	int64_t limit_us; /* of sessions, the least that is known; INT64_MAX: none */
	struct prober prober;
	struct settings_answer *answers; /* of the servers that were asked last */
	size_t count;
	bool early;        /* they were asked before the mount knew its ensemble */
	bool asked, ready; /* asked for the connection that comes; there is one */
	bool woken;        /* the last one was given up after a rest, and the leader is the same */
	int64_t epoch;     /* the leader's, when there was a connection last */
	int64_t ask_us;    /* when to ask; INT64_MAX: not before there is a new connection */
	/* What the log has been told. */
	char version_said[sizeof(((struct probe *)0)->version)];
	int64_t tick_said_us, limit_said_us;
	char wrong_said[512];
	bool unsure_said;
};

/* The options stay where they are. */
void settings_init(struct settings *settings, const struct options *options);
void settings_finish(struct settings *settings);
/* Asks the servers at these addresses; or -errno. `only`: that one, and what the others have said
 * stays; NULL: all. */
int settings_begin(struct settings *settings, const char *addresses, const char *only);
/* The same at the start of a mount. */
void settings_ask(struct settings *settings, const char *addresses);

/* The loop calls both, like servers_prepare() and servers_process(). `serves`: the start has not
 * failed. */
int64_t settings_prepare(const struct settings *settings, int64_t now_us,
                         struct pollfd *ret_pollfd);
void settings_process(struct settings *settings, struct lc *lc, const char *addresses,
                      int64_t now_us, short revents, bool serves);
/* What a server has said; it counts. */
void settings_hear(struct settings *settings, const struct probe *probe);
void settings_believe(struct settings *settings, struct settings_answer *answer);
/* Has that server, "10.0.0.1:2181", answered, or will it not? */
bool settings_has_heard(const struct settings *settings, const char *server);

/* The oldest version among the servers of the ensemble; "": not known. */
const char *settings_version(const struct settings *settings);
/* The same, and what is wrong with it: in `text`, or the version itself. */
const char *settings_judge_version(const struct settings *settings, char *text, size_t size);
/* How the tick is known: "option"; "conf", "sessions": by the servers (probe.h); "-": it is not. */
const char *settings_tick_by(const struct settings *settings);
/* Servers whose settings are not as they should be, or do not count: a sentence for each, or "". */
const char *settings_wrong(const struct settings *settings, char *ret_text, size_t size);

#endif
