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
#include "guard/guardian.h"
#include "request/frontend.h"

#include <poll.h>

struct options;

enum reload_stage { RELOAD_NONE, RELOAD_ASKED, RELOAD_CHECKING, RELOAD_SETTLING };

struct reload {
	struct frontend *front;
	struct mount_records *mount_records;
	char **argv;
	char *program;                 /* the path of this program */
	struct supervisor_crash crash; /* of the daemon before; signal 0: it was a planned reload */
	enum on_lost on_lost, was; /* what these options ask for; what the mount's guardian does */
	enum reload_stage stage;
	/* Used in reload.c alone. */
	char changes[512]; /* options_changes() */
	char *args;        /* argv as the records have it, */
	size_t args_len;
	char *former;  /*   and those that the mount ran with before; or NULL */
	char **next;   /* the argv of the program that comes, if it has another one; malloced */
	char why[256]; /* why the last reload failed */
	int64_t until_us;
	pid_t child;
	int output; /* the child's */
};

/* ---- the program that goes ---- */

/* `argv`: the arguments of the mount. */
void reload_init(struct reload *reload, char **argv);
void reload_finish(struct reload *reload);
/* Begins a reload, at the next turn. */
void reload_ask(struct reload *reload);
/* The same, with these arguments (host/args.h) for the other program. 0 or -errno. */
int reload_change(struct reload *reload, const char *args, size_t len);
/* Ends a reload that is under way, without success. */
void reload_give_up(struct reload *reload, const char *why);
/* Hears that this child of the daemon has ended. */
void reload_reap(struct reload *reload, pid_t pid, int status);
/* reload_wait() says how long until reload_process() has something to do. The loop calls both in
 * every turn while a reload is under way. `settled`: the loop itself has nothing half done. If the
 * reload succeeds, reload_process() does not return. */
int64_t reload_wait(const struct reload *reload);
void reload_process(struct reload *reload, bool settled);

/* ---- the program that comes ---- */

/* Whether this process takes over from another program, or only says whether it could
 * (`checks`), by its first argument and its environment. Then: the store of that program, a
 * codec to read it, and what the records have of mount point and arguments. After a crash the
 * arguments are these, and not those that the supervisor gives, which has started the mount:
 * *ret_argv, for free(3). */
bool reload_adopts(struct reload *reload, struct mount_records *mount_records, int *argc,
                   char ***argv, struct store **ret_store, struct codec *ret_codec,
                   char ***ret_argv);
/* Compares these options with those of the mount. If they must not take their place:
 * codec->give_up(). */
void reload_compare(struct reload *reload, struct mount_records *mount_records, struct codec *codec,
                    const struct options *options);
/* Reads all objects. To check, it then says yes, and ends the process. */
void reload_read(struct reload *reload, struct codec *codec);
/* This program serves: all pollers are to poll again, and who loses a lock is stopped as the
 * options say. */
void reload_done(struct reload *reload);

#endif
