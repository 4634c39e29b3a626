/* SPDX-License-Identifier: MIT
 *
 * servers.h - where the servers are. Their names are looked up at the start, as soon as contact is
 * lost, again and again until it is back, and every so often while it is good: servers move, one
 * after the other, and who keeps the addresses of the start loses all of them in turn. An address
 * that no name has any more is given up, since it may belong to another ensemble by now.
 * While there is no contact the servers are asked what is wrong with them, for people.
 */
#ifndef FS_SERVERS_H
#define FS_SERVERS_H

#include "pure/codec.h"
#include "setup/probe.h"
#include "setup/resolve.h"

#include <poll.h>
#include <stdint.h>

struct lc;

/* One of the names. */
struct server_name {
	char *addresses; /* as it had them last; NULL: it has none, or was never found */
	char *problem;   /* with the last look at it, or NULL */
};

struct servers {
	const char *names; /* host[:port],... */
	struct server_name *each;
	size_t count;
	bool named;      /* not all of them are numbers */
	char *addresses; /* those in use; NULL: none was found yet */
	bool recorded;   /*   of other names perhaps: not looked up by this program yet */
	bool unrecorded; /*   they are new: a successor must not go to the old ones */
	char *tried;     /* what each server did, without contact, for people; NULL: not known */
	char *trying;    /*   as far as they have answered */
	/* Tells the engine that the servers have these addresses now; NULL: there is none yet. 0;
	 * or -errno: it is told again later. */
	int (*moved)(void *ctx, const char *addresses);
	void *ctx;
	struct resolver resolver;
	struct prober prober;
	bool away;           /* there is no contact */
	unsigned looks;      /*   and so often was looked since */
	int64_t period_us;   /* between two looks at the names while contact is good */
	int64_t next_us;     /* the next one; INT64_MAX: there is nothing to look for */
	int64_t patience_us; /* so long the answers of names wait for those of others */
	int64_t slow_us;     /* answers are taken before all are there; INT64_MAX: taken */
	unsigned failures;   /* how often no name had an address */
	int error;           /* why the names could not be looked at; 0: they were, the last time */
};

/* False: no memory. servers_finish() follows in either case. */
bool servers_init(struct servers *servers, const char *names, int64_t period_us);
void servers_finish(struct servers *servers);

/* The loop calls both, like lc_prepare() and lc_process(). `lc`: NULL until there are addresses. */
enum { SERVERS_RESOLVER, SERVERS_PROBER, SERVERS_POLLED };
int64_t servers_prepare(const struct servers *servers, int64_t now_us,
                        struct pollfd ret_fds[SERVERS_POLLED]);
void servers_process(struct servers *servers, const struct lc *lc, int64_t now_us,
                     const struct pollfd fds[SERVERS_POLLED]);

/* What is wrong with the names, for people: "zk1: Name or service not known; ..."; "" for nothing.
 * Returns `text`. */
const char *servers_problems(const struct servers *servers, char *text, size_t size);
/* Without contact: tries the servers at once, unless `tried` is known or under way. */
void servers_try(struct servers *servers);

void servers_save_load(struct codec *codec, struct servers *servers);

#endif
