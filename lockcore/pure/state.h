/* SPDX-License-Identifier: MIT
 *
 * state.h - what one engine hands to the next, as bytes: the format, and its check. Pure.
 *
 *   head      magic, versions, length, checksum
 *   session   one, and the first
 *   counters  one at most
 *   taker     each; those of one lock in the order of their entries
 *   eviction  each that is followed up
 *
 * The records also go one by one, each under a key: lc_save_changes(). Sorted by their keys, and
 * with a head, they are a state.
 *
 * A record has a fixed part and texts, and says how long each is. So another version may have more
 * at the end of either: a reader skips unknown parts, and takes missing parts as 0 or "". A record
 * of an unknown kind is passed over too. The head's `least` is the version that a reader must know
 * to go on.
 */
#ifndef LOCKCORE_STATE_H
#define LOCKCORE_STATE_H

#include "lockcore.h"

#define STATE_VERSION 1
#define STATE_LEAST 1 /* the oldest version that can go on from what is written here */
#define STATE_TEXTS_MAX 3
#define STATE_PASSWORD 16
#define STATE_TIME_MAX (INT64_MAX / 4) /* of the clock; later is never */

enum state_kind {
	STATE_SESSION = 1, /* texts: the root */
	STATE_COUNTERS,
	STATE_TAKER, /* texts: the path of its lock below the root, its node's name, its reason */
	STATE_EVICTION, /* texts: the path of the entry */
};

/* As struct lease, without the connection. */
struct state_lease {
	int64_t timeout_us, deadline_us, sent_us[3], answered_us, void_us, doubt_us;
	int64_t steps;
};

#define STATE_SESSION_NODE 1       /* its node is made */
#define STATE_SESSION_READY 2      /* a write was answered in it */
#define STATE_SESSION_ROOT_KNOWN 4 /* the root was there */
#define STATE_SESSION_ROOT_GONE 8
#define STATE_SESSION_POKES 16 /* the node of its pokes is made */
#define STATE_SESSION_POKES_LOST 32
#define STATE_SESSION_DRAINING 64

struct state_session {
	int64_t saved_us; /* first: state_join() puts it right */
	int64_t id;       /* 0: there is none now */
	uint64_t half;
	char password[STATE_PASSWORD];
	int64_t granted_us;
	int64_t away_us; /* since when it is not ready; 0: it is */
	struct state_lease lease;
	uint64_t connections, sessions;
	int32_t node_version, pokes_seen;
	uint64_t flags;
	uint32_t version, least; /* as in the head, which is made of them; 0: 1 */
	int64_t tick_us;         /* what the lease is computed from; 0: what the options say */
	int64_t home_czxid, home_ctime_ms; /* the mark of its ensemble; 0: not known */
	uint64_t home_number;
};

struct state_counters {
	uint64_t takes, grants, hand_offs, losses, evictions, overdue, abandoned, doubts, requests;
	int64_t waited_us;
	uint64_t failures[LC_FAILURES], waits[LC_WAIT_BUCKETS + 1];
};

/* The numbers of states, of every version: those of other headers may change. */
enum state_of_taker { STATE_WAITING = 1, STATE_HELD, STATE_LOST, STATE_FAILED, STATE_LEFT };
enum state_of_wait { STATE_QUEUED, STATE_PROBING, STATE_MISSING };
enum state_of_loss { STATE_GUARDED, STATE_FORFEITED, STATE_GIVEN_UP };
enum state_of_entry { STATE_ABSENT, STATE_UNKNOWN, STATE_PRESENT };

#define STATE_TAKER_SHARED 1
#define STATE_TAKER_IMMEDIATE 2
#define STATE_TAKER_DUE 4     /* its state is to be told */
#define STATE_TAKER_GONE 8    /* its entry is said to be gone */
#define STATE_TAKER_UNSEEN 16 /* got the lock by hand-off, its entry was not seen since */
#define STATE_TAKER_TOLD_SINCE 32
#define STATE_TAKER_DIRTY 64 /* its data is to be written */

struct state_taker {
	uint64_t id;
	uint64_t replaces; /* 0: nobody */
	int64_t meant, asked_us, wait_until_us, hold_until_us;
	int64_t limit_at_us, recheck_at_us; /* the timers; LC_FOREVER: not set */
	uint64_t charged_bytes;
	int64_t czxid, held_since_ms;
	uint32_t uid, watches_uid; /* who pays for its entry, and for its lock's watches */
	int32_t pid, version, error;
	uint8_t state, wait, loss, entry;
	uint32_t flags, reserved;
	char command[LC_COMMAND_MAX + 1];
	uint64_t key; /* of the record */
};

struct state_eviction {
	int64_t due_us;
	uint64_t key;
	int64_t wait_us; /* its mount is not poked yet: so long from then on; 0: due_us */
};

/* One record, read or to be written. */
struct state_record {
	enum state_kind kind;
	union {
		struct state_session session;
		struct state_counters counters;
		struct state_taker taker;
		struct state_eviction eviction;
	} fixed;
	const char *texts[STATE_TEXTS_MAX]; /* NULL is "" */
};

/* ---- writing ---- */

struct state_writer {
	char *bytes;
	size_t len, room;
	bool failed; /* no memory */
};

void state_begin(struct state_writer *writer);
void state_write(struct state_writer *writer, const struct state_record *record);
/* 0 or -ENOMEM; the bytes are the caller's, or freed. */
int state_end(struct state_writer *writer, void **ret_state, size_t *ret_len);

/* The same for one record: `writer` is 0 at first, or what it was. NULL: no memory. */
const void *state_write_alone(struct state_writer *writer, const struct state_record *record,
                              size_t *ret_len);
/* A record that is written already. */
void state_append(struct state_writer *writer, const void *bytes, size_t len);
/* lc_join_state() */
int state_join(const struct lc_record *records, size_t count, void **ret_state, size_t *ret_len);

/* ---- the keys ---- */

#define STATE_KEY_SESSION 1
#define STATE_KEY_COUNTERS 2
#define STATE_KEY_TAKERS 15 /* of takers: behind this */
#define STATE_KEY_EVICTIONS (UINT64_C(1) << 63)

/* ---- reading ---- */

/* All of it, so that the functions below need not: 0, -EPROTO, -ENOTSUP, -ENOMEM. */
int state_check(const void *state, size_t len);
/* But an eviction that is not good costs no other record: its reader asks. */
bool state_is_good_eviction(const struct state_record *record, const char *root);
/* The next record of a known kind. `offset` is 0 at first. False: that was the last one. */
bool state_read(const void *state, size_t len, size_t *offset, struct state_record *ret_record);

#endif
