/* SPDX-License-Identifier: MIT
 *
 * rig.h - the lower layers of an engine, without the upper ones: below them a port that only
 * writes down what is sent, above them a recorder of what they tell. A test says what the
 * ensemble answers, and looks at the exact text of both.
 *
 * Requests as text: "create PATH 'DATA'", "create ephemeral PATH 'DATA'", "delete PATH",
 * "set PATH v3 'DATA'", "check PATH", "get PATH", "watch PATH", "children PATH", "unwatch PATH",
 * "sync PATH", with " + " between the parts of a transaction; '|' stands for a newline. An entry
 * of this mount is "#ID-NUMBER", by the half of its UUID that is its own, and its first data is
 * left out. "open", "drop" and "close" are no requests, and not answered.
 */
#ifndef LAYER_RIG_H
#define LAYER_RIG_H

#include "call.h"
#include "evict.h"
#include "orphan.h"
#include "poke.h"
#include "unit.h"

#include <stdlib.h>

#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)
#define RIG_TIMEOUT_US (15 * SECOND)
#define RIG_SESSION 7
/* The heartbeats' node of the first session. */
#define RIG_NODE "/locks/.zklockfs/0000000000000001"

struct rig {
	struct ensemble ensemble;
	struct lc lc;
	struct session session;
	struct quota quota;
	struct watches watches;
	struct locks locks;
	struct entries entries;
	struct batch batch;
	struct takers takers;
	struct readings readings;
	struct reads reads;
	struct calls calls;
	struct orphans orphans;
	struct pokes pokes;
	struct evictions evictions;
	struct changes changes;
	int64_t now_us;
	uint64_t randoms;
	int open_result;
	const struct ensemble_events *port_events;
	struct rig_request *unanswered;
	char sent[8192], told[8192], reported[8192];
};

/* An engine without a session. */
struct rig *rig_begin(void);
/* A session that is ready: connected, and its first heartbeat is answered. */
struct rig *rig_begin_ready(void);
/* Frees all of it. Nothing may be left that is unanswered or set. */
void rig_finish(struct rig *rig);

/* Time goes on; timers fire. */
void rig_run(struct rig *rig, int64_t duration_us);

void rig_connect(struct rig *rig, int64_t session);
/* What is outstanding is answered UNKNOWN. */
void rig_disconnect(struct rig *rig);
/* What is outstanding is answered GONE. */
void rig_end_session(struct rig *rig, bool refused);
/* A new connection, and its heartbeat is answered. */
void rig_reconnect(struct rig *rig);
/* The oldest request that is not answered, or "". */
const char *rig_unanswered(const struct rig *rig);
/* It is answered so. */
void rig_answer(struct rig *rig, const struct ensemble_answer *answer);
void rig_answer_error(struct rig *rig, enum ensemble_result result);
/* OK, with a node of this session. */
void rig_answer_version(struct rig *rig, int32_t version);
void rig_answer_data(struct rig *rig, int32_t version, const char *data);
void rig_answer_created(struct rig *rig, const char *path, int64_t czxid);

/* A taker's entry in a lock that is in use, as a layer above makes it. What an entry tells is
 * told with its pid: "7 present made". */
void rig_make_entry(struct rig *rig, struct entry *entry, const char *lock, pid_t pid,
                    enum lc_mode mode);
/* It is absent; what is known of the lock without takers is forgotten. */
void rig_free_entry(struct entry *entry);
/* The path of the node that its create has made, with that number. */
const char *rig_entry_path(const struct entry *entry, int number);

/* This and nothing else was sent, or told, since the last call; ", " between two. */
void rig_expect_sent(struct rig *rig, const char *text);
void rig_expect_told(struct rig *rig, const char *text);
/* Forgets both. */
void rig_forget(struct rig *rig);
/* The log has a line with this text since the last call. */
void rig_expect_reported(struct rig *rig, const char *text);

/* For recorders of a test's own. */
void rig_tell(struct rig *rig, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct rig *rig_of(struct lc *lc);

#endif
