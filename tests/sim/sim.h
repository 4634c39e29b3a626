/* SPDX-License-Identifier: MIT
 *
 * sim.h - one run: the common header of the simulation.
 *
 *   plan       the choices of a seed: sizes, timeouts, kinds and number of faults
 *   mount      an engine on its host, and its lease, computed a second time
 *   user       programs that take, hold and leave
 *   question   questions and changes of these programs
 *   outsider   other clients' entries, owners and operators
 *   fault      faults, and how long they last
 *   stray      another ensemble, and mounts that are led there
 *   order      which taker has to wait for which, at present and in the past
 *   lock_data  the locks' data, and its changes
 *   marks      evicted entries
 *   judge      the invariants
 *   sim        the course of a run, and main()
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "host.h"
#include "pure/lease.h"
#include "trace.h"

#define MOUNTS_MAX 4
#define LOCKS_MAX 4
#define CROWD_MAX 2
#define PID_BASE 1000           /* a taker's pid is its number plus this */
#define PROCESS_BASE 1000000000 /* where takers have processes: the number of the first one */
#define SIM_ROOT "/locks"

struct sim;

enum fault_kind {
	FAULT_CUT,        /* a connection breaks; some packets under way arrive */
	FAULT_CUT_BEFORE, /* no packet under way arrives */
	FAULT_CUT_AFTER,  /* all packets under way arrive, and no answer */
	FAULT_STALL_UP,   /* one direction stalls, then delivers all packets at once */
	FAULT_STALL_DOWN,
	FAULT_STALL_BOTH,
	FAULT_HANG, /* a server stops for a while */
	FAULT_CRASH,
	FAULT_ISOLATE,  /* a server, perhaps the leader, is cut off from its peers */
	FAULT_LINK,     /* the link of a follower to the leader stalls */
	FAULT_GREETING, /* a handshake's answer is late; then the server is cut off */
	FAULT_ELECT,
	FAULT_PAUSE,  /* a mount is stopped by SIGSTOP */
	FAULT_REFUSE, /* some writes are refused */
	FAULT_CRASH_MOUNT,
	FAULT_EVICT,  /* somebody else deletes an entry */
	FAULT_REMAKE, /* a lock is removed with all entries and made again */
	FAULT_KILL_SESSION,
	FAULT_STILL,   /* a mount's machine and its clocks are paused */
	FAULT_SUSPECT, /* a mount doubts its clock without a reason */
	FAULT_SLEW,    /* a mount's clock gets another, allowed rate */
	FAULT_STRAY,   /* a mount is led to another ensemble */
	FAULT_DARK,    /* a host's network goes when its session was renewed */
	FAULT_LATE,    /* a server stands still, takes a renewal at last, and the network goes */
	FAULT_SILENCE, /* all servers stand still for some time, which costs no lock */
	FAULT_BACKLOG, /* a server makes an entry of a connection that was given up long ago */
	FAULT_KINDS,
};

struct plan {
	const char *profile;
	int mounts, locks, programs; /* programs: of each mount */
	int64_t timeout_us, tick_us;
	int64_t chaos_us;
	int64_t think_us, hold_us; /* at most */
	unsigned long_holds;       /* per mille; the others last for a tenth of hold_us at most */
	unsigned shared;           /* per mille of the takers; 0: none */
	unsigned upgrades;         /* per mille of the shared holders that go on to exclusive */
	unsigned slots_max;        /* a lock has so many at most; 1: always one */
	unsigned data, evictions;  /* per mille of the takes that come with a question about it */
	unsigned curious;          /* per mille of the holders that ask for waiters */
	unsigned limits;           /* per mille of the holders with a time limit */
	bool reuse;                /* programs take a lock again and again, by one entry */
	int64_t rest_us;           /* as in struct lc_config; 0: mounts do not rest */
	int64_t fault_gap_us;      /* on average; 0: no faults */
	unsigned weight[FAULT_KINDS];
	int outsiders;
	const char *clients;   /* with whom the mounts share the locks: lc_config */
	bool late_readers;     /* outsiders that hold, and give back, may go on as readers */
	bool foreign_families; /* outsiders make entries of incompatible clients, too */
	bool near_overflow;
	bool namesakes;       /* all mounts have one host name; outsiders copy half of a UUID */
	unsigned copies;      /* per mille of the outsiders' entries with a taker's UUID */
	bool evict_waiters;   /* operators evict waiters, and no holders */
	bool lossless;        /* nothing happens that may cost a taker its lock */
	bool short_sessions;  /* too short for a lease: each mount has to refuse its session */
	int64_t loss_lead_us; /* as in struct lc_config: 0: losers are not stopped */
	unsigned reloads;     /* per mille of the turns: a mount goes on in another process before
	                       * the turn */
	unsigned deaths;      /* per mille of the turns in which a mount is killed and adopted */
	bool records;         /* the mounts' records are kept, and judged */
	int64_t jump_us;      /* mounts may be stopped in the middle of a turn, for so long */
	struct world_config world;
};

struct lock_state {
	const char *name;              /* for the engine */
	const char *path;              /* for the world */
	int64_t absent_us, present_us; /* when it was last seen so; -1: never */
	int64_t last_token[2];         /* the highest granted one, by mode */
	int64_t given_token;           /* the highest that an exclusive holder has asked for */
	int64_t incompatible_us;       /* when an incompatible entry was last seen there */
	/* When a taker of that mount and mode would last have had to wait, leavers left out. */
	int64_t contended_us[MOUNTS_MAX][2];
	int64_t crowded_us[CROWD_MAX + 1]; /* when so many last waited */
	/* When a taker of that mount has left the lock to the next one there, which is told in the
	 * next turn; 0: there is none. */
	int64_t handed_us[MOUNTS_MAX];
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
	uint64_t taken_in; /* mount->turns at that moment */
	bool refused;      /* by lc_take() itself */
	int pid, life;
	int process;          /* which the engine is told as its pid */
	bool went_on;         /* another one has its entry now */
	struct taker *former; /* it goes on with the entry of that one, which has left */
	int64_t wait_us, took_us, took_running_us, took_clock_us;
	unsigned crowd;     /* it does not wait behind so many; 0: behind any number */
	int64_t crowded_us; /* when so many last waited */
	int64_t token, granted_us, granted_clock_us;
	int64_t until_us;          /* it may hold until then, by its mount's clock */
	int64_t unfree_us;         /* of a try: when it would last have had to wait */
	unsigned most_slots;       /* of a holder: the most since it queued */
	int64_t meant, meant_us;   /* the lock that it means, known since then */
	bool told;                 /* taken() was called */
	bool told_token;           /* judge_given() */
	int64_t unheld_running_us; /* when lc_holds() was first false; -1: not yet */
	int64_t evicted_us;        /* its entry was deleted; -1: not */
	int64_t evicted_token;     /* of the deleted entry; 0: there is none */
	bool evicted_alone;        /* one of its entries was deleted, but not with a session */
	bool handed;               /* of a holder: it got the lock from another one of its mount */
	int64_t lost_clock_us;     /* T_LOST: when it lost the lock */
	int64_t lost_granted_us;   /* T_LOST: the timeout of the session then */
	bool evicted_front;        /* it was its mount's first waiter when evicted */
	bool forfeited;            /* T_LOST, and its entry has to stay until it leaves */
	bool guarding;             /* T_LOST: its entry was there, and has to stay on */
	int64_t entry_token, entry_session;   /* of the entry seen last */
	uint64_t look;                        /* sim->looks when its entry was last seen */
	uint64_t seen;                        /* sim->trees_seen when it was last seen */
	int64_t former_token, former_session; /* of its last one of an earlier session */
	int64_t alone_since_us;               /* waits without an entry since then; -1 */
	int entries;                          /* number of its entries at the last slow look */
	struct taker *replaces, *replaced_by; /* the holder that it replaces; and back */
	int64_t marked_us, marked_token;      /* its entry was marked; -1: not */
	int64_t poked_us;                     /* and its mount was poked for it; -1: not */
	bool watches, at_ease;                /* watches for waiters; there were none */
	int64_t behind_since_us;              /* somebody waits behind it since then; 0: nobody */
	int64_t behind_us;                    /* when somebody last waited behind it */
	bool upgrades;                        /* it was made to replace a holder */
	int64_t barred_us;                    /* when a writer last stood before it */
	struct taker *prev, *next;            /* all takers that have not left */
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

/* One change of a lock's data that was asked for. */
struct deed {
	struct mount *mount;
	struct taker *taker; /* writes the value; NULL: attributes or slots */
	struct lc_change change;
	const char *text;
	bool append, answered, cancelled;
	int done, err;
	const struct era *done_in; /* the era that began with it */
	int64_t asked_us;
	struct deed *prev, *next; /* of the same lock */
};

struct question {
	struct sim *sim;
	struct mount *mount;
	enum question_kind kind;
	struct lock_state *lock;
	struct taker *taker;
	struct deed *deed;
	uid_t uid;         /* of the asking user */
	const char *znode; /* EVICT */
	int64_t token;     /* of the entry `znode` */
	struct lc_call *call;
	bool root;     /* LIST: of the root, not of the lock */
	int64_t *seen; /* LIST: czxids of the entries that the server had when it was asked */
	int seen_count;
	uint64_t seen_on; /* the connection to that server; 0: none */
	int64_t asked_us, asked_running_us;
	bool swallowed;               /* MUTATE_swallow_done */
	bool waiters;                 /* Q_WAITERS: the answer */
	bool entry_gone;              /* CONFIRM: its entry was gone before it asked */
	struct question *prev, *next; /* all questions that are not answered */
};

struct mount {
	struct host host;
	struct sim *sim;
	int life;
	struct {
		int64_t czxid, since_us;
	} known[LOCKS_MAX]; /* the locks, as lc_stat() has told */
	bool lease_blurred; /* perhaps the engine did not count a write as evidence */
	bool drained, forfeited;
	bool suspects; /* the clock may have stood still; the engine has not asked yet */
	struct rng jump_rng, reload_rng, death_rng;
	bool vanishing; /* callbacks of its engine are not heard any more */
	unsigned rests; /* as its engine says */
	/* Where this turn ends: before it is recorded, before anything is sent, or after that. */
	enum death { UNDECIDED, LIVES, DIES_BEFORE, DIES_UNSENT, DIES_SENT } death;
	uint64_t turns;          /* the number of recorded turns */
	struct lease last_lease; /* at the last recorded turn */
	bool suspected;          /* since then the engine has asked, and doubts its clock */
	int64_t deadline_us;     /* as the engine has told */
	int64_t proved_us;       /* and as it told when a write was answered OK */
	struct lease lease;      /* the judge's own, from the answers */
	int64_t lease_session;
	int64_t granted_us;      /* the timeout of the last session that was granted */
	int64_t lease_over_us;   /* when it was last over, by the mount's clock; -1: never */
	int64_t trouble_us;      /* the last moment of trouble so far */
	int64_t killed_us;       /* when its session was last ended by an operator */
	int64_t died_us[3];      /* the last times, the latest first */
	int64_t strays_until_us; /* it may not be back before that */
	/* What the next renewal of its session meets; and the connection that met it. */
	enum fault_kind meets; /* FAULT_KINDS: nothing */
	const struct conn *met;
	uint64_t stray_serial;
	int64_t spin_window_us;
	unsigned spin_turns;
	struct {
		unsigned long takes, grants, losses, failures, abandoned;
	} told; /* by its engine */
};

struct sim_totals {
	unsigned long seeds, steps, takes, grants, shared_grants, upgrades, losses;
	unsigned long eagain, crowded, etimedout, enolck, eshutdown, ehostunreach, eproto, enoent,
		ecanceled, edeadlk;
	unsigned long questions, recalls, marks, stirs, overdue;
	unsigned long reuses, rests, reloads, not_reloaded, unclaimed, deaths;
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
	struct world other; /* if mounts stray */
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
	bool stopping; /* no program takes a lock any more */
	bool faulty;   /* faults may begin */
	int64_t faults_end_us;
	bool inside_call; /* an engine's function is running: no callback is allowed */
	uint64_t changes_seen, looks, trees_seen;
	uint64_t values; /* written so far, all different */
	char violation[512];
	struct sim_totals *totals;
};

/* Only the first violation of a run is kept. */
void sim_violation(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool sim_run(uint64_t seed, struct sim_totals *totals, enum trace_mode mode, char *ret_violation,
             size_t size);

/* ---- plan.c ---- */

void plan_choose(struct plan *plan, uint64_t seed, struct rng *rng);

/* ---- mount.c ---- */

void mount_begin(struct mount *mount, struct sim *sim, int index);
void mount_start(struct mount *mount);
/* As SIGKILL does; with farewell, as umount does. */
void mount_stop(struct mount *mount, bool farewell);
/* The mount goes on in another process, if its engine can be saved and that process starts. */
void mount_reload(struct mount *mount);
/* By the ensemble's answers, no taker of this mount may rely on its lock now, and none is lost. */
bool mount_doubted(const struct mount *mount);
/* Its session. While it inquires whether that is over, its wire has another one. */
int64_t mount_session(const struct mount *mount);
/* The mount may be stopped for a moment right here, in the middle of a turn. */
void mount_stumble(struct mount *mount);
/* By the ensemble's answers, the lease was over at some moment since then. */
bool mount_lease_was_over(const struct mount *mount, int64_t since_clock_us);
/* The time until which the mount may notice a fault. */
int64_t mount_trouble(struct mount *mount);

/* ---- user.c ---- */

void users_begin(struct sim *sim);
void users_stop(struct sim *sim);
void users_finish(struct sim *sim);
/* The mount is gone, with its takers and questions. */
void users_abandon(struct mount *mount);
/* Another engine has adopted the takers of this mount. Some takers have died meanwhile. `died`: the
 * new engine does not know the requests that came after the last recorded turn. */
void users_claim(struct mount *mount, bool died);
/* The taker will ask whether it still holds the lock. */
void user_confirm(struct taker *taker, int64_t delay_us);
/* The taker leaves, unless it has left by then. */
void user_leave(struct taker *taker, int64_t delay_us);
const char *taker_phase_name(enum taker_phase phase);

/* The answer of lc_has_waiters(). */
void user_waiters_told(struct taker *taker, int err, bool waiters);

/* ---- question.c ---- */

void question_something(struct mount *mount, struct rng *rng);
void question_data(struct mount *mount, struct rng *rng);
void question_evict(struct mount *mount, struct rng *rng);
void question_holder(struct taker *taker, enum question_kind kind, struct rng *rng);
/* All questions of a mount; or, if `mount` is NULL, of a taker. */
void questions_cancel(struct sim *sim, const struct mount *mount, const struct taker *taker);

/* ---- outsider.c ---- */

void outsiders_begin(struct sim *sim);
/* Somebody asks for the deletion of this entry, which may be an outsider's. */
void outsider_asked_away(struct sim *sim, const char *path);
/* Owners of locks, which change the number of slots. */
void owners_begin(struct sim *sim);
/* Deletes a taker's entry, or a heartbeat node, as an operator would. */
void outsider_evict(struct sim *sim);
void outsider_remake(struct sim *sim);
void outsider_make(struct sim *sim, struct lock_state *lock);
void outsider_kill_session(struct sim *sim);

/* ---- fault.c ---- */

extern const char *const fault_names[FAULT_KINDS];
void faults_begin(struct sim *sim);
/* A greeting of this mount's session is on its way. */
void fault_greeted(struct mount *mount);

/* ---- stray.c ---- */

void strays_begin(struct sim *sim);
void strays_finish(struct sim *sim);
void stray_begin(struct mount *mount, int64_t duration_us);
bool stray_is_away(const struct mount *mount);
/* At once; before a mount is started anew. */
void stray_end(struct mount *mount);

/* ---- order.c ---- */

/* Names are read as of its run, which has takers, and clients that share its locks. */
void order_begin(const struct sim *sim);
unsigned order_shape(struct node *node);
/* The pid of its taker; WHO_FOREIGN: it is another client's. */
int order_pid(struct node *node);
/* An entry of this lock is of a client that does not wait for a mount's, or knows no order. */
bool order_has_incompatible(struct node *parent);
/* An entry of this lock has a number that its client chose. */
bool order_has_stray(struct node *parent);
/* The number of slots of a lock, by its data. */
unsigned order_slots(struct node *node);

/* The entries before a taker. */
struct crowd {
	unsigned all, exclusive;
	unsigned apart; /* shared or foreign: they fill no slot */
};
void crowd_add(struct crowd *crowd, unsigned shape);
bool crowd_admits(const struct crowd *crowd, enum lc_mode mode, unsigned slots);

/* Called before the committed tree has the transaction. */
void order_committing(struct sim *sim, const struct transaction *transaction);
/* At some moment since its entry came, the entries before it let it in. `ret_slots`: the largest
 * number of slots since then. */
bool order_justified(const struct taker *taker, unsigned *ret_slots);

/* ---- mount_records.c ---- */

void lock_data_begin(struct sim *sim);
unsigned lock_data_slots(const char *data, int len);
void lock_data_committing(struct sim *sim, const struct transaction *transaction);
struct deed *lock_data_change(struct mount *mount, struct lock_state *lock,
                              const struct lc_change *change);
struct deed *lock_data_value(struct taker *taker, bool append);
void lock_data_answered(struct question *question, int err);
/* A change was meant for a former lock of that name, and may have changed the new one. */
bool lock_data_met_another(const struct question *question);
void lock_data_judge_slots(struct question *question, unsigned slots);
/* Whether the question may have found this number of slots. */
bool lock_data_had_slots(const struct question *question, unsigned slots);
void lock_data_judge_value(struct question *question, const char *value, size_t len);

/* ---- marks.c ---- */

void marks_committing(struct sim *sim, const struct transaction *transaction);
void marks_asked(struct sim *sim, struct node *node);
/* The asker was told that the entry will be gone. */
void marks_promised(const struct question *question);
void marks_judge_node(struct sim *sim, const struct node *node);
/* The taker's entry is marked. */
bool marks_taken_away(const struct taker *taker);
void marks_judge(struct taker *taker);

/* ---- judge.c ---- */

void judge_begin(struct sim *sim);
void judge_step(struct sim *sim); /* after each event */
void judge_granted(struct taker *taker);
/* A holder has asked for its token. */
void judge_given(struct taker *taker, int64_t token);
void judge_failed(struct taker *taker, int err);
void judge_lost(struct taker *taker);
void judge_asking(struct question *question);
void judge_answered(struct question *question, int err);
void judge_listing(struct question *question, const struct lc_listing *listing);
void judge_entries(struct question *question, const struct lc_entry_info *infos, size_t count);
/* All faults are over and all takers have left: is nothing left over? */
bool judge_all_clear(struct sim *sim);
/* At the end: the engines' counters are equal to what was told. */
void judge_counters(struct sim *sim);
void judge_leftovers(struct sim *sim);
/* The taker of this entry, or NULL. */
struct taker *judge_owner(struct sim *sim, struct node *node);
bool judge_is_entry(struct node *node);
/* The taker's mount may ignore the entry of that pid: it will be deleted, or replaced. */
bool judge_passes(const struct taker *taker, int pid);
int64_t judge_find_token(const struct taker *taker);
struct node *judge_entry(const struct tree *tree, const struct taker *taker);

#endif
