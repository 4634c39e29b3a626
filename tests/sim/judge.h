/* SPDX-License-Identifier: MIT
 *
 * judge.h - the common header of the judge's files.
 *
 *   judge      holds, grants and losses; the order of judging
 *   sight      the entries in the trees, and the takers that could hold
 *   answers    errors and answers of questions: each has a reason
 *   overdue    steps that take too long, and leftovers at the end
 *   order      which taker has to wait for which, at present and in the past
 *   lock_data  the locks' data
 *   marks      evicted entries
 *
 * Time limits count from the last moment of trouble of the taker's mount.
 */
#ifndef SIM_JUDGE_H
#define SIM_JUDGE_H

#include "sim.h"

#define LOOK_US 250000     /* the distance between two slow looks */
#define LAG_US 500000      /* a server without trouble shows a commit within this time */
#define NOTICE_US 2000000  /* a taker is told of its eviction */
#define SETTLED_US 4000000 /* after trouble, before fast answers are required */
/* Some round trips: an entry without a taker is deleted, the first taker is granted. */
#define BRISK_US(sim) \
	(200000 + 15 * (sim)->plan.world.delay_max_us + 5 * (sim)->plan.world.commit_max_us)
#define NEWS_US 50000 /* where nothing is slow: an event has come */
#define TURN_US 10000 /* a mount's turn has come and gone */
/* After a silence the lease wants two more steps, each w after the other, or T/6
 * while nobody waits. */
#define AFTER_TROUBLE_US(sim) (2500000 + (sim)->plan.tick_us + (sim)->plan.timeout_us / 3)
#define LATE_US 70000000  /* a lock is listed, of which an entry may come late */
#define ALONE_US 4000000  /* a waiter has an entry */
#define UNHELD_US 1000000 /* a taker that does not hold any more is told */
#define SLACK_US 1000000  /* a time limit may end so much later */

static inline int64_t now_us(const struct sim *sim)
{
	return sim->agenda.now_us;
}

static inline int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* ---- judge.c ---- */

/* The lock is lost, and its program may still be at work: its entry has to stay. */
bool judge_works_on(const struct taker *taker);
/* The lock is lost, and its entry has to be deleted. */
bool judge_may_go(const struct taker *taker);
/* This mount may ignore the owner's entry: the mount itself is about to delete it. */
bool judge_leaving(const struct taker *owner, const struct mount *mount);

/* ---- sight.c ---- */

void look_at_lock(struct sim *sim, struct lock_state *lock);
void look_at_locks(struct sim *sim);
int64_t sight_made_us(const struct sim *sim, const struct node *node);
/* Others see an entry of it, of this session. */
bool sight_has_entry(const struct taker *taker);
/* The entry behind a holder's is surely a waiter's. `owner`: its taker, or NULL. */
bool sight_may_wait(const struct sim *sim, const struct taker *owner, const struct mount *mount);

/* ---- answers.c ---- */

void judge_questions(struct sim *sim);

/* ---- overdue.c ---- */

void overdue_begin(struct sim *sim);

#endif
