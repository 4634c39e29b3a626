/* SPDX-License-Identifier: MIT
 *
 * reload.h - another program takes over the mount without anybody losing anything: the one that
 * stands now where this one was started from. It does so in the same process, with the same
 * connection to the kernel and the same session.
 *
 *   [NONE] ──SIGUSR2──► [ASKED] ──a child starts the other program, which looks at a state──►
 *   [CHECKING] ──it says yes──► [SETTLING]: nobody begins to write any more; what is being
 *   written ends ──► the state is written, and looked at once more ──► exec
 *
 * Whatever goes wrong on the way, this program goes on, and says why. After the exec nothing may
 * go wrong: so the other program has done all that it does then before, but for the parts that
 * cannot be had twice.
 *
 * What one version writes and another one reads is said in state.h and ledger.c.
 */
#ifndef FS_RELOAD_H
#define FS_RELOAD_H

#include "face.h"
#include "keeper.h"
#include "ledger.h"

#include <poll.h>

enum reload_stage { RELOAD_NONE, RELOAD_ASKED, RELOAD_CHECKING, RELOAD_SETTLING };

struct reload {
	struct face *face;
	struct ledger *ledger;
	char **argv;
	char *program;             /* where this one was started from */
	struct keeper_crash crash; /* of the daemon before; signal 0: it made way */
	/* reload.c's own. */
	enum reload_stage stage;
	int64_t until_us;
	pid_t child;
	int output; /* the child's */
};

/* ---- who goes ---- */

/* `argv`: what the other program gets. */
void reload_init(struct reload *reload, char **argv);
void reload_finish(struct reload *reload);
/* Told to reload. */
void reload_ask(struct reload *reload);
/* Not any more, if it was asked to. */
void reload_give_up(struct reload *reload, const char *why);
/* A child has ended. */
void reload_reap(struct reload *reload, pid_t pid, int status);
/* For the loop: how long until reload_process() has something to do, which is called in every
 * turn while a reload is under way. `settled`: nothing is half done in the loop itself. It
 * returns, unless it succeeds. */
bool reload_is_under_way(const struct reload *reload);
int64_t reload_wait(const struct reload *reload);
void reload_process(struct reload *reload, bool settled);

/* ---- who comes ---- */

enum reload_role {
	RELOAD_STARTS, /* there is nothing to take over */
	RELOAD_CHECKS, /* is only asked whether it could */
	RELOAD_ADOPTS,
};

/* What this process is to do, by its first argument and its environment. If it is not to start, the
 * store is that of the other process, carry->loads, and *ret_mountpoint was read from it. */
enum reload_role reload_role(int *argc, char ***argv, bool crashed, struct store **ret_store,
                             struct carry *ret_carry, const char **ret_mountpoint);
/* All the rest. If it checks, it says so, and ends the process. */
void reload_read(struct reload *reload, struct carry *carry);
/* It serves: who polls is to ask again. */
void reload_done(struct reload *reload);

#endif
