/* SPDX-License-Identifier: MIT
 *
 * keeper_run.h - the keeper's own half: what that process does, and what the daemon says to it.
 */
#ifndef FS_KEEPER_RUN_H
#define FS_KEEPER_RUN_H

#include "keeper.h"

#include <sys/types.h>

/* A message over the socket. After a reload both ends may be of different versions: a word that one
 * does not know is passed over, and none changes what it means, or its size. The same holds for the
 * environment below. */
struct keeper_word {
	enum { KEEPER_HAS, KEEPER_SERVES, KEEPER_LEAVES } word;
	/* KEEPER_HAS: which descriptor (enum keeper_gift) comes with it, and its number there. */
	int gift, number;
};

/* In the environment of a daemon that is started again: the number of its socket to the keeper, the
 * signal that ended the one before, and when; and the number of the store. */
#define KEEPER_ENVIRONMENT "ZKLOCKFS_KEEPER"
#define KEEPER_ENVIRONMENT_STORE "ZKLOCKFS_STATE"

/* The signals that go on to the daemon are blocked. `socket`: to the daemon. */
_Noreturn void keeper_run(const struct keeper_config *config, pid_t daemon, int socket);

#endif
