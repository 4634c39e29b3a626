/* SPDX-License-Identifier: MIT
 *
 * keeper_run.h - the keeper's half: the process itself, and the words of the daemon to it.
 */
#ifndef FS_KEEPER_RUN_H
#define FS_KEEPER_RUN_H

#include "daemon/keeper.h"

#include <sys/types.h>

/* A message over the socket. After a reload the two ends may be of different versions. So the
 * keeper passes over words that it does not know, and no version changes the size or the meaning of
 * a word. The same holds for the environment below. */
struct keeper_word {
	enum { KEEPER_HAS, KEEPER_SERVES, KEEPER_LEAVES, KEEPER_MAKES_WAY } word;
	/* KEEPER_HAS: which descriptor (enum keeper_gift) comes with it, and its number there. */
	int gift, number;
};

/* In the environment of a daemon that is started again: the number of its socket to the keeper, the
 * signal that ended the one before, and when; and the number of the store. */
#define KEEPER_ENVIRONMENT "ZKLOCKFS_KEEPER"
#define KEEPER_ENVIRONMENT_STORE "ZKLOCKFS_STATE"

/* The signals of signals.h are blocked before. `socket`: to the daemon. */
_Noreturn void keeper_run(const struct keeper_config *config, pid_t daemon, int socket);

#endif
