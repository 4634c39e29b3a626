/* SPDX-License-Identifier: MIT
 *
 * resolve.h - from the servers' names to their addresses, in a process of its own:
 * looking names up may take minutes, and the loop waits for nothing.
 */
#ifndef FS_RESOLVE_H
#define FS_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>

#define RESOLVE_DEFAULT_PORT "2181"

struct resolver {
	int fd; /* readable: resolver_read(); -1: not at work */
	size_t len;
	char *text; /* as far as it was read */
};

void resolver_init(struct resolver *resolver);
/* "zk1,zk2:2182" as checked by options.c. 0 or -errno. */
int resolver_begin(struct resolver *resolver, const char *servers);
/* True: it is finished. *ret_addresses: "10.0.0.1:2181,[2001:db8::2]:2182", sorted, malloced,
 * or NULL when no name has one. *ret_problem: the problem with a name, malloced, or NULL. */
bool resolver_read(struct resolver *resolver, char **ret_addresses, char **ret_problem);
/* At work or not. The process ends when it finds that nobody listens; the caller reaps. */
void resolver_stop(struct resolver *resolver);

/* Whether `now` has an address that `before` has not. */
bool resolve_adds(const char *now, const char *before);

#endif
