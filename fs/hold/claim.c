/* SPDX-License-Identifier: MIT */
#include "hold/claim.h"

#include "guard/guardian.h"
#include "hold/audit.h"
#include "host/clock.h"
#include "host/log.h"
#include "host/process.h"
#include "tree/view.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

int claim_join(struct claim *claim, struct hold *hold, struct open_file *file,
               const struct process *caller, uid_t uid)
{
	const struct node *lock_file = file->node;
	struct guardian *guardian = hold->front->guardian;
	const struct guarded guarded = {
		.uid = uid,
		.process = *caller,
		.lock = lock_file->lock,
		.ino = lock_file->ino,
		.until_us = hold->most_until_us,
	};

	*claim = (struct claim){
		.file = file,
		.pid = caller->pid,
		.uid = uid,
		.slot = -1,
		.life = -1,
	};
	if (guardian) {
		if (caller->pid == 0)
			log_line_of(uid, LC_WARNING,
			            "%s: its taker is not visible here, and could not be "
			            "stopped if it lost the lock",
			            lock_file->lock);
		else if (!guardian_reaches(guardian, uid))
			log_line_of(
				uid, LC_WARNING,
				"%s: its taker, pid %d, is of uid %u, and could not be stopped if "
				"it lost the lock",
				lock_file->lock, (int)caller->pid, (unsigned)uid);
		claim->slot = guardian_hold(guardian, &guarded);
		if (claim->slot < 0) {
			audit_refuse(&hold->front->holds->audit_log, lock_file->lock, caller, uid,
			             claim->slot,
			             guardian_fd(guardian) < 0 ? "there is no guardian"
			                                       : "on_lost could not stop so many");
			return claim->slot;
		}
	}
	claim->hold = hold;
	claim->life = process_watch(caller->pid);
	if (claim->life < 0 && caller->pid > 0 && errno == EMFILE)
		log_line(LC_WARNING, "%s: no descriptor is left, nobody can join its holder",
		         lock_file->lock);
	DL_APPEND(hold->claims, claim);
	record_touch(&hold->record);
	return 0;
}

static bool anybody_watches(const struct hold *hold)
{
	const struct claim *claim;

	DL_FOREACH(hold->claims, claim)
		if (claim->watches_waiters)
			return true;
	return false;
}

static void waiters_changed(void *ctx)
{
	struct hold *hold = ctx;
	struct claim *claim;

	DL_FOREACH(hold->claims, claim)
		if (claim->watches_waiters) {
			claim->watches_waiters = false;
			claim_wake(claim);
		}
}

void claim_watch_waiters(struct claim *claim)
{
	claim->watches_waiters = true;
	lc_watch_waiters(claim->hold->taker, waiters_changed);
}

/* Keeps the lock for its least time, and says so in the reason, which others read. */
static void keep_lock(struct hold *hold)
{
	int64_t left_us = hold->least_until_us - hold->front->clock_us();
	int64_t until_ms = clock_read_ns(CLOCK_REALTIME) / 1000000 + left_us / 1000;
	const char *reason = lc_reason(hold->taker);
	char text[LC_REASON_MAX + 1], until[VIEW_TIME_MAX];

	snprintf(text, sizeof(text), "kept until %s, released: %s", view_time(until, until_ms),
	         *reason ? reason : "-");
	(void)lc_set_reason(hold->taker, text, strlen(text)); /* an error does no harm */
	hold_step(hold, HOLD_KEPT);
}

/* The last claim is gone: gives the lock back, or keeps it. */
static void give_back(struct hold *hold)
{
	if (hold->state == HOLD_HELD && hold->least_until_us != INT64_MIN &&
	    !hold->front->draining && hold->taker && lc_holds(hold->taker) &&
	    hold->front->clock_us() < hold->least_until_us)
		keep_lock(hold);
	else
		hold_free(hold);
}

void claim_part(struct claim *claim)
{
	struct hold *hold = claim->hold;

	audit_stopped(&hold->audit, guardian_stopped(hold->front->guardian, claim->slot));
	guardian_release(hold->front->guardian, claim->slot);
	if (!claim->next && hold->claims == claim)
		audit_parted(&hold->audit, claim->pid, claim->life);
	process_unwatch(claim->pid, claim->life);
	DL_DELETE(hold->claims, claim);
	record_touch(&hold->record);
	claim->hold = NULL;
	if (claim->watches_waiters && hold->claims && hold->taker && !anybody_watches(hold))
		lc_watch_waiters(hold->taker, NULL);
	assert(hold->state != HOLD_GRANTING); /* answer_request() is at work with it */
	if (!hold->claims)
		give_back(hold);
}

void claim_move(struct claim *claim, struct hold *to)
{
	struct hold *from = claim->hold;

	DL_DELETE(from->claims, claim);
	claim->hold = to;
	claim->watches_waiters = false;
	DL_APPEND(to->claims, claim);
	record_touch(&from->record);
	record_touch(&to->record);
	guardian_limit(to->front->guardian, claim->slot, to->most_until_us);
	if (!from->claims)
		hold_free(from);
}
