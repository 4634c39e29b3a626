/* SPDX-License-Identifier: MIT
 *
 * rig.h - the lower layers of an engine, without the upper ones: below them a port that only
 * writes down the requests, above them a recorder of their callbacks, and of calls from an entry to
 * its taker. A test gives the answers of the ensemble, and compares the exact text of requests and
 * callbacks.
 *
 * Requests as text: "create PATH 'DATA'", "create ephemeral PATH 'DATA'", "delete PATH",
 * "set PATH v3 'DATA'", "check PATH", "get PATH", "watch PATH", "children PATH", "unwatch PATH",
 * "sync PATH", with " + " between the parts of a transaction; '|' stands for a newline. An entry
 * of this mount is "#ID-NUMBER", where ID is the second half of its UUID; the data of its create
 * is left out. "open", "drop" and "close" are no requests, and not answered.
 */
#ifndef LAYER_RIG_H
#define LAYER_RIG_H

#include "ask/call.h"
#include "ask/evict.h"
#include "unit.h"

#include <stdlib.h>

#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)
#define RIG_TIMEOUT_US (15 * SECOND)
#define RIG_SESSION 7
/* The heartbeats' node of the first session. */
#define RIG_DIR "/locks/.zklockfs"
#define RIG_NODE RIG_DIR "/0000000000000001"

struct rig {
	struct ensemble ensemble;
	struct lc lc;
	struct home home;
	struct session session;
	struct quota quota;
	struct watches watches;
	struct locks locks;
	struct entries entries;
	struct batch batch;
	struct takers takers;
	struct reads reads;
	struct calls calls;
	struct evictions evictions;
	/* Entries are those of takers. Else what their answers mean to a taker is recorded. */
	bool has_takers;
	/* The test answers what is asked of the mailbox, which is empty otherwise. */
	bool has_letters;
	int64_t now_us;
	uint64_t randoms;
	int open_result;
	bool in_use; /* what the session is told */
	const struct ensemble_events *port_events;
	struct rig_request *unanswered;
	char sent[8192], told[8192], reported[8192];
};

/* An engine without a session. */
struct rig *rig_begin(void);
/* A session that is ready: connected, and its first heartbeat is answered. */
struct rig *rig_begin_ready(void);
/* Frees the rig. No request may be unanswered, and no timer set. */
void rig_finish(struct rig *rig);

/* Time goes on; timers fire. */
void rig_run(struct rig *rig, int64_t duration_us);

/* A server accepts the session. */
void rig_accept(struct rig *rig, int64_t session, int64_t timeout_us);
void rig_connect(struct rig *rig, int64_t session);
/* The connection ends; outstanding requests are answered UNKNOWN. */
void rig_disconnect(struct rig *rig);
/* The session ends; outstanding requests are answered GONE, as when the port is closed. If
 * that is to be looked at, it is found to be so. */
void rig_end_session(struct rig *rig, bool refused);
/* So a server says, on a connection that it does not accept; nothing is outstanding. */
void rig_say_over(struct rig *rig);
/* There is a reason to doubt the clock, and it is noticed: now, or after a second. */
void rig_doubt_now(struct rig *rig);
void rig_doubt(struct rig *rig);
/* The heartbeat that proves a connection is answered, before the reads that it went behind. */
void rig_prove(struct rig *rig);
/* A new connection, and both its heartbeats are answered. */
void rig_reconnect(struct rig *rig);
/* In a new session: the mark of the ensemble is read, that is ROOT/.zklockfs. */
#define RIG_NUMBER "00000000000000aa"
void rig_find_home(struct rig *rig);
/* There is none. */
void rig_find_nothing(struct rig *rig);
/* The answer to such a read. */
void rig_answer_mark(struct rig *rig, int64_t czxid, const char *number);
/* The oldest request that is not answered, or "". */
const char *rig_unanswered(const struct rig *rig);
/* Answers that request. */
void rig_answer(struct rig *rig, const struct ensemble_answer *answer);
void rig_answer_error(struct rig *rig, enum ensemble_result result);
/* Answers OK, with the Stat of a node of this session. */
void rig_answer_version(struct rig *rig, int32_t version);
void rig_answer_data(struct rig *rig, int32_t version, const char *data);
void rig_answer_created(struct rig *rig, const char *path, int64_t czxid);

/* Makes an entry without a taker, in a lock that is in use. What its answers would mean to a taker
 * is recorded with its pid: "7 made". */
void rig_make_entry(struct rig *rig, struct entry *entry, const char *lock, pid_t pid,
                    enum lc_mode mode);
/* Frees an absent entry. Locks without users are forgotten. */
void rig_free_entry(struct entry *entry);
/* The path of the entry's node, when its create has got that number. */
const char *rig_entry_path(const struct entry *entry, int number);

/* Exactly this was sent, or told, since the last call; ", " stands between two. */
void rig_expect_sent(struct rig *rig, const char *text);
void rig_expect_told(struct rig *rig, const char *text);
/* The same comes after exactly so much time, and nothing before. */
void rig_expect_sent_after(struct rig *rig, int64_t duration_us, const char *text);
void rig_expect_told_after(struct rig *rig, int64_t duration_us, const char *text);
/* Forgets all texts: sent, told and reported. */
void rig_forget(struct rig *rig);
/* The log has a line with this text since the last call. */
void rig_expect_reported(struct rig *rig, const char *text);

/* For a test with its own recorder. */
void rig_tell(struct rig *rig, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct rig *rig_of(struct lc *lc);

#endif
