/* SPDX-License-Identifier: MIT
 *
 * supervisor_run.h - the supervisor's half: the process itself, and the words of the daemon to it.
 */
#ifndef FS_SUPERVISOR_RUN_H
#define FS_SUPERVISOR_RUN_H

#include "daemon/supervisor.h"

#include <sys/types.h>

/* A message over the socket. After a reload the two ends may be of different versions. So the
 * supervisor passes over words that it does not know, and no version changes the size or the
 * meaning of a word. The same holds for the environment below. */
struct supervisor_word {
	enum { SUPERVISOR_HAS, SUPERVISOR_SERVES, SUPERVISOR_LEAVES, SUPERVISOR_MAKES_WAY } word;
	/* SUPERVISOR_HAS: which descriptor (enum supervisor_gift) comes with it, and its number
	 * there. */
	int gift, number;
};

/* In the environment of a daemon that is started again: the number of its socket to the supervisor,
 * the signal that ended the one before, and when; and the number of the store. */
#define SUPERVISOR_ENVIRONMENT "ZKLOCKFS_KEEPER"
#define SUPERVISOR_ENVIRONMENT_STORE "ZKLOCKFS_STATE"

/* The signals of signals.h are blocked before. `socket`: to the daemon. */
_Noreturn void supervisor_run(const struct supervisor_config *config, pid_t daemon, int socket);

#endif
