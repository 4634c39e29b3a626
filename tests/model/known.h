/* SPDX-License-Identifier: MIT
 *
 * known.h - the known queue of one lock as a finite machine: queue_next() of the engine itself
 * (lockcore/pure/next.h), and around it the least mount that keeps K0. See tests/model/README.md.
 *
 *   the ensemble   a log of transactions that the mount's server has not applied yet. Requests of
 *                  the mount are answered in order: the leader takes a write at any time, in order;
 *                  the answer comes when the server has applied it. A read is answered when the
 *                  server comes to it. Events come before the answer. Answers and events are
 *                  handled as they leave the server: a message that travels is a server that lags.
 *   the mount      takers 0 to own - 1
 *   the others     clients that act at the leader, at any time
 *   what goes wrong  entries that an operator deletes, connections that end, other processes that
 *                  go on, holds that are lost, slots that change, locks that are made again
 */
#ifndef MODEL_KNOWN_H
#define MODEL_KNOWN_H

#include <stdbool.h>
#include <stdint.h>

#define TAKERS 6
#define LOG_MAX 8
#define REQUESTS_MAX 8
#define BIT(e) (1u << (e))

struct config {
	int own, all;
	unsigned shared, tries, apart; /* takers: masks */
	int upgrade, replaces;         /* a taker and the one whose hold it replaces; -1 */
	int slots, slots_max;
	int deletes, cuts, reloads, losses, changes, removes, lapses;
	bool kept;   /* entries are kept for the next take */
	bool joined; /* a turn may handle several messages */
};
extern struct config config;

/* What a mount does that keeps K0 is left out. Sentences of queue_next() are left out by run.py,
 * in its source. */
#define MUTANTS(X)                   \
	X(none)                      \
	X(made_with_a_gap)           \
	X(made_without_lock_watch)   \
	X(seen_after_one_went)       \
	X(seen_over_other_slots)     \
	X(seen_before_a_decision)    \
	X(watched_over_a_cut)        \
	X(lock_watched_over_a_cut)   \
	X(no_write_on_a_connection)  \
	X(other_life_not_noticed)    \
	X(known_over_a_reload)       \
	X(unproved_forgotten)        \
	X(doubt_forgotten)           \
	X(refused_and_not_held_back) \
	X(proved_by_an_older_look)   \
	X(kept_over_a_delete)        \
	X(list_of_before)
#define MUTANT_ENUM(name) M_##name,
enum mutant { MUTANTS(MUTANT_ENUM) MUTANT_COUNT };
extern enum mutant mutant;

enum phase { IDLE, PROBING, CREATING, UNKNOWN, WAITING, HOLDING, LOST, KEPT, LEAVING, DONE };

/* struct taker, flags */
enum {
	SEEN = 1,
	WATCHED = 2,
	SENT = 4,
	IN_DOUBT = 8,
	HELD_BACK = 16,
	SHOWN_SINCE = 32,
	ASKED_SINCE = 64,
	LEFT = 128 /* it left while its create was not answered */
};

/* struct taker, marks: for the judge */
enum {
	ENTITLED = 1, /* it was first at the leader once */
	BY_HAND = 2,  /* an operator deleted its entry, */
	ROBBED = 4,   /*   before it was entitled */
	CAUSE = 8     /* it might be refused */
};

struct taker {
	uint8_t phase, number, flags, marks;
};

enum request_kind { CREATE = 1, DELETE, CHECKED, BARRIER, LIST, LOOK, NODE };
struct request {
	uint8_t kind, a, b;
	uint8_t done; /* the leader has taken it */
};

enum item_kind { MADE = 1, GONE, REFUSED, NOTHING, SLOTS, REMADE };
struct item {
	uint8_t kind, a;
	uint8_t own; /* answers the first request of this connection */
};

/* What a server shows. */
struct view {
	uint8_t present; /* a mask */
	uint8_t slots, life;
};

enum wrong {
	GOOD,
	TWO_HOLD,
	EARLY,
	GONE_BEFORE,
	NO_CAUSE,
	HOLD_LOST,
	STUCK,
	RESTLESS,
	ORPHAN,
	TOO_LONG
};

struct state {
	struct taker taker[TAKERS];
	struct request request[REQUESTS_MAX], former[REQUESTS_MAX];
	struct item log[LOG_MAX];
	struct view server;
	uint8_t requests, formers, logged;
	uint8_t last_number; /* that the leader has given */
	uint8_t deletes, cuts, reloads, losses, changes, removes, lapses;
	uint8_t wrong;
	/* The mount. */
	uint8_t link; /* 0: none, 1: no write is answered on it, 2 */
	uint8_t known, shown, others_watched, doubtful; /* masks */
	uint8_t known_number, known_life;
	uint8_t lock_watch; /* 0, 1: asked, 2: good */
	uint8_t children_watched, slots;
	uint8_t unproved; /* taker + 1 */
	uint8_t lapsed;   /* the lease is too short to grant */
	uint8_t due;      /* the turn is not at its end */
};

/* The state that is worked on. */
extern struct state now;

/* known_world.c */
struct view leader_view(void);
/* Of `present`, what stands before e, or all if e has no entry; and of this what bars e's way. */
unsigned ahead_of(unsigned present, int e);
unsigned bars_of(unsigned set, int e, unsigned slots);
unsigned own_in(enum phase phase);
void append(enum item_kind kind, int a, bool own);
void expand(const void *state);
const char *judge(const void *state);
extern const char *const action_names[];

/* known_mount.c */
void mount_arrives(int e);
void mount_leaves(int e);
void mount_lost(int e);
bool mount_may_take_again(int e);
void mount_take_again(int e);
void mount_cut(bool other_process);
void mount_lease(bool good);
void mount_turn(void);
void mount_connect(void);
/* The server has applied this. */
void mount_event(struct item item);
/* The first request is answered. */
void mount_answer(struct item item);

#endif
