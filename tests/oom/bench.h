/* SPDX-License-Identifier: MIT
 *
 * bench.h - engines on the ensemble in memory (tests/world), for short scenarios that are the same
 * in each run except for the allocation that fails.
 *
 * Each run has to keep these rules, wherever memory was short:
 *  - a take or a question is refused at once or answered exactly once; no result comes after
 *    leaving or cancelling;
 *  - answers are those of the run with enough memory, or report that memory was short;
 *  - there are never two holders with valid leases, unless they share, or each fills a slot; only
 *    takers that may hold are granted;
 *  - no taker waits longer for a free lock than the engine's slow timer takes;
 *  - when all have left, there is no entry in the world, the engines are idle, and all memory is
 *    freed.
 */
#ifndef OOM_BENCH_H
#define OOM_BENCH_H

#include "memory.h"
#include "stage.h"

#define LOCKS_MAX 4
#define TAKERS_MAX 640
#define QUESTIONS_MAX 48

/* The period of the engine's slow timer, which repairs what no other rule has repaired. */
#define RECHECK_US (60 * SECOND)
/* A longer wait for a free lock counts as ended by that timer: ends of sessions, lost connections
 * and retries take less. */
#define RESCUED_US (30 * SECOND)
#define SLACK_US (15 * SECOND)

#define UNTIL_TOLD (-1) /* hold until leave() */

struct visitor {
	struct taker taker;
	struct bench *bench;
	int lock;
	struct visitor *replaces; /* the visitor whose place it takes */
	bool evicted;             /* its entry was taken away */
	int64_t wait_us, hold_us, took_us;
};

struct outcome {
	int takers[TAKERS_MAX];
	int questions[QUESTIONS_MAX];
	size_t counts[QUESTIONS_MAX];
};

struct bench {
	struct stage stage;
	int64_t lead_us[HOSTS_MAX];
	struct visitor visitors[TAKERS_MAX];
	int visitor_count;
	struct {
		int also;   /* not 0: this result is right, too */
		bool loose; /* the count of results depends on takers */
	} questions[QUESTIONS_MAX];
	struct {
		const char *name;
		char path[64];
		int64_t busy_us;
		int slots;
	} locks[LOCKS_MAX]; /* `slots`: the most so far */
	int lock_count;
	int64_t foreign;                /* the session of another client */
	bool drained;                   /* a mount takes no more locks */
	bool ending;                    /* a visitor that gets a lock leaves it at once */
	int64_t longest_wait_us;        /* for a free lock */
	const struct outcome *expected; /* NULL: this run gives the expected results */
	int64_t spell_us;
	char violation[256]; /* the first one */
};

void bench_begin(struct bench *bench, const struct outcome *expected, int64_t spell_us);
/* All visitors leave, time passes, the engines end. Leftovers are violations. */
void bench_end(struct bench *bench);
void bench_outcome(struct bench *bench, struct outcome *ret_outcome);
/* After bench_end() and bench_outcome(). */
void bench_finish(struct bench *bench);
void bench_violation(struct bench *bench, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void run(struct bench *bench, int64_t duration_us);

/* Another client makes a lock. Returns its number. */
int make_lock(struct bench *bench, const char *name);
void set_slots(struct bench *bench, int lock, int slots);
void make_entry(struct bench *bench, int lock, const char *prefix, char ret_path[128]);
void remove_node(struct bench *bench, const char *path);

struct host *begin_host(struct bench *bench, int64_t lead_us);
void end_host(struct host *host, bool farewell);
/* The host's engine goes on in another process. If there is no memory to save the engine, it goes
 * on as it is; if adopting it fails two times, its takers are lost and a new engine starts. */
void reload_host(struct host *host);
/* An operator ends the session: the mount's lease does not know of it. */
void end_session(struct host *host);

/* `wait_us` as in lc_request. The visitor leaves `hold_us` after its grant. */
struct visitor *take(struct host *host, int lock, int64_t wait_us, int64_t hold_us);
struct visitor *take_shared(struct host *host, int lock, int64_t wait_us, int64_t hold_us);
/* Exclusively, in the place of a shared holder, which leaves after the grant. */
struct visitor *upgrade(struct visitor *visitor, int64_t wait_us, int64_t hold_us);
void leave(struct visitor *visitor);
void evict(struct visitor *visitor);
/* The node of its entry in the world, or NULL. */
struct node *visitor_node(struct visitor *visitor);

struct question *ask_stat(struct host *host, const char *lock, int also);
struct question *ask_list(struct host *host, const char *lock, int also);
struct question *ask_entries(struct host *host, const char *lock, const char *znode, int also);
struct question *ask_entry(struct host *host, const char *lock, const char *znode, int also);
struct question *ask_mkdir(struct host *host, const char *lock, int also);
struct question *ask_rmdir(struct host *host, const char *lock, int also);
struct question *ask_confirm(struct visitor *visitor, int also);
struct question *ask_value(struct host *host, const char *lock, int also);
struct question *ask_change(struct host *host, const char *lock, const struct lc_change *change,
                            int also);
struct question *ask_set_value(struct visitor *visitor, const char *value, bool append, int also);
struct question *ask_evict(struct host *host, const char *lock, const char *znode, int also);
/* `watch`: the visitor counts when the answer may have changed. */
struct question *ask_waiters(struct visitor *visitor, bool watch, int also);
/* The count of its results depends on takers. */
void loose(struct question *question);
void cancel(struct question *question);

#endif
