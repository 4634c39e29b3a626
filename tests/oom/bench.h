/* SPDX-License-Identifier: MIT
 *
 * bench.h - engines on the ensemble in memory (tests/world), for short scenarios that
 * are the same in each run but for the allocation that fails.
 *
 * Each run has to keep these rules, wherever memory was short:
 *  - a take is refused at once or answered exactly once, a question too; nothing comes
 *    after leaving or cancelling;
 *  - answers are those of the run with enough memory, or say that there was none;
 *  - never two holders whose leases are valid, but those that share or fill a slot each; a
 *    grant only to who may hold;
 *  - nobody waits longer for a free lock than the engine's slow timer takes;
 *  - when all have left: no entry in the world, the engines idle, nothing allocated.
 */
#ifndef OOM_BENCH_H
#define OOM_BENCH_H

#include "memory.h"
#include "stage.h"

#define LOCKS_MAX 4
#define TAKERS_MAX 640
#define QUESTIONS_MAX 48

/* The engine's net below every other rule looks this often. */
#define RECHECK_US (60 * SECOND)
/* A wait for a free lock beyond this counts as ended by that timer: sessions that
 * end, lost connections and retries take less. */
#define RESCUED_US (30 * SECOND)
#define SLACK_US (15 * SECOND)

#define UNTIL_TOLD (-1) /* hold until leave() */

struct visitor {
	struct taker taker;
	struct bench *bench;
	int lock;
	struct visitor *replaces; /* whose place it is to take */
	bool evicted;             /* somebody took its entry away */
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
		int also;   /* not 0: it may come to this, too */
		bool loose; /* how much is found depends on takers */
	} questions[QUESTIONS_MAX];
	struct {
		const char *name;
		char path[64];
		int64_t busy_us;
		int slots;
	} locks[LOCKS_MAX]; /* the most so far */
	int lock_count;
	int64_t foreign;                /* an outsider's session */
	bool drained;                   /* a mount takes no more */
	bool ending;                    /* whoever gets a lock leaves it at once */
	int64_t longest_wait_us;        /* for a free lock */
	const struct outcome *expected; /* NULL: this run tells what to expect */
	int64_t spell_us;
	char violation[256]; /* the first one */
};

void bench_begin(struct bench *bench, const struct outcome *expected, int64_t spell_us);
/* Everybody leaves, time passes, the engines go; what is left over? */
void bench_end(struct bench *bench);
void bench_outcome(struct bench *bench, struct outcome *ret_outcome);
/* At the end of all. */
void bench_finish(struct bench *bench);
void bench_violation(struct bench *bench, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void run(struct bench *bench, int64_t duration_us);

/* A lock that somebody else has made; its number. */
int make_lock(struct bench *bench, const char *name);
void set_slots(struct bench *bench, int lock, int slots);
void make_entry(struct bench *bench, int lock, const char *prefix, char ret_path[128]);
void remove_node(struct bench *bench, const char *path);

struct host *begin_host(struct bench *bench, int64_t lead_us);
void end_host(struct host *host, bool farewell);
/* Its engine goes on in another process. If there is no memory to save it, it goes on as it is; if
 * there is none to adopt it even at the second try, it ends. */
void reload_host(struct host *host);
/* By an operator: the mount's leases do not know of it. */
void end_session(struct host *host);

/* wait_us as in lc_request. It leaves `hold_us` after it was granted. */
struct visitor *take(struct host *host, int lock, int64_t wait_us, int64_t hold_us);
struct visitor *take_shared(struct host *host, int lock, int64_t wait_us, int64_t hold_us);
/* Exclusively, in the place of one that shares, which leaves then. */
struct visitor *upgrade(struct visitor *visitor, int64_t wait_us, int64_t hold_us);
void leave(struct visitor *visitor);
void evict(struct visitor *visitor);
/* Its node in the world, or NULL. */
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
/* A visitor that is told that somebody came or went asks again. */
struct question *ask_waiters(struct visitor *visitor, bool watch, int also);
/* How much it finds depends on takers. */
void loose(struct question *question);
void cancel(struct question *question);

#endif
