/* SPDX-License-Identifier: MIT
 *
 * sim.h - one run: the common header of the simulation.
 *
 *   plan       the choices of a seed: sizes, timeouts, which faults, how often
 *   mount      an engine on its host, and its lease, computed independently
 *   legacy     the records that an engine leaves to the next one when it dies
 *   user       programs that take, hold and leave
 *   question   their questions and changes
 *   outsider   other clients' entries, operators that evict
 *   fault      faults, and how long they last
 *   order      which taker has to wait for which, now and before
 *   ledger     the locks' data, and its changes
 *   marks      evicted entries
 *   judge      the invariants
 *   sim        the course of a run, and main()
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "host.h"
#include "lease.h"
#include "trace.h"

#define MOUNTS_MAX 4
#define LOCKS_MAX 4
#define PID_BASE 1000 /* a taker's pid is its number from here */
#define SIM_ROOT "/locks"

struct sim;

enum fault_kind {
	FAULT_CUT,        /* a connection, and some of what was under way */
	FAULT_CUT_BEFORE, /* nothing under way arrives */
	FAULT_CUT_AFTER,  /* all of it arrives, no answer does */
	FAULT_STALL_UP,   /* one direction is silent, then delivers all at once */
	FAULT_STALL_DOWN,
	FAULT_STALL_BOTH,
	FAULT_HANG, /* a server stops for a while */
	FAULT_CRASH,
	FAULT_ISOLATE,  /* a server, the leader perhaps, from its peers */
	FAULT_LINK,     /* a follower lags or is not heard */
	FAULT_GREETING, /* a handshake's answer is late; then the server is cut off */
	FAULT_ELECT,
	FAULT_PAUSE,  /* SIGSTOP of a mount */
	FAULT_REFUSE, /* a write gets a definite no */
	FAULT_CRASH_MOUNT,
	FAULT_EVICT,  /* an entry is deleted by somebody else */
	FAULT_REMAKE, /* a lock is removed with all entries and made again */
	FAULT_KILL_SESSION,
	FAULT_STILL,   /* a mount's machine is paused, and its clocks with it */
	FAULT_SUSPECT, /* its clock is doubted without a reason */
	FAULT_SLEW,    /* and runs at another rate, as is allowed */
	FAULT_KINDS,
};

struct plan {
	const char *profile;
	int mounts, locks, programs; /* programs of each mount */
	int64_t timeout_us, tick_us;
	int64_t chaos_us;
	int64_t think_us, hold_us; /* at most */
	unsigned long_holds;       /* per mille; the others take a tenth at most */
	unsigned shared;           /* per mille of the takers; 0: none */
	unsigned upgrades;         /* per mille of them want it exclusively, then */
	unsigned slots_max;        /* locks have so many at most; 1: nobody changes them */
	unsigned data, evictions;  /* per mille of the takes go with a question about that */
	unsigned curious;          /* per mille of the holders want to know who waits */
	unsigned limits;           /* per mille of the holders may hold for so long only */
	int64_t fault_gap_us;      /* on average; 0: no faults */
	unsigned weight[FAULT_KINDS];
	int outsiders;
	bool foreign_families; /* entries that a mount may refuse to queue with */
	bool near_overflow;
	bool namesakes;       /* all mounts call themselves the same; others use their marks */
	unsigned copies;      /* per mille of the outsiders' entries bear the UUID of a taker's */
	bool evict_waiters;   /* operators leave holders alone */
	bool lossless;        /* nothing happens by which anybody may lose anything */
	bool short_sessions;  /* too short for a lease: every mount has to refuse them */
	int64_t loss_lead_us; /* who loses a lock is stopped, which takes time */
	unsigned reloads;     /* per mille of the turns, before which a mount goes on in another
	                       * process */
	unsigned deaths;      /* per mille of the turns, in which it is killed and adopted */
	bool records;         /* its records are kept, and judged */
	int64_t jump_us;      /* mounts may be stopped in the middle of a turn, so long */
	struct world_config world;
};

struct lock_state {
	const char *name;              /* for the engine */
	const char *path;              /* for the world */
	int64_t absent_us, present_us; /* last time seen so; -1: never */
	int64_t last_token[2];         /* the highest that was granted, by mode */
	int64_t incompatible_us;       /* last time that an incompatible entry stood there */
	/* Last time that a taker of that mode would have had to wait there, own leavers aside. */
	int64_t contended_us[MOUNTS_MAX][2];
	struct span *spans;
	struct era *eras;
	struct deed *deeds;
};

enum taker_phase { T_WAITING, T_HELD, T_LOST, T_FAILED, T_LEFT };

struct taker {
	struct sim *sim;
	struct mount *mount;
	struct program *program;
	struct lock_state *lock;
	struct lc_taker *lc;
	uint64_t id;
	enum lc_mode mode;
	enum taker_phase phase;
	uint64_t taken_in, left_in; /* mount->turns then */
	bool refused;               /* at once */
	int pid, life;
	int64_t wait_us, took_us, took_running_us, took_clock_us;
	int64_t token, granted_us, granted_clock_us;
	int64_t until_us;          /* it may hold until then, by its mount's clock */
	int64_t unfree_us;         /* does not wait: last time that it would have had to */
	unsigned most_slots;       /* granted: there were, since it queued */
	int64_t meant, meant_us;   /* only that lock will do; known so since */
	bool told;                 /* taken() was called */
	int64_t unheld_running_us; /* lc_holds() was seen false; -1: not yet */
	int64_t evicted_us;        /* -1: not */
	int64_t evicted_token;     /* which of its entries; 0: none ever */
	bool evicted_alone;        /* one of them was deleted by itself, not with its session */
	int64_t lost_clock_us;     /* T_LOST: since when */
	bool evicted_front;        /* it was its mount's first waiter then */
	bool forfeited;            /* T_LOST, and its entry has to stay until it leaves */
	bool guarding;             /* T_LOST: its entry was there, and has to stay until then */
	int64_t entry_token, entry_session;   /* as last seen */
	uint64_t look;                        /* in this look */
	uint64_t seen;                        /* in this tree */
	int64_t former_token, former_session; /* the one before it, of an earlier session */
	int64_t alone_since_us;               /* waits and has no entry; -1 */
	int entries;                          /* seen at the last look */
	struct taker *replaces, *replaced_by; /* whose place it is to take; and the way back */
	int64_t marked_us, marked_token;      /* which entry, and when; -1: none */
	bool watches, at_ease;                /* wants to be told; nobody waited when it asked */
	int64_t behind_since_us;              /* somebody waits behind it; 0: not */
	int64_t behind_us;                    /* last time that somebody did */
	bool upgrades;                        /* it was to take another's place */
	int64_t barred_us;                    /* last time that an exclusive one stood before it */
	struct taker *prev, *next;            /* all that have not left */
	struct taker *held_prev, *held_next;
};

enum question_kind {
	Q_STAT,
	Q_LIST,
	Q_ENTRIES,
	Q_MKDIR,
	Q_RMDIR,
	Q_CONFIRM,
	Q_WAITERS,
	Q_VALUE,
	Q_SET_VALUE,
	Q_CHANGE,
	Q_EVICT,
	Q_TOKEN,
};

/* To a lock's data. */
struct deed {
	struct mount *mount;
	struct taker *taker; /* its value; NULL: attributes */
	struct lc_change change;
	const char *text;
	bool append, answered, cancelled;
	int done, err;
	const struct era *done_in; /* which began with it */
	int64_t asked_us;
	struct deed *prev, *next; /* of its lock */
};

struct question {
	struct sim *sim;
	struct mount *mount;
	enum question_kind kind;
	struct lock_state *lock;
	struct taker *taker;
	struct deed *deed;
	uid_t uid;         /* who asks */
	const char *znode; /* EVICT */
	int64_t token;     /* of that entry */
	struct lc_call *call;
	bool root;     /* LIST: of the root, not of the lock */
	int64_t *seen; /*   the czxids of what its server had in it when it was asked, */
	int seen_count;
	uint64_t seen_on; /*   and on which connection; 0: none */
	int64_t asked_us, asked_running_us;
	bool swallowed;               /* MUTATE_swallow_done */
	bool waiters;                 /* Q_WAITERS: the answer */
	bool entry_gone;              /* CONFIRM: before it was asked */
	struct question *prev, *next; /* all that are not answered */
};

struct mount {
	struct host host;
	struct sim *sim;
	int life;
	struct {
		int64_t czxid, since_us;
	} known[LOCKS_MAX]; /* locks, as it was told */
	bool lease_blurred; /* the engine did not take a write for evidence */
	bool drained, forfeited;
	bool suspects; /* that its clock stood still; the engine has not asked yet */
	struct rng jump_rng, reload_rng, death_rng;
	bool vanishing; /* what its engine says is not heard any more */
	/* How far this turn comes: it dies before it is recorded, or before anything is sent. */
	enum death { UNDECIDED, LIVES, DIES_BEFORE, DIES_UNSENT, DIES_SENT } death;
	struct legacy_record *legacy;
	uint64_t turns;          /* that are recorded */
	struct lease last_lease; /* as it was then */
	bool suspected;          /* its engine has asked since then, and was told so */
	int64_t deadline_us;     /* as the engine has told it */
	struct lease lease;      /* from what was answered, reckoned apart */
	int64_t lease_session;
	int64_t lease_over_us; /* last time that it was over, by the mount's clock; -1 */
	int64_t trouble_us;    /* the last moment of it so far */
	int64_t poked_us;      /* somebody else has written to its heartbeat node */
	int64_t spin_window_us;
	unsigned spin_turns;
	struct {
		unsigned long takes, grants, losses, failures, abandoned;
	} told; /* by this engine */
};

struct sim_totals {
	unsigned long seeds, steps, takes, grants, shared_grants, upgrades, losses;
	unsigned long eagain, etimedout, enolck, eshutdown, ehostunreach, eproto, enoent, ecanceled,
		edeadlk;
	unsigned long questions, marks, stirs, overdue;
	unsigned long reloads, not_reloaded, unclaimed, deaths;
	unsigned long unreachable, session_ends, virtual_s, transactions, transaction_ops;
	unsigned long faults[FAULT_KINDS];
};

struct sim {
	uint64_t seed;
	struct plan plan;
	struct agenda agenda;
	struct rng rng;
	struct arena arena;
	struct world world;
	struct mount mounts[MOUNTS_MAX];
	struct lock_state locks[LOCKS_MAX];
	struct taker **all; /* by pid - PID_BASE */
	int taker_count, taker_room;
	struct taker *takers, *held;
	struct question *questions;
	struct program *programs;
	int program_count, programs_left;
	struct outsider *outsiders;
	int outsiders_left;
	bool stopping; /* nobody takes any more */
	bool faulty;   /* faults may begin */
	int64_t faults_end_us;
	bool inside_call; /* a callback now is one too many */
	uint64_t changes_seen, looks, trees_seen;
	uint64_t values; /* written so far: each is another one */
	char violation[512];
	struct sim_totals *totals;
};

/* The first one counts. */
void sim_violation(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool sim_run(uint64_t seed, struct sim_totals *totals, enum trace_mode mode, char *ret_violation,
             size_t size);

/* ---- plan.c ---- */

void plan_choose(struct plan *plan, uint64_t seed, struct rng *rng);

/* ---- mount.c ---- */

void mount_begin(struct mount *mount, struct sim *sim, int index);
void mount_start(struct mount *mount);
/* As after SIGKILL, or farewell: as umount does. */
void mount_stop(struct mount *mount, bool farewell);
/* Its engine goes on in another process, or does not. */
void mount_reload(struct mount *mount);
/* By what the ensemble has answered, nobody on it may rely on a lock now, and yet none is lost. */
bool mount_doubted(const struct mount *mount);
/* Perhaps it is stopped for a moment right now, whatever it is doing. */
void mount_stumble(struct mount *mount);
/* By what the ensemble has answered, the lease was over at some moment since then. */
bool mount_lease_was_over(const struct mount *mount, int64_t since_clock_us);
/* Until when it may notice a fault. */
int64_t mount_trouble(struct mount *mount);

/* ---- legacy.c ---- */

void legacy_forget(struct mount *mount);
/* At the end of a turn. */
void legacy_keep(struct mount *mount);
/* As of the last turn that ended. The state is the caller's. */
void legacy_join(struct mount *mount, void **ret_state, size_t *ret_len);

/* ---- user.c ---- */

void users_begin(struct sim *sim);
void users_stop(struct sim *sim);
void users_finish(struct sim *sim);
/* The mount is gone, and everything on it. */
void users_abandon(struct mount *mount);
/* Another engine has adopted their takers. Some of them have died meanwhile. `died`: what they have
 * asked for since the last turn is not known there. */
void users_claim(struct mount *mount, bool died);
/* It asks whether it still holds the lock. */
void user_confirm(struct taker *taker, int64_t delay_us);
const char *taker_phase_name(enum taker_phase phase);

/* The answer of lc_has_waiters(). */
void user_waiters_told(struct taker *taker, int err, bool waiters);

/* ---- question.c ---- */

void question_something(struct mount *mount, struct rng *rng);
void question_data(struct mount *mount, struct rng *rng);
void question_evict(struct mount *mount, struct rng *rng);
void question_holder(struct taker *taker, enum question_kind kind, struct rng *rng);
/* All of a mount, or, with NULL, of a taker. */
void questions_cancel(struct sim *sim, const struct mount *mount, const struct taker *taker);

/* ---- outsider.c ---- */

void outsiders_begin(struct sim *sim);
/* Somebody takes their entry of that path away, if it is theirs. */
void outsider_asked_away(struct sim *sim, const char *path);
/* Owners, who say how many may hold a lock. */
void owners_begin(struct sim *sim);
/* Delete a taker's entry, as an operator would. */
void outsider_evict(struct sim *sim);
void outsider_remake(struct sim *sim);
void outsider_make(struct sim *sim, struct lock_state *lock);
void outsider_kill_session(struct sim *sim);

/* ---- fault.c ---- */

extern const char *const fault_names[FAULT_KINDS];
void faults_begin(struct sim *sim);

/* ---- order.c ---- */

unsigned order_shape(struct node *node);
/* As in its name; WHO_FOREIGN. */
int order_pid(struct node *node);
/* An entry of this lock has a number that its maker chose. */
bool order_has_stray(struct node *parent);
/* Of a lock, by its data. */
unsigned order_slots(struct node *node);

/* The entries before a taker. */
struct crowd {
	unsigned all, exclusive;
	unsigned apart; /* shared or foreign: they fill no slot */
};
void crowd_add(struct crowd *crowd, unsigned shape);
bool crowd_admits(const struct crowd *crowd, enum lc_mode mode, unsigned slots);

/* Before the committed tree goes one further. */
void order_committing(struct sim *sim, const struct transaction *transaction);
/* At some moment since its entry came, all before it let it in. `ret_slots`: the most that
 * there were since. */
bool order_justified(const struct taker *taker, unsigned *ret_slots);

/* ---- ledger.c ---- */

void ledger_begin(struct sim *sim);
unsigned ledger_slots(const char *data, int len);
void ledger_committing(struct sim *sim, const struct transaction *transaction);
struct deed *ledger_change(struct mount *mount, struct lock_state *lock,
                           const struct lc_change *change);
struct deed *ledger_value(struct taker *taker, bool append);
void ledger_answered(struct question *question, int err);
/* A change was written to another lock than the one that it was meant for. */
bool ledger_met_another(const struct question *question);
void ledger_judge_slots(struct question *question, unsigned slots);
/* Whether that may be the number of slots that a question finds. */
bool ledger_had_slots(const struct question *question, unsigned slots);
void ledger_judge_value(struct question *question, const char *value, size_t len);

/* ---- marks.c ---- */

void marks_committing(struct sim *sim, const struct transaction *transaction);
void marks_asked(struct sim *sim, struct node *node);
/* Somebody was told that it will be gone. */
void marks_promised(const struct question *question);
void marks_judge_node(struct sim *sim, const struct node *node);
/* Its entry is marked. */
bool marks_taken_away(const struct taker *taker);
void marks_judge(struct taker *taker);

/* ---- judge.c ---- */

void judge_begin(struct sim *sim);
void judge_step(struct sim *sim); /* after everything that happens */
void judge_granted(struct taker *taker);
void judge_failed(struct taker *taker, int err);
void judge_lost(struct taker *taker);
void judge_asking(struct question *question);
void judge_answered(struct question *question, int err);
void judge_listing(struct question *question, const struct lc_listing *listing);
void judge_entries(struct question *question, const struct lc_entry_info *infos, size_t count);
/* Everything healed, everybody has left: what is left over? */
bool judge_all_clear(struct sim *sim);
/* Then: what the engines have counted is what was told. */
void judge_counters(struct sim *sim);
void judge_leftovers(struct sim *sim);
/* The taker whose entry this is, or NULL. */
struct taker *judge_owner(struct sim *sim, struct node *node);
bool judge_is_entry(struct node *node);
/* Its mount may pass by the entry of that pid: it is going to be deleted. */
bool judge_passes(const struct taker *taker, int pid);
int64_t judge_find_token(const struct taker *taker);
struct node *judge_entry(const struct tree *tree, const struct taker *taker);

#endif
