/* SPDX-License-Identifier: MIT
 *
 * forged.h - the records of an engine, field by field, in their order: a test can make what no
 * engine would write, and look at what an engine has written. As there, one function does both.
 */
#ifndef TESTS_FORGED_H
#define TESTS_FORGED_H

#include "lockcore.h"
#include "pure/codec.h"

#include <stdint.h>

struct forged_session {
	const char *root;
	int64_t draining, id, half;
	const char *password;
	size_t password_len;
	int64_t granted_us, away_us, connections, sessions, node_version, node_made, was_ready;
	int64_t home_root, home_czxid, home_ctime_ms, home_number;
	int64_t tick_us, timeout_us, deadline_us, sent_us[3], answered_us, steps, void_us, doubt_us;
	int64_t renews_us, late_us;
	int64_t pokes_seen, pokes_lost, pokes_made;
};

/* Of a taker's flags. */
#define FORGED_SHARED 1
#define FORGED_IMMEDIATE 2
#define FORGED_DUE 4
#define FORGED_GONE 8
#define FORGED_UNSEEN 16
#define FORGED_WITHDRAWN 128

/* The states as the engine has them. */
enum { FORGED_WAITING, FORGED_HELD, FORGED_LOST, FORGED_FAILED, FORGED_LEFT };
enum { FORGED_QUEUED, FORGED_PROBING, FORGED_MISSING };
enum { FORGED_ABSENT, FORGED_CREATING, FORGED_UNKNOWN, FORGED_PRESENT, FORGED_DELETING };

struct forged_taker {
	const char *lock, *reason, *name;
	int64_t id, state, wait, loss, entry, flags, replaces, error, meant, crowd;
	int64_t asked_us, wait_until_us, hold_until_us, limit_us, recheck_us, held_since_ms;
	int64_t charged, watches_uid, czxid, version, pid, uid;
	const char *command;
};

static inline void forge_number(struct codec *codec, int64_t *number)
{
	*number = codec_number(codec, *number, INT64_MIN, INT64_MAX);
}

static inline void forge_numbers(struct codec *codec, int64_t *const numbers[])
{
	for (; *numbers; numbers++)
		forge_number(codec, *numbers);
}

/* LC_FOREVER is -1 in a record. */
static inline void forge_time(struct codec *codec, int64_t *us)
{
	if (*us == LC_FOREVER)
		*us = -1;
	forge_number(codec, us);
	if (*us == -1)
		*us = LC_FOREVER;
}

static inline void forge_session(struct codec *codec, struct forged_session *session)
{
	struct forged_session *s = session;

	s->root = codec_text(codec, s->root);
	forge_numbers(codec, (int64_t *[]){&s->draining, &s->id, &s->half, NULL});
	s->password = codec_bytes(codec, s->password, &s->password_len);
	forge_numbers(codec, (int64_t *[]){&s->granted_us,    &s->away_us,      &s->connections,
	                                   &s->sessions,      &s->node_version, &s->node_made,
	                                   &s->was_ready,     &s->home_root,    &s->home_czxid,
	                                   &s->home_ctime_ms, &s->home_number,  &s->tick_us,
	                                   &s->timeout_us,    &s->deadline_us,  &s->sent_us[0],
	                                   &s->sent_us[1],    &s->sent_us[2],   &s->answered_us,
	                                   &s->steps,         &s->void_us,      NULL});
	forge_time(codec, &s->doubt_us);
	forge_time(codec, &s->renews_us);
	forge_time(codec, &s->late_us);
	forge_numbers(codec, (int64_t *[]){&s->pokes_seen, &s->pokes_lost, &s->pokes_made, NULL});
}

static inline void forge_counter(struct codec *codec, const char *name, int64_t of, int64_t value)
{
	(void)codec_text(codec, name);
	forge_number(codec, &of);
	forge_number(codec, &value);
}

/* `count` of them follow. */
static inline void forge_counters(struct codec *codec, int64_t waited_us, size_t count)
{
	forge_number(codec, &waited_us);
	(void)codec_count(codec, count);
}

static inline void forge_taker(struct codec *codec, struct forged_taker *taker)
{
	struct forged_taker *t = taker;

	t->lock = codec_text(codec, t->lock);
	t->reason = codec_text(codec, t->reason);
	t->name = codec_text(codec, t->name);
	forge_numbers(codec,
	              (int64_t *[]){&t->id, &t->state, &t->wait, &t->loss, &t->entry, &t->flags,
	                            &t->replaces, &t->error, &t->meant, &t->crowd, NULL});
	forge_time(codec, &t->asked_us);
	forge_time(codec, &t->wait_until_us);
	forge_time(codec, &t->hold_until_us);
	forge_time(codec, &t->limit_us);
	forge_time(codec, &t->recheck_us);
	forge_numbers(codec, (int64_t *[]){&t->held_since_ms, &t->charged, &t->watches_uid,
	                                   &t->czxid, &t->version, &t->pid, &t->uid, NULL});
	t->command = codec_text(codec, t->command);
}

static inline void forge_eviction(struct codec *codec, const char *path, int64_t due_us,
                                  int64_t wait_us)
{
	(void)codec_text(codec, path);
	forge_number(codec, &due_us);
	forge_number(codec, &wait_us);
}

#endif
