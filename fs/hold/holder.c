/* SPDX-License-Identifier: MIT
 *
 * holder.c - see holder.h.
 */
#include "hold/holder.h"

#include "guard/guardian.h"
#include "tree/view.h"
#include "hold/story.h"
#include "host/family.h"
#include "host/clock.h"
#include "host/log.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

int holder_join(struct holder *holder, struct hold *hold, const struct hold_kind *kind,
                const struct caller *caller, uid_t uid, const struct node *door)
{
	struct guardian *guardian = hold->face->guardian;
	const struct guarded guarded = {
		.uid = uid,
		.process = caller->process,
		.lock = door->lock,
		.ino = door->ino,
		.until_us = hold->most_until_us,
	};

	*holder = (struct holder){
		.kind = kind,
		.pid = caller->process.pid,
		.uid = uid,
		.slot = -1,
		.life = -1,
	};
	if (guardian) {
		if (caller->process.pid == 0)
			log_line(LC_WARNING,
			         "%s: its taker is not visible here, and could not be "
			         "stopped if it lost the lock",
			         door->lock);
		else if (!guardian_reaches(guardian, uid))
			log_line(LC_WARNING,
			         "%s: its taker, pid %d, is of uid %u, and could not be stopped if "
			         "it lost the lock",
			         door->lock, (int)caller->process.pid, (unsigned)uid);
		holder->slot = guardian_hold(guardian, &guarded);
		if (holder->slot < 0)
			return holder->slot;
	}
	holder->hold = hold;
	holder->life = family_watch(caller->process.pid);
	if (holder->life < 0 && caller->process.pid > 0)
		log_line(LC_WARNING, "%s: no descriptor is left, nobody can join its holder",
		         door->lock);
	DL_APPEND(hold->holders, holder);
	stored_touch(&hold->stored);
	return 0;
}

static bool anybody_watches(const struct hold *hold)
{
	const struct holder *holder;

	DL_FOREACH(hold->holders, holder)
		if (holder->watches_waiters)
			return true;
	return false;
}

static void waiters_changed(void *ctx)
{
	struct hold *hold = ctx;
	struct holder *holder;

	DL_FOREACH(hold->holders, holder)
		if (holder->watches_waiters) {
			holder->watches_waiters = false;
			holder->kind->wake(holder);
		}
}

void holder_watch_waiters(struct holder *holder)
{
	holder->watches_waiters = true;
	lc_watch_waiters(holder->hold->taker, waiters_changed);
}

/* The reason tells others why the lock is not free. */
static void keep_lock(struct hold *hold)
{
	int64_t left_us = hold->least_until_us - hold->face->clock_us();
	int64_t until_ms = clock_read_ns(CLOCK_REALTIME) / 1000000 + left_us / 1000;
	const char *reason = lc_reason(hold->taker);
	char text[LC_REASON_MAX + 1], until[VIEW_TIME_MAX];

	snprintf(text, sizeof(text), "kept until %s, given back: %s", view_time(until, until_ms),
	         *reason ? reason : "-");
	(void)lc_set_reason(hold->taker, text, strlen(text)); /* an error does no harm */
	hold_step(hold, HOLD_KEPT);
}

/* The last holder is gone. */
static void give_back(struct hold *hold)
{
	if (hold->state == HOLD_HELD && hold->least_until_us != INT64_MIN &&
	    !hold->face->draining && hold->taker && lc_holds(hold->taker) &&
	    hold->face->clock_us() < hold->least_until_us)
		keep_lock(hold);
	else
		hold_free(hold);
}

void holder_part(struct holder *holder)
{
	struct hold *hold = holder->hold;

	story_stopped(&hold->story, guardian_stopped(hold->face->guardian, holder->slot));
	guardian_release(hold->face->guardian, holder->slot);
	if (!holder->next && hold->holders == holder)
		story_parted(&hold->story, holder->pid, holder->life);
	family_unwatch(holder->pid, holder->life);
	DL_DELETE(hold->holders, holder);
	stored_touch(&hold->stored);
	holder->hold = NULL;
	if (holder->watches_waiters && hold->holders && hold->taker && !anybody_watches(hold))
		lc_watch_waiters(hold->taker, NULL);
	assert(hold->state != HOLD_GRANTING); /* answer_request() is at work with it */
	if (!hold->holders)
		give_back(hold);
}

void holder_move(struct holder *holder, struct hold *to)
{
	struct hold *from = holder->hold;

	DL_DELETE(from->holders, holder);
	holder->hold = to;
	holder->watches_waiters = false;
	DL_APPEND(to->holders, holder);
	stored_touch(&from->stored);
	stored_touch(&to->stored);
	guardian_limit(to->face->guardian, holder->slot, to->most_until_us);
	if (!from->holders)
		hold_free(from);
}
