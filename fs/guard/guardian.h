/* SPDX-License-Identifier: MIT
 *
 * guardian.h - stops the processes that lose their lock, so early that they are gone when the next
 * holder starts: -o on_lost=term|kill.
 *
 * A small process of its own, forked before anything else is set up, so that it acts
 * when the lease runs out whether the daemon is running, stopped or dead. Both share a page: the
 * daemon writes the lease's deadline and the holders; the guardian reads it when the deadline that
 * it knows comes near.
 *
 *            deadline - 2.5 s        - 0.8 s        deadline
 *   term         SIGTERM                SIGKILL (2 s after SIGTERM)
 *   kill                                SIGKILL
 *
 * A holder with a longest time (most=) has a deadline of its own. The lock is not given away before
 * the holder is gone, so it is stopped from that deadline on, not before.
 *
 * The opener's turn comes at once. If its files are so many that nobody can see in a moment whether
 * the lock's file is among them, that is taken for open. The search for all others takes longer the
 * more processes and files there are on the machine.
 *
 * Of the processes that have the lost lock file open, these are stopped: its opener, the opener's
 * descendants, and processes without a known ancestor (a child outlives its parent): once the
 * opener has ended, all, and once it has closed the file, those that are younger. Never
 *
 *   - a process whose nearest opener of that lock file still holds the lock;
 *   - a process that the taker's own user may not signal, by kill(2);
 *   - an unrelated process, while the opener has the file open: a descriptor can be sent to any
 *     process.
 *
 * For a `flock` file the opener is the process that took the lock by fcntl(2), or opened the file
 * that flock(2) locks; processes that have it open and hold nothing are left alone.
 *
 * Each signal is a line in the log. The guardian writes it itself, since the daemon may be dead.
 *
 * A file can be open where /proc does not show it (on its way over a socket, behind a
 * mapping, with io_uring): no process is stopped for that. So the lost entry is not deleted when no
 * process is found, but by the last close, or when the session would have ended.
 */
#ifndef FS_GUARDIAN_H
#define FS_GUARDIAN_H

#include "host/process.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum on_lost { ON_LOST_NONE, ON_LOST_TERM, ON_LOST_KILL };

#define GUARDIAN_TERM_LEAD_US 2500000
#define GUARDIAN_KILL_LEAD_US 800000
#define GUARDIAN_TERM_TO_KILL_US 2000000

static inline const char *guardian_on_lost_name(enum on_lost on_lost)
{
	switch (on_lost) {
	case ON_LOST_NONE:
		return "none";
	case ON_LOST_TERM:
		return "term";
	case ON_LOST_KILL:
		return "kill";
	}
	return NULL;
}

/* How long before the deadline it begins; 0 for none. */
static inline int64_t guardian_lead_us(enum on_lost on_lost)
{
	switch (on_lost) {
	case ON_LOST_NONE:
		return 0;
	case ON_LOST_TERM:
		return GUARDIAN_TERM_LEAD_US;
	case ON_LOST_KILL:
		return GUARDIAN_KILL_LEAD_US;
	}
	return 0;
}

/* The daemon itself reports a holder that has held for too long. The guardian waits so long for
 * that. */
#define GUARDIAN_GRACE_US 200000

/* More holders than this are not guarded: the caller must not grant them. */
#define GUARDIAN_SLOTS 16384
/* So many of them all users but root leave free. */
#define GUARDIAN_ROOT_SLOTS 1024

struct guardian;

/* False: it is said why. The child closes every descriptor it has but its own. Where nobody could
 * be stopped (trial.h) it is as one that is dead, and the log says why. */
bool guardian_start(enum on_lost on_lost, struct guardian **ret_guardian);
/* `clean`: there is no holder any more. Otherwise the guardian stays until the deadline and acts.
 * */
void guardian_end(struct guardian *guardian, bool clean);

/* All for the daemon; a NULL guardian is no guardian. */
/* Says which mount's lock files these are: mountpoint_identify(). */
void guardian_mounted(struct guardian *guardian, int mount_id, const char *device);
/* Without a deadline, as at first, it takes nobody for a loser. */
void guardian_deadline(struct guardian *guardian, int64_t deadline_us);
/* The guardian was told to end clean; who told it did not live to record that. False for NULL. */
bool guardian_leaves(const struct guardian *guardian);
/* A process that has a lock file open. */
struct guarded {
	uid_t uid; /* of the taker; another user's process may have got the file */
	struct process process;
	uint64_t number;  /* process_number() of it; 0: it is asked for, since it waits for us */
	const char *lock; /* for the log */
	uint64_t ino;     /* of the lock file */
	int64_t until_us; /* it may hold so long; INT64_MAX */
};

/* The process holds now. Returns a slot; -ENOLCK: too many are guarded; -ESHUTDOWN: the guardian is
 * dead. While its request is pending, or with its number. */
int guardian_hold(struct guardian *guardian, const struct guarded *who);
/* The process has a lock file open that needs no hold, and must not be taken for a loser. Returns a
 * slot, or as above. While its request is pending. */
int guardian_see(struct guardian *guardian, const struct guarded *who);
/* The slot's process may hold until another time. */
void guardian_limit(struct guardian *guardian, int slot, int64_t until_us);
/* The slot holds no more, and stays until guardian_free_released(). */
void guardian_release(struct guardian *guardian, int slot);
/* The turn is recorded: the slots that were released in it may be used again. A process that takes
 * over finds the slots of all recorded holders, and frees the others. */
void guardian_free_released(struct guardian *guardian);
/* The lock is lost: at the deadline, or before it, by an eviction or with the session. Processes
 * that have the lock file open are stopped until the slot is released. */
void guardian_lose(struct guardian *guardian, int slot);

/* The descriptor that the loop polls, -1 without a guardian. The guardian says nothing, so what can
 * be read is its end: when it is readable ask guardian_lives(). If it is false guardian_hold()
 * fails from then on. */
int guardian_fd(const struct guardian *guardian);
/* A descriptor, too: of what both halves share. */
int guardian_page(const struct guardian *guardian);
bool guardian_lives(struct guardian *guardian);

/* The other half goes on; a slot that somebody has, or -1. */
void guardian_save_load(struct codec *codec, struct guardian **guardian);
int guardian_slot_save_load(struct codec *codec, struct guardian *guardian, int slot);
/* All owners of slots were read. The other slots had no recorded owner when the daemon crashed:
 * they are free. */
void guardian_loaded(struct guardian *guardian);
/* The guardian stops, or has stopped, the slot's process. */
bool guardian_has_lost(const struct guardian *guardian, int slot);
/* The signal that it was about to send, or has sent, to a process that has the slot's lock file
 * open; 0: none. Known before that process can have ended. */
int guardian_stopped(const struct guardian *guardian, int slot);
/* Whether it may signal the processes of that user. */
bool guardian_reaches(const struct guardian *guardian, uid_t uid);

/* Processes so far; also of a guardian that is dead by now. */
struct guardian_counts {
	unsigned long terms, kills; /* that were sent SIGTERM, SIGKILL */
	unsigned long spared;       /* that were to be, and may not be signalled */
	unsigned long looks_ended;  /* of its own children, killed by others */
};
struct guardian_counts guardian_counts(const struct guardian *guardian);

#endif
