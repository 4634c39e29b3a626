/* SPDX-License-Identifier: MIT
 *
 * keeper_run.h - the keeper's own half: what that process does, and what the daemon says to it.
 */
#ifndef FS_KEEPER_RUN_H
#define FS_KEEPER_RUN_H

#include <sys/types.h>

/* A message over the socket. */
struct keeper_word {
	enum { KEEPER_HAS, KEEPER_SERVES, KEEPER_LEAVES } word;
	/* KEEPER_HAS: which descriptor (enum keeper_gift) comes with it, and its number there. */
	int gift, number;
};

/* The signals that go on to the daemon are blocked. `socket`: to the daemon. */
_Noreturn void keeper_run(pid_t daemon, int socket);

#endif
