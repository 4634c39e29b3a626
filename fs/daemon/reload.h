/* SPDX-License-Identifier: MIT
 *
 * reload.h - another program takes over the mount, and no lock or place is lost. It is the program
 * file that now has the path of this one. It runs in the same process, with the same connection to
 * the kernel and the same session.
 *
 *   [NONE] ──SIGUSR2──► [ASKED] ──a child runs the other program, which checks the records──►
 *   [CHECKING] ──it says yes──► [SETTLING]: no new write to the ensemble begins, writes under way
 *   end ──► the records are written ──► exec
 *
 * If anything goes wrong on the way, this program goes on, and the log says why. If the other
 * program does not serve after the exec, the supervisor starts this one again. Without a supervisor
 * nothing may go wrong then: so the records are checked once more right before the exec, and the
 * check does all that the other program does then, apart from what can be done only once.
 *
 * Which versions understand each other is decided in mount_records.c.
 */
#ifndef FS_RELOAD_H
#define FS_RELOAD_H

#include "daemon/mount_records.h"
#include "daemon/supervisor.h"
#include "host/memory.h"
#include "request/frontend.h"

#include <poll.h>

enum reload_stage { RELOAD_NONE, RELOAD_ASKED, RELOAD_CHECKING, RELOAD_SETTLING };

struct reload {
	struct frontend *front;
	struct mount_records *mount_records;
	char **argv;
	char *program;                 /* the path of this program */
	struct supervisor_crash crash; /* of the daemon before; signal 0: it was a planned reload */
	/* Used in reload.c alone. */
	enum reload_stage stage;
	int64_t until_us;
	pid_t child;
	int output;        /* the child's */
	bool wants_memory; /* CHECKING: more memory is to come */
	struct memory_spare spare;
};

/* ---- the program that goes ---- */

/* `argv`: the arguments of the other program. */
void reload_init(struct reload *reload, char **argv);
void reload_finish(struct reload *reload);
/* A reload is to begin. */
void reload_ask(struct reload *reload);
/* The reload, if one is under way, ends without success. */
void reload_give_up(struct reload *reload, const char *why);
/* A child has ended. */
void reload_reap(struct reload *reload, pid_t pid, int status);
/* For the loop: how long until reload_process() has something to do. It is called in every turn
 * while a reload is under way. `settled`: the loop itself has nothing half done. If the reload
 * succeeds, it does not return. */
bool reload_is_under_way(const struct reload *reload);
int64_t reload_wait(const struct reload *reload);
void reload_process(struct reload *reload, bool settled);

/* ---- the program that comes ---- */

/* Whether this process takes over from another program, or only says whether it could (`checks`),
 * by its first argument and its environment. Then: the store of that program, a codec to read it,
 * and the mount point that was read. */
bool reload_adopts(int *argc, char ***argv, bool crashed, struct store **ret_store,
                   struct codec *ret_codec, const char **ret_mountpoint);
/* Reads all objects. To check, it then says yes, and ends the process. */
void reload_read(struct reload *reload, struct codec *codec);
/* This program serves: all pollers are to poll again. */
void reload_done(struct reload *reload);

#endif
