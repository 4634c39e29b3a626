/* SPDX-License-Identifier: MIT
 *
 * base.h - what every file of the engine needs: the configuration, the time, random bits, the
 * log, the port.
 *
 * `struct lc` is the engine of one mount. Each layer above this one has a part in it, which
 * only that layer's header defines: a file cannot look into a part of a layer above its own,
 * since it does not include that header. README.md shows the layers, and a test holds them.
 */
#ifndef LOCKCORE_BASE_H
#define LOCKCORE_BASE_H

#include "lockcore.h"
#include "port/ensemble.h"
#include "pure/clients.h"
#include "pure/records.h"
#include "pure/timer.h"

/* An element for which there is no memory is not added: its hh.tbl stays NULL. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

struct lc {
	struct lc_config config;
	char *root;
	char host[LC_HOST_MAX + 1];
	const struct clients *clients; /* with whom the locks are shared */
	struct ensemble *ensemble;
	struct timers timers;
	int64_t read_us; /* the clock, when it was read last */
	struct lc_counters counters;
	bool draining, dying;
	struct home *home;
	struct session *session;
	struct quota *quota;
	struct watches *watches;
	struct locks *locks;
	struct entries *entries;
	struct batch *batch;
	struct takers *takers;
	struct reads *reads;
	struct calls *calls;
	struct evictions *evictions;
};

/* Each root has a node of this name, which has a node of each mount below it. */
#define ROOT_DIR LC_MARK_NODE

/* The clock, read now. Whether the lease is good is decided by such a reading alone, made after
 * the event that asks for it: an answer that has arrived, a request of the frontend. So is when an
 * answer arrived. An older reading would let a lock be used after its lease is over. */
int64_t lc_now(struct lc *lc);
/* The clock as it was read last, in this turn or the one before: never later than now. It is good
 * enough for a timer, which only fires earlier by that, and for what is only shown. */
int64_t lc_lately(const struct lc *lc);
/* The time after which a failed step is tried again: without contact, refused by the ensemble, or
 * without memory. */
#define RETRY_US 1000000
uint64_t lc_random(struct lc *lc);
#define lc_report(lc, ...) config_report(&(lc)->config, __VA_ARGS__)
void config_report(const struct lc_config *config, enum lc_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A refusal, in plain words. */
const char *lc_why_refused(const struct ensemble_answer *answer);
/* Limits the rate of a log line: true at most once in 10 s. A refused taker may ask again at
 * once, and must not fill the log. `said_us`: when it was true last; 0: never. */
bool lc_may_say_again(struct lc *lc, int64_t *said_us);
/* Sends a request at once: before creates and deletes that the batch still keeps. */
void lc_submit(struct lc *lc, struct ensemble_op op, ensemble_answer_fn *answer, void *ctx);
/* A transaction. */
void lc_submit_all(struct lc *lc, const struct ensemble_op *ops, int count,
                   ensemble_answer_fn *answer, void *ctx);
void lc_ignore(void *ctx, const struct ensemble_answer *answer);
/* The result of such an answer for the frontend: 0 or -errno. */
int errno_of(enum ensemble_result result);
/* ROOT/lock, malloced. */
char *lc_path(struct lc *lc, const char *lock);
/* The path of what is above that lock: another one, or ROOT. */
char *lc_path_above(struct lc *lc, const char *lock);
char *path_join(const char *directory, const char *name);

#endif
