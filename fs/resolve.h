/* SPDX-License-Identifier: MIT
 *
 * resolve.h - from the servers' names to their addresses, once, before the loop
 * begins: looking names up may wait, and the loop may not.
 */
#ifndef FS_RESOLVE_H
#define FS_RESOLVE_H

#define RESOLVE_DEFAULT_PORT "2181"

/* "zk1,zk2:2182" -> "10.0.0.1:2181,10.0.0.2:2182,[2001:db8::2]:2182", malloced.
 * NULL when no name has an address; what was wrong has been said. */
char *resolve_servers(const char *servers);

#endif
