/* SPDX-License-Identifier: MIT
 *
 * servers.h - where the servers are: looked up at the start, and again while none of them
 * answers, since they may have moved.
 */
#ifndef FS_SERVERS_H
#define FS_SERVERS_H

#include "resolve.h"
#include "carry.h"

#include <poll.h>
#include <stdint.h>

struct lc;

struct servers {
	const char *names; /* host[:port],... */
	char *addresses;   /* those in use; NULL: none was found yet */
	char *problem;     /* with a name, as last seen */
	/* They are elsewhere; set once somebody wants to know. 0 or -errno: later. */
	int (*moved)(void *ctx, const char *addresses);
	void *ctx;
	struct resolver resolver;
	int64_t patience_us; /* without contact, before names are looked up again */
	int64_t next_us;     /* when that is; INT64_MAX: contact is good */
	unsigned failures;   /* how often no name had an address */
};

void servers_init(struct servers *servers, const char *names, int64_t patience_us);
void servers_finish(struct servers *servers);

/* For the loop, as lc_prepare() and lc_process(). `lc`: NULL until there are addresses. */
int64_t servers_prepare(const struct servers *servers, int64_t now_us, struct pollfd *ret_pollfd);
void servers_process(struct servers *servers, const struct lc *lc, int64_t now_us, short revents);

void servers_carry(struct carry *carry, struct servers *servers);

#endif
