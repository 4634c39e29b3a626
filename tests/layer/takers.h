/* SPDX-License-Identifier: MIT
 *
 * takers.h - takers on the rig: the layers up to the one that tells the frontend, wired as core.c
 * wires them. The lock is "a". Results for the frontend are recorded with the taker's pid:
 * "7 taken", "7 taken EAGAIN", "7 lost". Callbacks of the session are not recorded.
 *
 * In a listing an entry of this mount is "#ID-NUMBER", as in requests. The first taker of a
 * test has the id 2, the next one 3.
 */
#ifndef LAYER_TAKERS_H
#define LAYER_TAKERS_H

#include "rig.h"

#define TAKERS_MAX 16
/* Entries of other clients. */
#define OTHER(number) "x-lock-000000000" #number
#define OTHER_SHARED(number) "x-rlock-000000000" #number
/* One with a number that the lock did not give. */
#define MADE_BY_HAND(number) "hand-lock-000000000" #number

/* The lock's Stat in answers of the ensemble; a test may change it. */
extern struct ensemble_stat takers_lock;

/* A rig whose session is ready. */
struct rig *takers_begin(void);
/* The session ends, and all takers leave. Nothing may be left. */
void takers_end(struct rig *rig);
/* A test that has *state as its rig. A test of several cases begins and ends a rig for each. */
int takers_set_up(void **state);
int takers_tear_down(void **state);
#define TAKERS_TEST(test) cmocka_unit_test_setup_teardown(test, takers_set_up, takers_tear_down)

/* Takes a lock by this request, whose pid is below TAKERS_MAX. */
struct lc_taker *takers_request(struct rig *rig, const struct lc_request *request);
/* Takes the lock "a"; `wait_us` as in struct lc_request. */
struct lc_taker *takers_take(struct rig *rig, pid_t pid, enum lc_mode mode, int64_t wait_us);
void takers_leave(struct rig *rig, struct lc_taker *taker);
/* From now on the test itself makes the taker leave. */
void takers_disown(const struct lc_taker *taker);

/* How many of all takers neither hold nor wait, nor lose a lock. */
size_t takers_leaving(const struct rig *rig);

/* Tells the results that are due, and sends the requests of the turn. */
void takers_turn(struct rig *rig);
/* Time goes on; a turn follows whenever timers have fired. */
void takers_run(struct rig *rig, int64_t duration_us);

/* Each of the next functions answers requests; a turn follows each answer. The first two answer
 * watches that come before as good. This one answers the create of this taker, with this number. */
void takers_answer_made(struct rig *rig, struct lc_taker *taker, int number);
/* A listing: names with a space between two, or "". */
void takers_answer_list(struct rig *rig, const char *names);
/* All listings that are under way, and the watches between and behind them. */
void takers_answer_lists(struct rig *rig, const char *names);
/* The next request, which watches the lock's node: it has so many slots. */
void takers_answer_slots(struct rig *rig, unsigned slots);
/* The next request, with a bare result. */
void takers_answer_error(struct rig *rig, enum ensemble_result result);
/* All watches that come next, as good, and syncs, and the requests to take watches back: of the
 * lock, with one slot, of own entries, and of other clients' entries. */
void takers_answer_watches(struct rig *rig);

/* One more taker, whose entry gets this number. If the lock is listed, the listing shows `names`.
 * All requests are answered; the recorded texts are forgotten. */
struct lc_taker *takers_queue(struct rig *rig, pid_t pid, enum lc_mode mode, int number,
                              const char *names);
/* The event of a watch: this entry has changed, or for "" the lock's own node. */
void takers_change(struct rig *rig, const char *znode, enum ensemble_change change);
/* A new connection: requests under way are answered UNKNOWN, and a heartbeat is answered OK. */
void takers_reconnect(struct rig *rig);

#endif
