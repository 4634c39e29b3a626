/* SPDX-License-Identifier: MIT
 *
 * answers.c - each error has a reason, and each answer was true at some moment since the
 * question.
 */
#include "judge.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <utlist.h>

/* ---- f: errors and their reasons ---- */

/* The mount had trouble shortly before the taker asked, or later. */
static bool had_trouble(const struct taker *taker)
{
	return mount_trouble(taker->mount) >= taker->took_us - AFTER_TROUBLE_US(taker->sim);
}

/* Refusals that do not depend on the other entries of the queue. */
static void judge_refused(struct taker *taker, int err, int64_t waited_us)
{
	struct sim *sim = taker->sim;
	struct lc_status status;
	bool wanted = false;

	lc_status(taker->mount->host.lc, &status);
	switch (err) {
	case -ESHUTDOWN:
		wanted = status.state == LC_UNUSABLE || taker->mount->drained;
		break;
	case -EPROTO: /* an entry that a lagging follower still shows is a reason, as for EAGAIN */
		wanted = taker->lock->incompatible_us >= taker->took_us - LAG_US ||
		         mount_trouble(taker->mount) >= taker->took_us - LAG_US;
		break;
	case -EHOSTUNREACH:
		wanted = waited_us >= taker->wait_us && had_trouble(taker);
		break;
	case -ENOLCK: /* also when a copy has the very name that its entry was to get, or, where
	               * numbers repeat, its own create that was given up and is done late */
		wanted = (sim->plan.weight[FAULT_REFUSE] && had_trouble(taker)) ||
		         sim->plan.copies > 0 ||
		         (sim->plan.near_overflow && sim->plan.weight[FAULT_BACKLOG]);
		break;
	}
	if (!wanted)
		sim_violation(sim, "f: error %d for taker %d without a reason", err, taker->pid);
}

/* The taker means a former lock, not the present one. The former lock may have been removed long
 * before the question that told of it: a server in trouble shows the past. */
static bool meant_another(const struct taker *taker)
{
	const struct node *node = tree_find(&taker->sim->world.committed, taker->lock->path);

	return taker->meant && node && node->stat.czxid != taker->meant;
}

/* So many waited at some moment since it asked; and nobody counts it any more. */
static void judge_crowded(struct taker *taker)
{
	struct sim *sim = taker->sim;

	sim->totals->crowded++;
	if (taker->crowded_us < taker->took_us &&
	    mount_trouble(taker->mount) < taker->took_us - LAG_US)
		sim_violation(sim, "f: EAGAIN for taker %d, and fewer than %u waited", taker->pid,
		              taker->crowd);
	if (sight_has_entry(taker))
		sim_violation(sim, "f: EAGAIN for taker %d, whose entry others count", taker->pid);
}

void judge_failed(struct taker *taker, int err)
{
	struct sim *sim = taker->sim;
	struct lock_state *lock = taker->lock;
	int64_t waited_us = host_clock_us(&taker->mount->host) - taker->took_clock_us;

	look_at_lock(sim, lock);
	if (err == -EAGAIN && taker->crowd > 0) {
		judge_crowded(taker);
	} else if (err == -EAGAIN) {
		if (taker->wait_us != 0)
			sim_violation(sim, "f: EAGAIN for taker %d that would wait", taker->pid);
		else if (taker->unfree_us < taker->took_us - LAG_US &&
		         mount_trouble(taker->mount) < taker->took_us - LAG_US)
			sim_violation(sim, "f: EAGAIN for taker %d, and nobody else was there",
			              taker->pid);
	} else if (err == -EDEADLK) {
		if (!taker->upgrades || taker->wait_us == 0 || taker->barred_us < taker->took_us)
			sim_violation(
				sim,
				"f: EDEADLK for taker %d, and nothing exclusive stood before it",
				taker->pid);
	} else if (err == -ETIMEDOUT) {
		if (taker->wait_us == 0 || taker->wait_us == LC_FOREVER ||
		    waited_us < taker->wait_us)
			sim_violation(sim, "f: ETIMEDOUT for taker %d after %" PRId64 " us",
			              taker->pid, waited_us);
	} else if (err == -ENOENT) {
		if (lock->absent_us < (taker->meant ? taker->meant_us - LAG_US : taker->took_us) &&
		    !meant_another(taker))
			sim_violation(sim, "f: ENOENT for taker %d, and %s was there", taker->pid,
			              lock->name);
	} else if (err == -ECANCELED) {
		if (!taker->evicted_alone && taker->marked_us < 0)
			sim_violation(sim, "f: ECANCELED for taker %d that nobody evicted",
			              taker->pid);
	} else {
		judge_refused(taker, err, waited_us);
	}
}

/* ---- questions ---- */

/* All entries that the asked server has in the lock now have to be in the answer. */
static void look_at_server(struct question *question)
{
	const struct wire *wire = &question->mount->host.wire;
	struct sim *sim = question->sim;
	struct node *parent, *node;

	if (wire->state != WIRE_CONNECTED || stray_is_away(question->mount))
		return;
	parent = tree_find(&sim->world.servers[wire->conn->server].tree, question->lock->path);
	if (!parent || !parent->stat.children)
		return;
	question->seen_on = wire->conn_count;
	question->seen =
		arena_zalloc(&sim->arena, (size_t)parent->stat.children * sizeof(*question->seen));
	DL_FOREACH(parent->children, node)
		if (judge_is_entry(node))
			question->seen[question->seen_count++] = node->stat.czxid;
}

void judge_asking(struct question *question)
{
	struct sim *sim = question->sim;
	struct taker *taker = question->taker;

	look_at_lock(sim, question->lock);
	if (question->kind == Q_LIST)
		look_at_server(question);
	if (taker)
		question->entry_gone = !judge_entry(&sim->world.proposed, taker) &&
		                       !judge_entry(&sim->world.committed, taker);
}

/* That moment was so long before the question that every server must know what it changed. */
static bool too_late(const struct question *question, int64_t us)
{
	return us < question->asked_us - LAG_US &&
	       mount_trouble(question->mount) < question->asked_us - LAG_US;
}

/* One of the entries behind the taker came well before the question, and surely waits. */
static bool waiter_behind(const struct question *question)
{
	struct sim *sim = question->sim;
	struct node *node = judge_entry(&sim->world.committed, question->taker);

	for (node = node ? node->next : NULL; node; node = node->next) {
		struct taker *owner = judge_owner(sim, node);

		if (judge_is_entry(node) && !node->could_since_us &&
		    sight_made_us(sim, node) < question->asked_us - LAG_US &&
		    sight_may_wait(sim, owner, question->mount) &&
		    (question->taker->mode == LC_EXCLUSIVE || !(order_shape(node) & SHAPE_SHARED)))
			return true;
	}
	return false;
}

static void judge_waiters(struct question *question)
{
	struct taker *taker = question->taker;

	if (!question->waiters && taker->behind_since_us &&
	    too_late(question, taker->behind_since_us) && waiter_behind(question))
		sim_violation(question->sim,
		              "f: taker %d is told that no taker waits behind it, and one does",
		              taker->pid);
	if (question->waiters && too_late(question, later(taker->behind_us, taker->granted_us)) &&
	    !question->sim->plan.near_overflow)
		sim_violation(question->sim,
		              "f: taker %d is told that a taker waits behind it, and none does",
		              taker->pid);
}

/* Whether this error has a reason, for the kinds of question from Q_CONFIRM on. */
static bool may_fail(const struct question *question, int err)
{
	struct sim *sim = question->sim;
	struct taker *taker = question->taker;

	switch (err) {
	case -EHOSTUNREACH:
		return true;
	case -EBUSY: /* the mount was stopped before it could send the question */
		return mount_trouble(question->mount) >= question->asked_us;
	case -EACCES:
		return question->mount->host.wire.refused;
	case -ESHUTDOWN:
		return lc_why(question->mount->host.lc) != 0;
	case -ENOLCK:
		return sim->plan.weight[FAULT_REFUSE];
	case -EIO:
		return taker && (taker->phase != T_HELD || !lc_holds(taker->lc) ||
		                 !judge_entry(&sim->world.proposed, taker));
	case -ENOENT:
		return question->lock->absent_us >= question->asked_us || question->znode ||
		       lock_data_met_another(question);
	default:
		return false;
	}
}

static void judge_evict(struct question *question, int err)
{
	struct node *node = tree_find(&question->sim->world.proposed, question->lock->path);

	if (err == 0)
		marks_promised(question);
	if (node && err == -ENOENT)
		DL_FOREACH(node->children, node)
			if (node->stat.czxid == question->token)
				sim_violation(question->sim, "f: lc_evict does not find %s",
				              node->path);
}

static bool has_below(const struct sim *sim, const struct lock_state *lock)
{
	size_t len = strlen(lock->name);

	for (int i = 0; i < sim->plan.locks; i++)
		if (strncmp(sim->locks[i].name, lock->name, len) == 0 &&
		    sim->locks[i].name[len] == '/')
			return true;
	return false;
}

void judge_answered(struct question *question, int err)
{
	struct sim *sim = question->sim;
	struct lock_state *lock = question->lock;

	look_at_lock(sim, lock);
	if (question->kind == Q_STAT && err == -ENOENT && lock->absent_us < question->asked_us)
		sim_violation(sim, "f: lc_stat says that %s is not there", lock->name);
	if (question->kind == Q_MKDIR && err == 0 && lock->present_us < question->asked_us)
		sim_violation(sim, "f: lc_mkdir has not made %s", lock->name);
	if (question->kind == Q_RMDIR && err == 0 && lock->absent_us < question->asked_us)
		sim_violation(sim, "f: lc_rmdir has not removed %s", lock->name);
	if (question->kind == Q_RMDIR && err == -ENOTEMPTY && !has_below(sim, lock))
		sim_violation(sim, "f: lc_rmdir sees locks below %s", lock->name);
	if (question->kind == Q_CONFIRM && err == 0 && question->entry_gone)
		sim_violation(sim, "a: lc_confirm says that taker %d holds", question->taker->pid);
	if (question->kind >= Q_CONFIRM && err < 0 && !may_fail(question, err))
		sim_violation(sim, "f: question %d about %s is answered %d", question->kind,
		              lock->name, err);
	if (question->kind == Q_WAITERS && err == 0)
		judge_waiters(question);
	if (question->kind == Q_EVICT)
		judge_evict(question, err);
	/* The frontend gives no token of a lost lock (reply_token() in open_lock_file.c). */
	if (question->kind == Q_TOKEN && err == 0 && question->taker->phase == T_HELD)
		judge_given(question->taker, lc_give_token(question->taker->lc));
	if (question->deed)
		lock_data_answered(question, err);
}

static unsigned shape_of(const struct lc_entry *entry)
{
	return SHAPE_ENTRY | (entry->mode == LC_SHARED ? SHAPE_SHARED : 0) |
	       (entry->of_mount ? SHAPE_OF_MOUNT : 0);
}

/* The first entry that is shown as holding and would wait with so many slots, or the reverse. */
static const struct lc_entry *shown_wrong(const struct lc_listing *listing, unsigned slots)
{
	struct crowd crowd = {0};

	for (size_t i = 0; i < listing->entry_count; i++) {
		const struct lc_entry *entry = &listing->entries[i];

		if (entry->held != crowd_admits(&crowd, entry->mode, slots))
			return entry;
		crowd_add(&crowd, shape_of(entry));
	}
	return NULL;
}

static void judge_held(struct question *question, const struct lc_listing *listing)
{
	const struct lc_entry *wrong = NULL;

	for (unsigned slots = question->sim->plan.slots_max; slots > 0; slots--)
		if (lock_data_had_slots(question, slots)) {
			wrong = shown_wrong(listing, slots);
			if (!wrong)
				return;
		}
	if (wrong)
		sim_violation(question->sim, "lc_list shows %s as %s", wrong->znode,
		              wrong->held ? "held" : "waiting");
}

static bool shows(const struct lc_listing *listing, const char *name)
{
	for (size_t i = 0; i < listing->entry_count; i++)
		if (strcmp(listing->entries[i].znode, name) == 0)
			return true;
	return false;
}

/* The answer may be shared with other questions, but it is not older than this one. */
static void judge_freshness(struct question *question, const struct lc_listing *listing)
{
	struct sim *sim = question->sim;
	struct node *parent = tree_find(&sim->world.committed, question->lock->path), *node;

	if (!parent || question->root || question->seen_on != question->mount->host.wire.conn_count)
		return;
	DL_FOREACH(parent->children, node)
		for (int i = 0; i < question->seen_count; i++)
			if (node->stat.czxid == question->seen[i] && !shows(listing, node->name))
				sim_violation(sim,
				              "f: lc_list does not show %s, which was there before "
				              "it was asked",
				              node->path);
}

void judge_listing(struct question *question, const struct lc_listing *listing)
{
	struct sim *sim = question->sim;

	judge_freshness(question, listing);
	if (!question->root)
		judge_held(question, listing);
	for (size_t i = 1; i < listing->entry_count; i++)
		if (!sim->plan.near_overflow &&
		    listing->entries[i].number <=
		            listing->entries[i - 1].number -
		                    (sim->plan.copies || sim->plan.late_readers))
			sim_violation(sim, "lc_list shows %s after %s", listing->entries[i].znode,
			              listing->entries[i - 1].znode);
	for (size_t i = 1; i < listing->lock_count; i++)
		if (strcmp(listing->locks[i - 1], listing->locks[i]) >= 0)
			sim_violation(sim, "lc_list shows lock %s after %s", listing->locks[i],
			              listing->locks[i - 1]);
}

/* The facts that are told of an entry are its own. */
void judge_entries(struct question *question, const struct lc_entry_info *infos, size_t count)
{
	struct sim *sim = question->sim;
	struct node *parent = tree_find(&sim->world.committed, question->lock->path), *node;

	for (size_t i = 0; i < count && parent; i++)
		DL_FOREACH(parent->children, node) {
			const struct lc_entry_info *info = &infos[i];

			if (strcmp(node->name, info->entry.znode) != 0 ||
			    (sim->plan.copies && info->token < node->stat.czxid))
				continue; /* or another node has its name since then */
			if (info->token != node->stat.czxid ||
			    info->session != node->stat.ephemeral_owner ||
			    (info->entry.mode == LC_SHARED) !=
			            !!(order_shape(node) & SHAPE_SHARED) ||
			    (!sim->plan.near_overflow &&
			     info->entry.incompatible !=
			             !!(order_shape(node) & SHAPE_INCOMPATIBLE)) ||
			    (judge_owner(sim, node) &&
			     info->entry.pid != judge_owner(sim, node)->process))
				sim_violation(sim, "lc_entries() has other facts of %s",
				              node->path);
		}
}

void judge_questions(struct sim *sim)
{
	struct question *question;

	DL_FOREACH(sim->questions, question)
		if (host_running_us(&question->mount->host) - question->asked_running_us >
		    LC_CALL_TIMEOUT_US + SLACK_US)
			sim_violation(sim, "e: question %d about %s is not answered",
			              question->kind, question->lock->name);
}
