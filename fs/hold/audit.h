/* SPDX-License-Identifier: MIT
 *
 * audit.h - what one taker has gone through, from its request to the end of its hold: a line in
 * the log for each step that is wanted there, and at the end one in the history.
 */
#ifndef FS_AUDIT_H
#define FS_AUDIT_H

#include "host/process.h"
#include "tree/history.h"

/* Where the steps of all takers of a mount are written. */
struct audit_log {
	struct lc *lc; /* NULL: it is gone */
	int64_t (*clock_us)(void);
	bool log_takes, audit; /* options */
	bool leaves;           /* the mount: locks lost from now on are lost by that */
	struct history history;
	unsigned long stopped; /* holds that ended since their processes were stopped */
};

/* Part of a hold; all zero: it has not begun. */
struct audit {
	struct audit_log *log;
	const char *lock; /* as long as the hold */
	struct process caller;
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
void audit_begin(struct audit *audit, struct audit_log *log, const char *lock, enum lc_mode mode,
                 const struct process *caller, uid_t uid);
/* The steps of a taker, in the order in which they may come. `taker` is as before the step. */
void audit_evicted(struct audit *audit, const char *by);
void audit_refused(const struct audit *audit, int error);
void audit_granted(struct audit *audit, const struct lc_taker *taker);
/* The session of the one ahead has ended. */
void audit_after(struct audit *audit, const struct lc_ahead *ahead);
/* `cause`: in words; NULL: it lies with the ensemble. */
void audit_lost(struct audit *audit, const struct lc_taker *taker, const char *cause);
/* The guardian has sent this signal to a holder that parts; 0: none. */
void audit_stopped(struct audit *audit, int signal);
/* The mount leaves. This is the first of so many lost locks whose files are still open. */
void audit_left_open(const struct audit *audit, unsigned count, bool waits);
/* The last holder gives it up. `life`: as of process_watch(). */
void audit_parted(struct audit *audit, pid_t pid, int life);
/* The taker has ended. `taker`: NULL if the engine is gone. */
void audit_end(struct audit *audit, const struct lc_taker *taker);

/* `lock`: as for audit_begin(). */
void audit_save_load(struct codec *codec, struct audit *audit, struct audit_log *log,
                     const char *lock);

/* Logs a refusal for which no audit has begun. `error`: negative. `why`: in words; NULL: the
 * usual ones. */
void audit_refuse(const struct audit_log *log, const char *lock, const struct process *caller,
                  uid_t uid, int error, const char *why);

#endif
