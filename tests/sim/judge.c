/* SPDX-License-Identifier: MIT
 *
 * judge.c - rules that must hold in every run. The judge sees more of the world than any
 * client can: all proposals, all commits, and all that takers are told.
 *
 *   a  one holder: a taker that may believe to hold has its entry in the ensemble, and
 *      no other taker believes so
 *   b  grants come in the order of creation, past leavers of the same mount only
 *   c  fencing tokens rise
 *   d  no entry without a taker; nobody waits for a free lock
 *   e  each take and each call has one answer
 *   f  tries and timed takes keep their time, errors have their reason
 *   g  a lock is lost only with a cause
 */
#include "judge.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <utlist.h>

void sim_violation(struct sim *sim, const char *format, ...)
{
	va_list args;

	if (sim->violation[0])
		return;
	va_start(args, format);
	vsnprintf(sim->violation, sizeof(sim->violation), format, args);
	va_end(args);
	trace("VIOLATION: %s", sim->violation);
}

/* ---- the taker of an entry ---- */

struct taker *judge_owner(struct sim *sim, struct node *node)
{
	int number = order_pid(node) - PID_BASE;

	return number >= 0 && number < sim->taker_count ? sim->all[number] : NULL;
}

/* The taker's token, whether or not its mount knows it. */
int64_t judge_find_token(const struct taker *taker)
{
	struct node *parent = tree_find(&taker->sim->world.committed, taker->lock->path), *node;
	int64_t token = taker->evicted_token > taker->entry_token ? taker->evicted_token
	                                                          : taker->entry_token;

	if (parent)
		DL_FOREACH(parent->children, node)
			if (order_pid(node) == taker->pid && node->stat.czxid > token)
				token = node->stat.czxid;
	return token;
}

struct node *judge_entry(const struct tree *tree, const struct taker *taker)
{
	struct node *parent = tree_find(tree, taker->lock->path);
	struct node *node;

	if (!parent)
		return NULL;
	DL_FOREACH(parent->children, node)
		if (node->stat.czxid == taker->token && order_pid(node) == taker->pid)
			return node;
	return NULL;
}

bool judge_works_on(const struct taker *taker)
{
	const struct mount *mount = taker->mount;
	/* The session's timeout, which may have become shorter since the loss. */
	int64_t granted_us = taker->lost_granted_us < mount->granted_us ? taker->lost_granted_us
	                                                                : mount->granted_us;
	int64_t most_us = granted_us * 8 / 10;

	if (taker->phase != T_LOST)
		return false;
	/* The evictor deletes the entry after a session timeout. */
	if (marks_taken_away(taker) && now_us(taker->sim) - taker->marked_us >= most_us)
		return false;
	if (taker->forfeited)
		return true;
	return taker->sim->plan.loss_lead_us &&
	       host_clock_us(&taker->mount->host) - taker->lost_clock_us < most_us;
}

bool judge_may_go(const struct taker *taker)
{
	if (taker->forfeited)
		return false;
	return !taker->sim->plan.loss_lead_us ||
	       host_clock_us(&taker->mount->host) - taker->lost_clock_us >
	               taker->sim->plan.timeout_us + UNHELD_US;
}

bool judge_leaving(const struct taker *owner, const struct mount *mount)
{
	if (!owner || judge_works_on(owner) || owner->mount != mount || owner->life != mount->life)
		return false;
	return owner->phase != T_HELD && owner->phase != T_WAITING;
}

/* Or the taker replaces the holder of that entry. */
bool judge_passes(const struct taker *taker, int pid)
{
	int number = pid - PID_BASE;

	if (taker->replaces && taker->replaces->pid == pid && taker->replaces->phase == T_HELD)
		return true;
	return number >= 0 && number < taker->sim->taker_count &&
	       judge_leaving(taker->sim->all[number], taker->mount);
}

/* ---- a: one holder ---- */

static void judge_evicted(struct taker *taker)
{
	struct sim *sim = taker->sim;
	int64_t since_us = later(taker->evicted_us, mount_trouble(taker->mount));

	/* A mount without contact sees nothing; with contact the watch tells. */
	if (now_us(sim) - since_us > NOTICE_US)
		sim_violation(sim, "a: taker %d was evicted and still holds %s", taker->pid,
		              taker->lock->name);
	if (now_us(sim) - taker->evicted_us > sim->plan.timeout_us + NOTICE_US &&
	    taker->mount->host.paused)
		sim_violation(sim, "a: taker %d was evicted, its lease never ends", taker->pid);
}

/* The entry of `evicted` was deleted so shortly before the grant of `taker` that the news was still
 * on its way. */
static bool news_was_under_way(const struct taker *evicted, const struct taker *taker)
{
	int64_t under_way_us = taker->sim->plan.evict_waiters ? NEWS_US : BRISK_US(taker->sim);

	return evicted->evicted_us >= 0 &&
	       (evicted->evicted_us >= taker->granted_us - under_way_us ||
	        taker->mount->trouble_us >= evicted->evicted_us);
}

static bool evicted_as_holder(const struct taker *taker)
{
	return news_was_under_way(taker, taker);
}

/* A local hand-off made a holder of it when its entry was deleted already, and the news was under
 * way or not. */
static bool handed_in_vain(const struct taker *taker)
{
	return taker->handed && taker->evicted_us < taker->granted_us;
}

/* The taker was evicted before a local hand-off made it a holder. Its mount could not know that;
 * until it does the leaver's entry has to guard the lock. */
static bool guarded(struct taker *taker)
{
	struct node *parent = tree_find(&taker->sim->world.proposed, taker->lock->path);
	struct node *node;

	if (parent)
		DL_FOREACH(parent->children, node)
			if (node->stat.czxid < taker->token &&
			    judge_leaving(judge_owner(taker->sim, node), taker->mount))
				return true;
	return false;
}

/* The guard was deleted, too: the mount hears of that as with any holder's entry. */
static bool guarded_so_far(const struct taker *taker)
{
	for (int i = 0; i < taker->sim->taker_count; i++) {
		const struct taker *leaver = taker->sim->all[i];

		if (leaver->lock == taker->lock && leaver->token && leaver->token < taker->token &&
		    judge_leaving(leaver, taker->mount) && news_was_under_way(leaver, taker) &&
		    now_us(taker->sim) - later(leaver->evicted_us, mount_trouble(taker->mount)) <=
		            NOTICE_US)
			return true;
	}
	return false;
}

/* The taker's entry was deleted while it waited, and another client's node may have its name. No
 * listing can show that; a holder's entry is read, and that shows it. */
static bool stood_in(const struct taker *taker)
{
	return taker->sim->plan.copies && taker->evicted_us >= 0 &&
	       now_us(taker->sim) - later(taker->granted_us, mount_trouble(taker->mount)) <=
	               NOTICE_US;
}

/* The takers that believe to hold a lock at this moment. */
struct band {
	struct taker *exclusive, *shared; /* the last ones in the queue */
	int count;                        /* of the exclusive ones */
};

static void judge_band(struct band *band, struct taker *taker)
{
	struct taker **last = taker->mode == LC_SHARED ? &band->shared : &band->exclusive;

	/* A holder and its successor count as one. */
	if (taker->replaced_by && taker->replaced_by->phase == T_HELD)
		return;
	if (!*last || (*last)->token < taker->token)
		*last = taker;
	band->count += taker->mode == LC_EXCLUSIVE;
	if (band->exclusive && band->shared)
		sim_violation(taker->sim, "a: takers %d, exclusive, and %d, shared, both hold %s",
		              band->exclusive->pid, band->shared->pid, taker->lock->name);
	/* The last holder was let in when all the others stood before it. */
	if (band->count > 1 && band->count > (int)band->exclusive->most_slots)
		sim_violation(taker->sim, "a: %d hold %s, among them taker %d; there were %u slots",
		              band->count, taker->lock->name, band->exclusive->pid,
		              band->exclusive->most_slots);
}

/* No lock is used on a machine that stands still, nor before the engine has asked whether it
 * stood still; and while a mount is in doubt no taker is told that it holds. */
static bool judge_unsure(struct taker *taker)
{
	struct mount *mount = taker->mount;

	if (mount->host.still || mount->suspects)
		return true;
	if (!mount_doubted(mount))
		return false;
	if (!mount->host.paused && lc_holds(taker->lc))
		sim_violation(taker->sim, "a: taker %d on %s holds %s, which is in doubt",
		              taker->pid, mount->host.name, taker->lock->name);
	return true;
}

/* The taker's time limit is over. */
static bool judge_overdue(const struct taker *taker)
{
	return taker->until_us <= host_clock_us(&taker->mount->host);
}

static void judge_holders(struct sim *sim)
{
	struct band bands[LOCKS_MAX] = {0};
	bool over[MOUNTS_MAX] = {0};
	struct taker *taker;

	/* Without a call of lc_holds(), which would make the engine notice the end of its lease. */
	for (int i = 0; sim->held && i < sim->plan.mounts; i++) {
		struct mount *mount = &sim->mounts[i];

		over[i] = mount->deadline_us == INT64_MIN ||
		          mount->deadline_us <= host_clock_us(&mount->host);
	}
	DL_FOREACH2(sim->held, taker, held_next) {
		bool is_over = over[taker->mount->host.index] || judge_overdue(taker);

		if (judge_unsure(taker))
			continue;
		if (is_over && sim->seed % 2 && !taker->mount->host.paused && lc_holds(taker->lc))
			sim_violation(sim, "a: taker %d holds %s without a lease, or too long",
			              taker->pid, taker->lock->name);
		if (is_over || !lc_holds(taker->lc)) {
			if (taker->unheld_running_us < 0)
				taker->unheld_running_us = host_running_us(&taker->mount->host);
			continue;
		}
		if (taker->unheld_running_us >= 0)
			sim_violation(sim, "a: taker %d holds %s again", taker->pid,
			              taker->lock->name);
		if (stood_in(taker))
			continue;
		if (evicted_as_holder(taker) && !guarded(taker) &&
		    (!handed_in_vain(taker) || guarded_so_far(taker))) {
			judge_evicted(taker);
			continue;
		}
		if (taker->evicted_us >= 0 && !guarded(taker) && !guarded_so_far(taker))
			sim_violation(sim,
			              "a: taker %d on %s was evicted while it waited, and holds %s",
			              taker->pid, taker->mount->host.name, taker->lock->name);
		if (taker->evicted_us < 0 && !judge_entry(&sim->world.proposed, taker))
			sim_violation(sim, "a: taker %d on %s holds %s, its entry is gone",
			              taker->pid, taker->mount->host.name, taker->lock->name);
		if (lc_token(taker->lc) && lc_token(taker->lc) != taker->token)
			sim_violation(sim, "c: the token of taker %d has changed", taker->pid);
		judge_band(&bands[taker->lock - sim->locks], taker);
	}
}

/* ---- b, c: grants ---- */

static void judge_order(struct taker *taker)
{
	struct node *parent = tree_find(&taker->sim->world.committed, taker->lock->path);
	struct node *node, *blocker = NULL;

	if (order_justified(taker, &taker->most_slots))
		return;
	if (parent)
		DL_FOREACH(parent->children, node) {
			if (order_pid(node) == taker->pid)
				break;
			if (judge_is_entry(node) && !judge_passes(taker, order_pid(node)) &&
			    (taker->mode == LC_EXCLUSIVE || !(order_shape(node) & SHAPE_SHARED)))
				blocker = node;
		}
	sim_violation(taker->sim, "b: taker %d, %s, is granted %s past %s", taker->pid,
	              taker->mode == LC_SHARED ? "shared" : "exclusive", taker->lock->name,
	              blocker ? blocker->name : "one that does not wait");
}

/* Takers that share, or fill a slot each, come in any order. */
static void judge_token(struct taker *taker)
{
	int64_t *last = taker->lock->last_token;
	bool alone = taker->mode == LC_EXCLUSIVE && taker->most_slots == 1;

	/* From outside both are one holder. */
	if (taker->former && taker->token == last[taker->mode])
		return;

	for (enum lc_mode mode = LC_EXCLUSIVE; mode <= LC_SHARED; mode++)
		if ((mode != taker->mode || alone) && taker->token <= last[mode])
			sim_violation(taker->sim,
			              "c: taker %d has token %" PRIx64 " after %" PRIx64,
			              taker->pid, (uint64_t)taker->token, (uint64_t)last[mode]);
	if (last[taker->mode] < taker->token)
		last[taker->mode] = taker->token;
}

void judge_given(struct taker *taker, int64_t token)
{
	struct lock_state *lock = taker->lock;

	if (token && token != taker->token)
		sim_violation(taker->sim, "c: taker %d has token %" PRIx64 ", it is told %" PRIx64,
		              taker->pid, (uint64_t)taker->token, (uint64_t)token);
	/* Somebody may have deleted its entry before it was granted: see judge_granted(). */
	if (taker->told_token || taker->evicted_us >= 0 || taker->mode != LC_EXCLUSIVE ||
	    taker->most_slots != 1 || token == 0)
		return;
	if (token <= lock->given_token)
		sim_violation(taker->sim, "c: taker %d is given token %" PRIx64 " after %" PRIx64,
		              taker->pid, (uint64_t)token, (uint64_t)lock->given_token);
	lock->given_token = token;
	taker->told_token = true;
}

/* Told in the turn behind the release, if the host did not stand still. */
static bool was_handed(const struct taker *taker, int64_t *handed_us)
{
	bool handed = *handed_us && taker->mode == LC_EXCLUSIVE &&
	              now_us(taker->sim) - *handed_us <= TURN_US;

	*handed_us = 0;
	return handed;
}

void judge_granted(struct taker *taker)
{
	struct sim *sim = taker->sim;
	struct lock_state *lock = taker->lock;

	taker->granted_us = now_us(sim);
	taker->granted_clock_us = host_clock_us(&taker->mount->host);
	taker->handed = was_handed(taker, &lock->handed_us[taker->mount->host.index]);
	/* Another entry of the taker was deleted, such as that of an earlier session. */
	if (taker->evicted_token != taker->token)
		taker->evicted_us = -1;
	if (taker->mount->suspects)
		sim_violation(
			sim,
			"a: taker %d on %s is told that it holds, its clock may have stood still",
			taker->pid, taker->mount->host.name);
	if (!lc_holds(taker->lc)) {
		sim_violation(sim, "a: taker %d is told that it holds, and does not", taker->pid);
		return;
	}
	if (!taker->mount->host.wire.proved && taker->mount->host.wire.state == WIRE_CONNECTED)
		sim_violation(sim, "b: taker %d on %s is granted %s without a barrier", taker->pid,
		              taker->mount->host.name, lock->name);
	/* An old listing may grant a taker that was evicted while its mount was stopped. How many
	 * slots there were when it was let in is not looked up. */
	if (taker->evicted_us >= 0) {
		taker->most_slots = sim->plan.slots_max;
		return;
	}
	if (!judge_entry(&sim->world.proposed, taker)) {
		sim_violation(sim, "b: taker %d on %s is granted %s without an entry", taker->pid,
		              taker->mount->host.name, lock->name);
		return;
	}
	if (taker->meant &&
	    judge_entry(&sim->world.proposed, taker)->parent->stat.czxid != taker->meant)
		sim_violation(sim,
		              "b: taker %d is granted %s, and meant an earlier lock of that name",
		              taker->pid, lock->name);
	if (!(order_shape(judge_entry(&sim->world.proposed, taker)) & SHAPE_SHARED) !=
	    (taker->mode == LC_EXCLUSIVE))
		sim_violation(sim, "b: the entry of taker %d is of the other mode", taker->pid);
	judge_order(taker);
	judge_token(taker);
}

/* ---- g: losses ---- */

/* Then no other process would be started: fs/daemon/supervisor_run.c. Each needs a lease of its
 * own. */
static bool died_often(const struct mount *mount)
{
	int64_t third_us = mount->died_us[2];

	return third_us > 0 && now_us(mount->sim) - third_us <= mount->sim->plan.timeout_us;
}

void judge_lost(struct taker *taker)
{
	struct sim *sim = taker->sim;

	taker->lost_clock_us = host_clock_us(&taker->mount->host);
	taker->lost_granted_us = taker->mount->granted_us;
	taker->forfeited = taker->mount->forfeited;
	taker->guarding = (taker->forfeited || sim->plan.loss_lead_us) &&
	                  judge_entry(&sim->world.proposed, taker);
	if (taker->forfeited)
		return;
	if (sim->plan.lossless && !died_often(taker->mount))
		sim_violation(sim, "g: taker %d on %s has lost %s, by nothing that may cost a lock",
		              taker->pid, taker->mount->host.name, taker->lock->name);
	if (!judge_entry(&sim->world.proposed, taker) || taker->mount->host.wire.refused ||
	    marks_taken_away(taker))
		return;
	if (judge_overdue(taker)) {
		sim->totals->overdue++;
		return;
	}
	if (taker->mount->host.wire.state == WIRE_ENDED &&
	    !world_session_alive(&sim->world, mount_session(taker->mount)))
		return;
	/* Another ensemble does not know the session, or it has one with the same id. */
	if (stray_is_away(taker->mount))
		return;
	/* Otherwise the lease must have ended, because answers did not come. */
	if (!mount_lease_was_over(taker->mount, taker->granted_clock_us))
		sim_violation(sim,
		              "g: taker %d on %s has lost %s, and the lease was good all the time",
		              taker->pid, taker->mount->host.name, taker->lock->name);
}

/* ---- the order of judging ---- */

void judge_step(struct sim *sim)
{
	/* Injected refusals may make the next steps of any mount fail, and the lease
	 * needs some steps before it is good for a grant again. */
	bool refusing = sim->world.refuse_next > 0;

	for (int i = 0; i < sim->plan.mounts; i++) {
		mount_trouble(&sim->mounts[i]);
		if (refusing)
			sim->mounts[i].trouble_us = later(sim->mounts[i].trouble_us,
			                                  now_us(sim) + sim->plan.timeout_us / 2);
	}
	if (sim->changes_seen != sim->world.changes)
		look_at_locks(sim);
	judge_holders(sim);
}

void judge_begin(struct sim *sim)
{
	for (int i = 0; i < sim->plan.locks; i++)
		sim->locks[i].absent_us = sim->locks[i].present_us = sim->locks[i].incompatible_us =
			-1;
	order_begin(sim);
	lock_data_begin(sim);
	look_at_locks(sim);
	overdue_begin(sim);
}
