/* SPDX-License-Identifier: MIT
 *
 * takers.h - takers on the rig: the layers up to the one that tells the face, wired as core.c
 * wires them. The lock is "a". What the face is told is told with the taker's pid: "7 taken",
 * "7 taken EAGAIN", "7 lost". What the session tells is not recorded.
 *
 * In a listing an entry of this mount is "#ID-NUMBER", as in what is sent. The first taker of a
 * test has the id 2, the next one 3.
 */
#ifndef LAYER_TAKERS_H
#define LAYER_TAKERS_H

#include "rig.h"

#define TAKERS_MAX 16
/* Entries of other clients. */
#define OTHER(number) "x-lock-000000000" #number
#define OTHER_SHARED(number) "x-rlock-000000000" #number

/* As answers of the ensemble tell it; a test may change it. */
extern struct ensemble_stat takers_lock;

/* The session is ready. */
struct rig *takers_begin(void);
/* The session ends, and all takers leave. Nothing may be left. */
void takers_end(struct rig *rig);
/* A test that has *state as its rig. A test of several cases begins and ends a rig for each. */
int takers_set_up(void **state);
int takers_tear_down(void **state);
#define TAKERS_TEST(test) cmocka_unit_test_setup_teardown(test, takers_set_up, takers_tear_down)

/* By this request, whose pid is below TAKERS_MAX. */
struct lc_taker *takers_request(struct rig *rig, const struct lc_request *request);
/* Of the lock "a"; `wait_us` as in struct lc_request. */
struct lc_taker *takers_take(struct rig *rig, pid_t pid, enum lc_mode mode, int64_t wait_us);
void takers_leave(struct rig *rig, struct lc_taker *taker);
/* The test itself sees to it that it leaves. */
void takers_disown(const struct lc_taker *taker);

/* What is due is told; what a turn has collected is sent. */
void takers_turn(struct rig *rig);
/* Time goes on, turn by turn: one for each timer that fires. */
void takers_run(struct rig *rig, int64_t duration_us);

/* Watches are good, and the request that comes next is answered: the create of this taker, with
 * this number, */
void takers_answer_made(struct rig *rig, struct lc_taker *taker, int number);
/* a listing: names with a space between two, or "", */
void takers_answer_list(struct rig *rig, const char *names);
/* all listings that are under way, and the watches behind them, */
void takers_answer_lists(struct rig *rig, const char *names);
/* the watch of the lock's node, with so many slots. A turn follows each of them. */
void takers_answer_slots(struct rig *rig, unsigned slots);
void takers_answer_error(struct rig *rig, enum ensemble_result result);
/* All watches that come next are good, and those that are taken back are gone: of the lock, with
 * one slot, of own entries, and of others'. */
void takers_answer_watches(struct rig *rig);

/* One more that has its entry, of this number. If the lock is listed, that shows `names`. All is
 * answered; what was sent and told is forgotten. */
struct lc_taker *takers_queue(struct rig *rig, pid_t pid, enum lc_mode mode, int number,
                              const char *names);
/* A node of the lock has changed. */
void takers_change(struct rig *rig, const char *znode, enum ensemble_change change);
/* Another connection: what was under way is not answered, and a heartbeat is. */
void takers_reconnect(struct rig *rig);

#endif
