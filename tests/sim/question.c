/* SPDX-License-Identifier: MIT
 *
 * question.c - questions of programs, about locks, their queues, the waiters behind a holder;
 * and changes, of locks, slots, values and other takers' entries.
 */
#include "sim.h"

#include "mutation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* ---- the end of a question ---- */

static void cancel(struct question *question)
{
	question->sim->inside_call = true;
	if (!question->swallowed && question->call)
		lc_cancel(question->call);
	question->sim->inside_call = false;
	if (question->deed)
		question->deed->cancelled = true;
	DL_DELETE(question->sim->questions, question);
}

void questions_cancel(struct sim *sim, const struct mount *mount, const struct taker *taker)
{
	struct question *question, *after;

	DL_FOREACH_SAFE(sim->questions, question, after)
		if (mount ? question->mount == mount : question->taker == taker)
			cancel(question);
}

static void answered(struct question *question, int err)
{
	struct sim *sim = question->sim;

	if (question->mount->vanishing) { /* the answer is not told */
		question->call = NULL;
		return;
	}
	if (mutation == MUTATE_swallow_done && rng_chance(&sim->rng, 50)) {
		question->swallowed = true;
		return;
	}
	if (sim->inside_call)
		sim_violation(sim, "a call's answer came from inside a call");
	judge_answered(question, err);
	sim->totals->questions++;
	if (err == -EHOSTUNREACH)
		sim->totals->unreachable++;
	DL_DELETE(sim->questions, question);
	if (question->kind == Q_WAITERS)
		user_waiters_told(question->taker, err, question->waiters);
}

static void done(void *ctx, int err)
{
	answered(ctx, err);
}

static void waiters_done(void *ctx, int err, bool waiters)
{
	struct question *question = ctx;

	question->waiters = waiters;
	answered(question, err);
}

static void learn(struct question *question, const struct lc_lock_info *info)
{
	long i = question->lock - question->sim->locks;

	lock_data_judge_slots(question, info->slots);
	question->mount->known[i].czxid = info->czxid;
	question->mount->known[i].since_us = question->asked_us; /* or later */
}

static void stat_done(void *ctx, int err, const struct lc_lock_info *info)
{
	struct question *question = ctx;

	if (err == 0 && !question->mount->vanishing)
		learn(question, info);
	answered(question, err);
}

/* What is remembered is as new as all that was told before. */
static void recall(struct question *question)
{
	struct lc_lock_info info;
	const long i = question->lock - question->sim->locks;

	if (!lc_recall(question->mount->host.lc, question->lock->name, &info))
		return;
	question->sim->totals->recalls++;
	if (info.czxid < question->mount->known[i].czxid)
		sim_violation(question->sim, "f: lc_recall() knows the former %s",
		              question->lock->name);
	learn(question, &info);
}

/* Of the lock as it was made, or after a change; it may be another one by now. */
static void change_done(void *ctx, int err, const struct lc_lock_info *info)
{
	struct question *question = ctx;

	if (err == 0 && (info->czxid == 0 || info->slots == 0))
		sim_violation(question->sim, "f: a lock of no czxid or no slots");
	answered(ctx, err);
}

static void list_done(void *ctx, int err, const struct lc_listing *listing)
{
	if (err == 0 && !((struct question *)ctx)->mount->vanishing)
		judge_listing(ctx, listing);
	answered(ctx, err);
}

static void entries_done(void *ctx, int err, const struct lc_entry_info *infos, size_t count)
{
	if (err == 0 && !((struct question *)ctx)->mount->vanishing)
		judge_entries(ctx, infos, count);
	answered(ctx, err);
}

static void value_done(void *ctx, int err, const char *value, size_t len)
{
	if (err == 0 && !((struct question *)ctx)->mount->vanishing)
		lock_data_judge_value(ctx, value, len);
	answered(ctx, err);
}

static void cancel_later(void *ctx, uint64_t arg)
{
	struct question *question = ctx, *other;
	struct sim *sim = question->sim;

	DL_FOREACH(sim->questions, other)
		if (other == question)
			break;
	if (!other)
		return;
	if (question->mount->host.paused)
		agenda_in(&sim->agenda, 50000, cancel_later, ctx, arg);
	else
		cancel(question);
}

/* ---- the beginning of a question ---- */

static int put_question(struct question *question, struct rng *rng)
{
	static const struct lc_attributes attributes = {
		.uid = 1, .gid = 1, .mode = 0755, .lock_file_mode = 0644};
	static const struct lc_lock_info seen;
	struct lc *lc = question->mount->host.lc;
	struct deed *deed = question->deed;
	const char *lock = question->lock->name;

	switch (question->kind) {
	case Q_STAT:
		recall(question);
		return (rng_chance(rng, 500) ? lc_seek : lc_stat)(
			lc, lock, question->uid, stat_done, question, &question->call);
	case Q_LIST:
		question->root = rng_chance(rng, 100);
		return lc_list(lc, question->root ? "" : lock, question->uid, list_done, question,
		               &question->call);
	case Q_ENTRIES:
		return lc_entries(lc, lock, question->uid, NULL, NULL, 0, entries_done, question,
		                  &question->call);
	case Q_MKDIR:
		return lc_mkdir(lc, lock, &attributes, NULL, change_done, question,
		                &question->call);
	case Q_RMDIR:
		return lc_rmdir(lc, lock, 0, question->uid % 2 ? &seen : NULL, done, question,
		                &question->call);
	case Q_CONFIRM:
		return lc_confirm(question->taker->lc, done, question, &question->call);
	case Q_WAITERS:
		return lc_has_waiters(question->taker->lc, waiters_done, question, &question->call);
	case Q_VALUE:
		return lc_value(lc, lock, question->uid, value_done, question, &question->call);
	case Q_SET_VALUE:
		return lc_set_value(question->taker->lc, deed->text, strlen(deed->text),
		                    deed->append, done, question, &question->call);
	case Q_CHANGE:
		return lc_change(lc, lock, &deed->change, change_done, question, &question->call);
	case Q_TOKEN:
		return lc_fetch_token(question->taker->lc, done, question, &question->call);
	case Q_EVICT:
		return lc_evict(lc, lock, question->znode,
		                &(struct lc_evictor){.name = "an operator"}, done, question,
		                &question->call);
	}
	return -EINVAL;
}

static void ask(struct question *question, struct rng *rng)
{
	static const char *const names[] = {"stat",      "list",    "entries",    "mkdir",
	                                    "rmdir",     "confirm", "waited for", "value",
	                                    "set value", "change",  "evict",      "token"};
	struct sim *sim = question->sim;
	int err;

	question->asked_us = sim->agenda.now_us;
	question->asked_running_us = host_running_us(&question->mount->host);
	judge_asking(question);
	DL_APPEND(sim->questions, question);
	sim->inside_call = true;
	err = put_question(question, rng);
	sim->inside_call = false;
	trace("%s: question, %s, about %s%s%s: %d", question->mount->host.name,
	      names[question->kind], question->lock->name, question->znode ? "/" : "",
	      question->znode ? question->znode : "", err);
	host_wake(&question->mount->host);
	if (err < 0) {
		DL_DELETE(sim->questions, question);
		judge_answered(question, err);
		return;
	}
	if (rng_chance(rng, 100))
		agenda_in(&sim->agenda, rng_spread(rng, 100, 1000000), cancel_later, question, 0);
}

static struct question *question_new(struct mount *mount, enum question_kind kind,
                                     struct lock_state *lock)
{
	struct question *question = arena_zalloc(&mount->sim->arena, sizeof(*question));

	*question = (struct question){.sim = mount->sim,
	                              .mount = mount,
	                              .kind = kind,
	                              .lock = lock,
	                              .uid = (uid_t)(mount->sim->agenda.now_us % 3)};
	return question;
}

void question_holder(struct taker *taker, enum question_kind kind, struct rng *rng)
{
	struct question *question = question_new(taker->mount, kind, taker->lock);

	question->taker = taker;
	if (kind == Q_SET_VALUE)
		question->deed = lock_data_value(taker, rng_chance(rng, 500));
	ask(question, rng);
}

static struct lock_state *any_lock(struct sim *sim, struct rng *rng)
{
	return &sim->locks[rng_below(rng, (uint64_t)sim->plan.locks)];
}

void question_something(struct mount *mount, struct rng *rng)
{
	struct lock_state *lock = any_lock(mount->sim, rng);
	unsigned dice = (unsigned)rng_below(rng, 100);
	enum question_kind kind = dice < 30   ? Q_STAT
	                          : dice < 60 ? Q_LIST
	                          : dice < 80 ? Q_ENTRIES
	                          : dice < 93 ? Q_MKDIR
	                                      : Q_RMDIR;

	ask(question_new(mount, kind, lock), rng);
	/* A lock that is removed is made again. */
	if (kind == Q_RMDIR)
		ask(question_new(mount, Q_MKDIR, lock), rng);
}

void question_data(struct mount *mount, struct rng *rng)
{
	struct sim *sim = mount->sim;
	struct lock_state *lock = any_lock(sim, rng);
	struct question *question;
	struct lc_change change = {.attributes = {.gid = 1}};

	if (rng_chance(rng, 500)) {
		ask(question_new(mount, Q_VALUE, lock), rng);
		return;
	}
	if (sim->plan.slots_max > 1 && rng_chance(rng, 700))
		change.slots = (unsigned)rng_between(rng, 1, sim->plan.slots_max);
	change.set_gid = !change.slots || rng_chance(rng, 300);
	change.attributes.gid = (gid_t)rng_between(rng, 1, 1000000);
	question = question_new(mount, Q_CHANGE, lock);
	question->deed = lock_data_change(mount, lock, &change);
	ask(question, rng);
}

void question_evict(struct mount *mount, struct rng *rng)
{
	struct lock_state *lock = any_lock(mount->sim, rng);
	struct node *parent = tree_find(&mount->sim->world.committed, lock->path), *node;
	struct question *question;
	uint64_t pick;

	if (!parent || !parent->stat.children)
		return;
	pick = rng_chance(rng, 300) ? 0 : rng_below(rng, (uint64_t)parent->stat.children);
	DL_FOREACH(parent->children, node)
		if (pick-- == 0)
			break;
	if (!judge_is_entry(node))
		return;
	question = question_new(mount, Q_EVICT, lock);
	question->znode = arena_strdup(&mount->sim->arena, node->name);
	question->token = node->stat.czxid;
	marks_asked(mount->sim, node);
	ask(question, rng);
}
