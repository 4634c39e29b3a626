/* SPDX-License-Identifier: MIT
 *
 * model.h - the queue of one lock, as a finite machine: what the rooms grant/ and lock/ of the
 * engine do, by the names of the functions and fields there. See tests/model/README.md.
 *
 *   the ensemble   a log of transactions. Each mount is connected to a server of its own, which has
 *                  applied a part of the log. Requests of a mount are answered in order: a write is
 *                  done when the leader appends it, also while reads before it wait, and answered
 *                  when the mount's server has applied it; a read when the server comes to it.
 *                  The events of watches come before the answer. An answer or event is handled
 *                  as it leaves the server: a message that travels is a server that lags. Requests
 *                  of a lost connection happen or not, until the first write of the next one.
 *   a mount        the fields of the engine that decide who holds
 *   the world      takers that come, leave, are slow; operators who delete entries; evictors
 *                  that mark, and delete in the end; connections, leases and sessions that end;
 *                  other processes that go on (rule 38)
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOUNTS 3
#define TAKERS 8
#define LOG_MAX 5
#define REQUESTS_MAX 7
#define BIT(e) (1u << (e))

/* What is gone through. */
struct config {
	int mounts, takers, users; /* users: the takers without those of new sessions */
	int owner[TAKERS];         /* the mount of each taker */
	unsigned of_mount[MOUNTS]; /* its takers: a mask */
	unsigned shared;           /* takers that ask for a shared lock: a mask */
	unsigned tries;            /* takers that do not wait: a mask */
	unsigned upgrades;         /* takers that replace the last shared one before: a mask */
	int slots;
	int deletes, pairs; /* entries that an operator deletes; two in one transaction */
	int cuts, reloads, ends, marks; /* connections, processes, leases that end; evictions */
	bool on_lost, waiters_leave;
	bool again; /* a mount whose session has ended begins another one, once */
	bool slow;  /* some hold for 20 ms */
	bool symmetry;
};
extern struct config config;

/* One rule is left out. The names are those of tests/sim/mutants.py, where there is one. */
#define MUTANTS(X)                                   \
	X(none)                                      \
	X(hand_off_past_a_remote_entry)              \
	X(hand_off_unguarded)                        \
	X(watched_is_there)                          \
	X(alone_without_the_check)                   \
	X(refused_is_seen)                           \
	X(seen_by_an_old_answer)                     \
	X(held_back_behind_a_new_one)                \
	X(event_grants_what_is_gone)                 \
	X(event_of_one_that_was_not_first)           \
	X(any_of_ours_makes_the_next_first)          \
	X(reconnect_taken_as_deletion)               \
	X(barrier_left_out)                          \
	X(event_ignored)                             \
	X(not_there_is_no_event)                     \
	X(release_and_take_over_the_head_of_another) \
	X(chain_forgotten_when_one_goes)             \
	X(leaver_kept_for_ever)                      \
	X(create_again_before_the_list)              \
	X(granted_before_marks_are_read)             \
	X(delete_dropped_when_unknown)               \
	X(lost_holds_on)                             \
	X(front_leaves_in_silence)                   \
	X(shared_holders_guard)                      \
	X(grant_when_not_first)                      \
	X(leaver_goes_in_silence)                    \
	X(held_back_is_not_asked)                    \
	X(guard_of_a_hand_off_forgotten)             \
	X(try_judged_by_own_leavers)                 \
	X(try_judged_while_unresolved)               \
	X(try_waits)                                 \
	X(try_does_not_list_first)                   \
	X(order_reversed_after_a_session)            \
	X(not_queued_again_after_a_session)          \
	X(entries_kept_over_a_session)               \
	X(two_upgrades_wait_for_each_other)          \
	X(upgrade_is_not_listed)                     \
	X(upgrade_of_a_lost_hold)                    \
	X(upgrade_past_other_readers)                \
	X(upgrade_refused_beside_readers)            \
	X(upgrade_is_an_obstacle_like_any)           \
	X(replaces_later_and_is_not_looked_at)       \
	X(upgrading_try_barred_by_its_own)           \
	X(one_slot_too_many)                         \
	X(a_slot_beside_readers)                     \
	X(only_the_next_one_is_watched)              \
	X(holder_causes_a_list_with_slots)           \
	X(place_kept_over_a_reload)
#define MUTANT_ENUM(name) MUTANT_##name,
enum mutant { MUTANTS(MUTANT_ENUM) };
extern enum mutant mutant;
#define LEFT_OUT(name) (mutant == MUTANT_##name)

/* ---- the state: bytes, and those without a meaning are 0 ---- */

/* Of a taker; of its entry; of a watch (OLD: of an earlier connection). */
enum { IDLE, WAIT, HELD, LOST, LEFT, DEAD };
enum { ABSENT, CREATING, UNKNOWN, PRESENT, DELETING };
enum { W_IDLE, W_PENDING, W_GOOD, W_OLD, W_RENEWING };
/* Requests: the first two are writes. */
enum { R_WRITE, R_BEAT, R_LIST, R_WATCH, R_FRONT, R_LOOK, R_CANDIDATE };

/* struct taker: flags */
#define F_FIRST 1
#define F_ADJACENT 2
#define F_GONE 4
#define F_RECHECK 8       /* it has not held for 20 ms yet */
#define F_LISTED_SINCE 16 /* a listing was sent since its create */
#define F_AHEAD_FIRST 32
#define F_AHEAD_AFTER_OURS 64
#define F_ALONE 128 /* its create or delete failed in a transaction */
/* struct taker: more. All but CANDIDATE are for the judge. */
#define A_DEAD_GRANT 1   /* its entry was deleted before it was granted */
#define A_UNSEEN_GRANT 2 /* by hand-off on the mount, which does not know whether it is there */
#define A_DELETED 4      /* an operator has deleted its entry */
#define A_CANDIDATE 8    /* UNKNOWN, and its node is being asked */
#define A_MADE 16        /* its create has happened: each taker has one entry */
#define A_REPLACES 32    /* it is to replace the shared holder before it */
#define A_FREE 64        /* since it came, its mount was shown nobody in its way */
/* struct mount: flags */
#define M_HELD_BACK 1
#define M_WANT 2
#define M_UNRESOLVED 4
#define M_WRITE_OK 8
#define M_LEAVER 16 /* obstacle */
#define M_LEASE 32  /* obstacle */
#define M_TOUCHED 64
#define M_FRONT_GONE 128
/* struct mount: more */
#define N_TOGETHER 1       /* a create is under way with others */
#define N_BEATING 2        /* a heartbeat is under way */
#define N_MARKS 4          /* marks are not read yet */
#define N_OLD_CONNECTION 8 /* begun before an evictor deleted an entry of the mount */
#define N_OVERTAKEN 16
/* struct mount: late */
#define L_CONNECTED 1 /* the connection was begun after the mark */
#define L_LEASE 2     /* the lease is from after it */
#define L_POKED 4     /* the poke was heard of on this connection */
/* struct request: check. On one that belongs to a lost connection. */
#define FORMER 128
/* struct change: by. It was refused. */
#define REFUSED 128

struct change {
	uint8_t deleted;      /* entries: a mask */
	uint8_t made, marked; /* entry + 1 */
	uint8_t by;           /* mount + 1, perhaps REFUSED */
};
struct request {
	uint8_t kind, deletes; /* WRITE: a mask */
	uint8_t entry;         /* WRITE: the one to make, + 1; else the one that is read */
	uint8_t check;         /* WRITE: the one that must be there, + 1. FRONT: the tag */
};
struct taker {
	uint8_t state, entry, watch, ahead; /* ahead: entry + 1 */
	uint8_t flags, more, follows;
	uint8_t place; /* in the mount's list, from 1 on; 0: it is not there */
	uint8_t wait;  /* 0: QUEUED; else PROBING, and so many listings, + 1, are older */
};
struct mount {
	uint8_t link; /* 0: none; 1: to be proved; 2: ready */
	uint8_t lease, session,
		late;          /* session: 0: it has ended; 1, 2: the first, the second one */
	uint8_t front, unseen; /* entry + 1 */
	uint8_t front_watched, front_watch, tag;   /* entry + 1; its watch; which one it is */
	uint8_t flags, more, lists, looks, unsent; /* unsent: a mask */
	uint8_t names;                             /* the server has a watch of the names */
	uint8_t applied, watches, requests;        /* watches: those that the server has */
	struct request request[REQUESTS_MAX];
};
struct state {
	struct taker taker[TAKERS];
	struct mount mount[MOUNTS];
	struct change log[LOG_MAX];
	uint8_t number[TAKERS], logged, base, base_marks, numbers, evicted, last_token;
	uint8_t deletes, cuts, ends, marks, pairs, reloads; /* that may still come */
	uint8_t broken;
};
enum {
	BROKEN_NOT,
	BROKEN_DEAD_GRANT,
	BROKEN_FULL,
	BROKEN_TOKEN,
	BROKEN_TWO,
	BROKEN_TRY,
	BROKEN_CAUSE,
	BROKEN_UPGRADE,
	BROKEN_PAST,
	BROKEN_ORDER,
	BROKEN_HOPELESS,
};

/* The state that is made, and the mount that acts. */
extern struct state S;
extern int M;
/* The entries that the transaction deletes which is being applied. */
extern unsigned going;

/* ---- ensemble.c ---- */

void view(const struct state *state, int logged, unsigned *present, unsigned *marks);
unsigned committed(const struct state *state);
unsigned shown(const struct state *state, int m);
void trim_log(void);
bool append(struct change change);
void push(int kind, unsigned deletes, int entry, int check);
struct request pop(struct mount *mount, int at);
int count_former(const struct mount *mount);
int count_committed(const struct state *state, int m);

/* ---- taker.c ---- */

/* The takers in the list of the mount that acts, in order, as it is when it is begun. */
unsigned begin_walk(void);
int walk(int *left);
#define EACH_TAKER(e) for (int e, walk_##e = (int)begin_walk(); (e = walk(&walk_##e)) >= 0;)

struct mount *me(void);
/* The taker behind it, or before it, in the list; -1: none. */
int taker_behind(int e);
int taker_before(int e);
bool is_shared(int e);
bool is_try(int e);
bool is_upgrade(int e);
/* The taker whose place it takes, or would take. */
int replaced(int e);
bool is_in_list(int e);
bool is_wanted(int e);
bool is_queued(int e);
bool is_seen(int e);
int count_takers(int state, bool exclusive);
int count_waiting(void);
int count_holding(void);
void want_list(void);
void touch(void);
bool may_grant(void);
bool needs_no_list(void);
bool needs_list(int e);
bool has_unknown(void);
bool may_be_queued(int e);
void entry_watch(int e);
void watch_fired(uint8_t *watch);
void watch_answered(uint8_t *watch, bool good);
void set_ahead(int e, int ahead, unsigned is);
void set_state(int e, int state);
void set_absent(int e);
void free_if_done(int e);
void taker_step(int e);
void taker_leave(int e);
void taker_enter(int e);
void take(int e);
void leave(int e);
void refuse_try(int e);
void refuse_upgrade(int e);
void note_free(void);
bool tell(void);
void loss_of_session(int e);
void loss_of_node(int e);
void loss_by_mark(int e);
void loss_by_listing(int e);
void loss_of_lease(void);

/* ---- handoff.c ---- */

enum how { BY_LISTING, BY_RELEASE, BY_EVENT, BY_CREATE };
void handoff_grant(int e, bool first, enum how how);
void handoff_watch_next(int holder);
void handoff_leave(int e);
void handoff_release(void);
void handoff_seen(int e);
void handoff_wait(int front, int ahead);
bool handoff_line_up(void);
bool handoff_by_event(int ahead);
void handoff_present(int e, bool made);
void handoff_absent(int e);
void watch_front(int ahead);
void watch_none(void);

/* ---- listing.c ---- */

void listed(unsigned names);
void list_is_answered(void);
void step_all(void);

/* ---- batch.c ---- */

void send_batch(void);
void write_answered(struct request request, bool good);

/* ---- session.c ---- */

void look(int e);
void look_answered(int e, bool there, bool marked);
void become_ready(void);
void beat_answered(void);
void own_watch_answered(int e, bool there, bool marked);
void front_answered(int e, unsigned tag, bool there);
void candidate_answered(int e, bool there, bool marked);
void entry_changed(int e, bool deleted);
void names_changed(void);
void end_turn(void);

/* ---- form.c ---- */

/* One state for all that differ in nothing that counts. */
void normal_form(void);

/* ---- world.c, faults.c ---- */

enum action {
	COMMIT,
	SERVE,
	APPLY,
	APPLY_REVERSED,
	BEGIN,
	LEAVE,
	RETAKE,
	SLOW,
	CUT,
	CONNECT,
	DROP,
	SKIP,
	LEASE_END,
	EXPIRE,
	AGAIN,
	DELETE,
	PAIR,
	MARK,
	EVICT,
	BEAT,
	RELOAD,
};
void done(enum action action, int first, int second);
void expand_faults(const struct state *state);
void expand(const void *state);

/* ---- judge.c ---- */

const char *judge(const void *state);

#endif
