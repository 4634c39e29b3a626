/* SPDX-License-Identifier: MIT
 *
 * story.h - what one taker has gone through, from its request to the end of its hold: a line in
 * the log for each step that is wanted there, and at the end one in the history.
 */
#ifndef FS_STORY_H
#define FS_STORY_H

#include "host/family.h"
#include "tree/history.h"

/* The stories of all takers of a mount. */
struct stories {
	struct lc *lc; /* NULL: it is gone */
	int64_t (*clock_us)(void);
	bool log_takes, audit; /* options */
	bool leaves;           /* the mount: locks lost from now on are lost by that */
	struct history history;
	unsigned long stopped; /* holds that ended since their processes were stopped */
};

/* Part of a hold; all zero: it has not begun. */
struct story {
	struct stories *of;
	const char *lock; /* as long as the hold */
	struct caller caller;
	uid_t uid;
	enum lc_mode mode;
	int64_t asked_us, granted_us; /* 0: not granted */
	int64_t since_ms;
	enum history_end end;
	int stopped;       /* the last signal to a holder, since the lock was to be lost; 0: none */
	const char *cause; /* LOST, STOPPED: in words */
	char *by;          /* EVICTED: by whom */
	char *after; /* whose session had ended before the grant; NULL: nobody's that is known */
};

/* Somebody asks for the lock. */
void story_begin(struct story *story, struct stories *stories, const char *lock, enum lc_mode mode,
                 const struct caller *caller, uid_t uid);
/* In the order in which they may come; `taker` is as it was before the step. */
void story_evicted(struct story *story, const char *by);
void story_refused(const struct story *story, int error);
void story_granted(struct story *story, const struct lc_taker *taker);
/* The session of the one ahead has ended. */
void story_after(struct story *story, const struct lc_ahead *ahead);
/* `cause`: in words; NULL: it lies with the ensemble. */
void story_lost(struct story *story, const struct lc_taker *taker, const char *cause);
/* A holder parts that was sent this signal by the guardian; 0: none. */
void story_stopped(struct story *story, int signal);
/* The mount leaves. This is the first of so many lost locks whose files are still open. */
void story_left_open(const struct story *story, unsigned count, bool waits);
/* The last holder gives it up. `life`: as of family_watch(). */
void story_parted(struct story *story, pid_t pid, int life);
/* Nothing comes after this. `taker`: NULL if the engine is gone. */
void story_end(struct story *story, const struct lc_taker *taker);

/* A story goes on; of that lock, if it is read. */
void story_carry(struct carry *carry, struct story *story, struct stories *stories,
                 const char *lock);

/* A refusal without a story. `error`: negative; `why`: in words, NULL for the usual ones. */
void story_refuse(const struct stories *stories, const char *lock, const struct caller *caller,
                  uid_t uid, int error, const char *why);

#endif
