/* SPDX-License-Identifier: MIT
 *
 * probe.h - what servers say of themselves, and what a client meets at one that it cannot use.
 * They are asked in processes of their own: a server may take its time, and the loop waits for
 * nothing.
 *
 *   srvr       the version, and whether it leads; always open
 *   conf       tickTime and limits; closed by default (4lw.commands.whitelist)
 *   sessions   one of the longest length, which also reads the mark of the ensemble (rule 41 of
 *              lockcore/RULES.md); and if conf is closed, one of the shortest. Each is ended at
 *              once. These limits are 2 and 20 ticks, unless they were set
 *
 * Nothing of it changes anything in the ensemble. Whoever has the address can say all of it: what
 * counts is in settings.h.
 */
#ifndef FS_PROBE_H
#define FS_PROBE_H

#include "lockcore.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The oldest version that does not forget writes that it has answered: zklockfs-running(7). */
#define PROBE_SAFE "3.9.4"

/* How long a server may take for a connection, and again for each answer. */
#define PROBE_ANSWER_S 3

enum probe_met {
	PROBE_USABLE,      /* it has a session for us, or would have one */
	PROBE_UNREACHABLE, /* `error` */
	PROBE_SILENT,      /* takes the connection, and does not answer */
	PROBE_CLOSES,      /* closes the connection without a word */
	PROBE_SPEAKS_TLS,
	PROBE_STRANGE,   /* something else than ZooKeeper answers */
	PROBE_NO_QUORUM, /* ZooKeeper that does not serve now */
};

struct probe {
	char address[64]; /* of those that were given */
	enum probe_met met;
	int error;        /* errno */
	char version[24]; /* "3.9.4"; "": it does not say */
	char mode[16];    /* "leader", "follower", "observer", "standalone"; "" */
	bool has_conf;
	int64_t tick_ms;                 /* by conf; 0: not told */
	int64_t shortest_ms, longest_ms; /* of sessions; 0: not told */
	int64_t connections;             /* maxClientCnxns, 0 for no limit; -1: not told */
	/* A session there has shown what is at ROOT/LC_MARK_NODE: `mark`, or nothing. */
	bool looked;
	struct lc_mark mark;
};

/* What reading the settings and the mark wants. */
struct probe_question {
	const char *root;        /* "/locks" */
	const char *credentials; /* "user:password", or NULL */
};

struct prober {
	int fd; /* readable: prober_read(); -1: not at work */
};

void prober_init(struct prober *prober);
/* "10.0.0.1:2181,[2001:db8::2]:2182", as of resolve.h. All are asked at the same time, and in less
 * than a minute all have ended. `question`: NULL for srvr alone, that is what is met. 0 or
 * -errno. */
int prober_begin(struct prober *prober, const char *addresses,
                 const struct probe_question *question);
/* The next answer. False: there is none now, or (fd -1) no more will come: for want of memory or
 * processes there may be fewer than addresses. */
bool prober_read(struct prober *prober, struct probe *ret_probe);
/* At work or not. The processes end with their work or with this one; the caller reaps. */
void prober_stop(struct prober *prober);

/* What was met, a part of a sentence. */
const char *probe_text(const struct probe *probe);
/* The ticks that a server has, in milliseconds; 0: not known. `ret_certain`: it has said so, or
 * its limits are 2 and 20 times the same; otherwise they were set, and this is a half. */
int64_t probe_tick(const struct probe *probe, bool *ret_certain);
/* The version is older than PROBE_SAFE. */
bool probe_forgets(const char *version);
/* Compares like strcmp(3), but number by number: "3.10.0" is more than "3.9.4". */
int probe_compare_versions(const char *a, const char *b);

#endif
