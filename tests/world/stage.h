/* SPDX-License-Identifier: MIT
 *
 * stage.h - a world of one server, with two hosts at most, and takers and questions on the hosts:
 * for tests that say themselves what happens.
 *
 * It checks some promises of lockcore.h: no callback inside the call that causes it, one answer for
 * each take and each question, no answer after leaving or cancelling.
 */
#ifndef WORLD_STAGE_H
#define WORLD_STAGE_H

#include "host.h"

#include <stddef.h>

#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)
#define ROOT "/locks"
#define TIMEOUT_US (10 * SECOND)
#define HOSTS_MAX 2
#define NONE 1 /* no result yet; no error is positive */

struct stage;
struct taker;

struct stage_hooks {
	/* A promise is broken. */
	void (*complain)(struct stage *stage, const char *text);
	/* After each event; this and the next may be NULL. */
	void (*stepped)(struct stage *stage);
	/* The taker holds, has failed, or has lost the lock: see its phase. */
	void (*told)(struct taker *taker);
};

struct stage {
	void *owner;
	const struct stage_hooks *hooks;
	struct agenda agenda;
	struct world world;
	struct host hosts[HOSTS_MAX];
	int host_count;
	bool inside; /* a call of the engine */
	struct question *questions;
	int question_count;
};

enum phase {
	NEVER, /* refused at once */
	WAITING,
	HELD,
	FAILED,
	LOST,
	LEFT,
};

struct taker {
	struct stage *stage;
	struct host *host;
	struct lc_taker *lc;
	uint64_t id;
	const char *lock;
	enum phase phase;
	enum lc_mode mode;
	int result;                     /* of lc_take(), or the error given to taken() */
	unsigned lost, waiters_changed; /* the number of such callbacks */
	char path[300];                 /* of its entry, at the last stage_path() */
	void *owner;
};

struct question {
	struct stage *stage;
	struct host *host;
	struct lc_call *call; /* NULL: answered, cancelled or never begun */
	int number;
	bool cancelled;
	int result;
	size_t count; /* of the answer: see the calls of answered() */
	int64_t asked_us;
	struct lc_lock_info info;
	char *value;
	size_t value_len;
	size_t entries, held; /* of a list */
	char entry[256];      /* the first of them */
	struct question *prev, *next;
};

void stage_init(struct stage *stage, int64_t begin_us, uint64_t seed,
                const struct stage_hooks *hooks, void *owner);
/* With so many servers, not one. */
void stage_init_servers(struct stage *stage, int servers, int64_t begin_us, uint64_t seed,
                        const struct stage_hooks *hooks, void *owner);
struct host *stage_host(struct stage *stage, uint64_t seed);
/* As lc_create(). */
int stage_start(struct host *host, const char *root, int64_t loss_lead_us);
/* As lc_adopt(). The former engine vanishes without a word, with its questions. Its takers go on if
 * they are claimed afterwards. */
int stage_adopt(struct host *host, int64_t loss_lead_us);
void stage_claim(struct taker *taker);
/* The host's takers and questions are not answered any more. */
void stage_stop(struct host *host, bool farewell);
void stage_finish(struct stage *stage);
void stage_run(struct stage *stage, int64_t duration_us);

/* One operation of an operator's client. */
enum ensemble_result stage_act(struct stage *stage, int64_t session, struct ensemble_op op,
                               const char **ret_path);

/* The caller owns *taker, which is overwritten. If there is no engine the result is -ENOMEM. */
void stage_take(struct taker *taker, struct host *host, const struct lc_request *request);
/* The path of the taker's entry. NULL: there is no entry, or the path is not known. */
const char *stage_path(struct taker *taker);
/* Whether the taker is told when takers come or go behind it. */
void stage_watch_waiters(struct taker *taker, bool watch);
void stage_leave(struct taker *taker);

/* The stage owns the questions until stage_forget(). The question here is never asked. */
struct question *stage_refused(struct host *host);
struct question *stage_ask_stat(struct host *host, const char *lock, uid_t uid);
struct question *stage_ask_list(struct host *host, const char *lock, uid_t uid);
struct question *stage_ask_entries(struct host *host, const char *lock, const char *znode);
struct question *stage_ask_known(struct host *host, const char *lock, const char *znode);
struct question *stage_ask_mkdir(struct host *host, const char *lock,
                                 const struct lc_attributes *attributes);
struct question *stage_ask_rmdir(struct host *host, const char *lock, uid_t by);
struct question *stage_ask_confirm(struct taker *taker);
struct question *stage_ask_waiters(struct taker *taker);
struct question *stage_ask_value(struct host *host, const char *lock, uid_t uid);
struct question *stage_ask_change(struct host *host, const char *lock,
                                  const struct lc_change *change);
struct question *stage_ask_set_value(struct taker *taker, const char *value, size_t len,
                                     bool append);
struct question *stage_ask_evict(struct host *host, const char *lock, const char *znode,
                                 const struct lc_evictor *evictor);
void stage_cancel(struct question *question);
void stage_forget(struct question *question);

#endif
