/* SPDX-License-Identifier: MIT
 *
 * hold.c - see hold.h.
 */
#include "hold.h"

#include "clock.h"
#include "kernel_limit.h"
#include "log.h"
#include "process.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

/* No answer of the engine has come while the hold lingered. */
#define NO_ANSWER 1
/* How much time of a turn may be used for families that join. */
#define ADMIT_US 5000

static struct hold *hold_of_lingering(struct lingering *lingering)
{
	return (struct hold *)((char *)lingering - offsetof(struct hold, lingering));
}

static void stop_admitting(struct hold *hold)
{
	kept_touch(&hold->kept);
	if (hold->admit_prev)
		DL_DELETE2(hold->face->admitting, hold, admit_prev, admit_next);
	hold->admit_prev = NULL;
}

static int64_t later(int64_t now, int64_t us)
{
	return us < INT64_MAX - now ? now + us : INT64_MAX;
}

static bool is_granted(enum hold_state state)
{
	return state == HOLD_GRANTING || state == HOLD_HELD || state == HOLD_LOST;
}

/* The lists that a hold stands in follow from its state. */
static void hold_step(struct hold *hold, enum hold_state to)
{
	static const unsigned steps[] = {
		[HOLD_NEW] = 1 << HOLD_WAITING | 1 << HOLD_GONE,
		[HOLD_WAITING] = 1 << HOLD_LINGERING | 1 << HOLD_GRANTING | 1 << HOLD_GONE,
		[HOLD_LINGERING] = 1 << HOLD_NEW | 1 << HOLD_GONE,
		[HOLD_GRANTING] = 1 << HOLD_HELD | 1 << HOLD_GONE,
		[HOLD_HELD] = 1 << HOLD_LOST | 1 << HOLD_KEPT | 1 << HOLD_GONE,
		[HOLD_LOST] = 1 << HOLD_GONE,
		[HOLD_KEPT] = 1 << HOLD_GONE,
		[HOLD_GONE] = 0,
	};
	struct face *face = hold->face;
	enum hold_state from = hold->state;

	(void)steps; /* without asserts */
	assert(steps[from] & 1U << to);
	hold->state = to;
	kept_touch(&hold->kept);
	if (from == HOLD_WAITING) {
		DL_DELETE(face->waiting, hold);
		face->seekers -= hold->lineage != NULL;
	}
	if (from == HOLD_LINGERING || from == HOLD_KEPT)
		linger_end(&face->linger, &hold->lingering);
	if (from == HOLD_HELD)
		stop_admitting(hold);
	if (is_granted(from) && !is_granted(to))
		DL_DELETE(face->held, hold);
	if (to == HOLD_WAITING) {
		DL_APPEND(face->waiting, hold);
		face->seekers += hold->lineage != NULL;
	}
	if (to == HOLD_GRANTING)
		DL_APPEND(face->held, hold);
	if (to == HOLD_KEPT)
		linger_keep(&face->linger, &hold->lingering, hold->least_until_us);
}

static void hold_free(struct hold *hold)
{
	struct face *face = hold->face;

	if (hold->state != HOLD_GONE)
		hold_step(hold, HOLD_GONE);
	if (hold->ctx)
		hold->kind->dropped(hold->ctx);
	story_end(&hold->story, hold->taker);
	if (hold->taker)
		lc_leave(hold->taker);
	node_unref(face->nodes, hold->node);
	free(hold->lineage);
	face->holds--;
	kept_end(&hold->kept);
	free(hold);
}

static void stop_lingering(struct lingering *lingering)
{
	hold_free(hold_of_lingering(lingering));
}

/* ---- waiting ---- */

/* The caller answers the request right after, which also ends its interrupts (and
 * libfuse holds the request's lock while it calls one). */
static fuse_req_t stop_waiting(struct hold *hold, enum hold_state to)
{
	fuse_req_t req = hold->req;

	hold->req = NULL;
	hold_step(hold, to);
	return req;
}

/* Answered before the lock came; after EINTR the place is kept for a while. */
static void answer_early(struct hold *hold, int error)
{
	struct face *face = hold->face;
	bool lingers = error == EINTR && !face->draining &&
	               linger_begin(&face->linger, &hold->lingering, hold->asker);

	fuse_reply_err(stop_waiting(hold, lingers ? HOLD_LINGERING : HOLD_GONE), error);
	if (!lingers)
		hold_free(hold);
}

static void wait_interrupted(fuse_req_t req, void *ctx)
{
	(void)req;
	answer_early(ctx, EINTR);
}

/* ---- families ---- */

/* How many generations above the process the nearest living holder is; INT_MAX: no ancestor
 * holds. */
static int distance_to(const struct hold *hold, const struct lineage *lineage)
{
	const struct holder *holder;
	int least = INT_MAX;

	DL_FOREACH(hold->holders, holder) {
		int distance = lineage_find(lineage, holder->pid);

		/* A holder that still lives was the process of that number when the lineage was
		 * read. */
		if (distance >= 0 && distance < least && family_lives(holder->life))
			least = distance;
	}
	return least;
}

/* A process that shares a hold loses the lock when its taker does, who may evict himself, and is
 * stopped then. So only processes that this user might signal anyway may join. */
static bool may_join(const struct hold *hold, const struct lineage *lineage)
{
	struct process_status status;

	return hold->uid == 0 ||
	       (process_read_status(lineage->of[0], &status) && process_obeys(&status, hold->uid));
}

struct hold *hold_of_family(struct face *face, const char *lock, const struct lineage *lineage)
{
	struct hold *hold, *nearest = NULL;
	int least = INT_MAX;

	DL_FOREACH(face->held, hold) {
		int distance;

		if (hold->mode != LC_EXCLUSIVE || strcmp(hold->node->lock, lock) != 0 ||
		    !lc_holds(hold->taker))
			continue;
		distance = distance_to(hold, lineage);
		if (distance < least) {
			nearest = hold;
			least = distance;
		}
	}
	return nearest && may_join(nearest, lineage) ? nearest : NULL;
}

/* The lineage was read when the process asked, before its family had the lock: so it is read again,
 * once for all threads of a process, which as a rule come one after the other. */
static bool descends_from(const struct hold *waiting, const struct hold *family,
                          struct lineage **now)
{
	if (distance_to(family, waiting->lineage) == INT_MAX)
		return false;
	if (!*now || (*now)->of[0] != waiting->caller.process.pid) {
		free(*now);
		*now = family_lineage(waiting->caller.process.pid);
	}
	return *now && distance_to(family, *now) != INT_MAX && may_join(family, *now);
}

/* The processes that asked before their family had the lock. False: some are left for the next
 * turn. */
static bool admit_family(struct hold *family)
{
	struct face *face = family->face;
	struct lineage *now = NULL;
	struct hold *hold, *next;
	bool all = true;

	DL_FOREACH_SAFE(face->waiting, hold, next) {
		if (!hold->lineage || hold->compared >= family->serial ||
		    strcmp(hold->node->lock, family->node->lock) != 0)
			continue;
		all = face->clock_us() <= face->admit_until_us;
		if (!all)
			break;
		hold->compared = family->serial;
		kept_touch(&hold->kept);
		if (!descends_from(hold, family, &now))
			continue;
		hold->kind->found(hold, family, stop_waiting(hold, HOLD_GONE));
		hold->ctx = NULL;
		hold_free(hold);
	}
	free(now);
	return all;
}

static void admit_families(struct face *face)
{
	while (face->admitting && admit_family(face->admitting))
		stop_admitting(face->admitting);
}

/* ---- the answer ---- */

/* From now on. */
static void begin_limits(struct hold *hold)
{
	const struct door *door = &hold->node->door;
	int64_t now;

	if (door->most_us == LC_FOREVER && door->least_us == 0)
		return;
	now = hold->face->clock_us();
	hold->most_until_us = later(now, door->most_us);
	if (hold->most_until_us != LC_FOREVER)
		lc_limit(hold->taker, hold->most_until_us);
	if (door->least_us > 0)
		hold->least_until_us = later(now, door->least_us);
}

static void answer_request(struct hold *hold, int err)
{
	struct face *face = hold->face;
	fuse_req_t req = stop_waiting(hold, err < 0 ? HOLD_GONE : HOLD_GRANTING);

	if (err < 0) {
		story_refused(&hold->story, err);
		fuse_reply_err(req, -err);
		hold_free(hold);
		return;
	}
	hold->serial = ++face->grants;
	begin_limits(hold);
	hold->kind->granted(hold, req);
	hold->ctx = NULL;
	if (!hold->holders) {
		hold_free(hold);
		return;
	}
	hold_step(hold, HOLD_HELD);
	story_granted(&hold->story, hold->taker);
	if (face->seekers > 0 && hold->mode == LC_EXCLUSIVE) {
		DL_APPEND2(face->admitting, hold, admit_prev, admit_next);
		kept_touch(&hold->kept);
		admit_families(face);
	}
}

static void lock_taken(void *ctx, int err)
{
	struct hold *hold = ctx;

	if (hold->state == HOLD_WAITING) {
		answer_request(hold, err);
		return;
	}
	hold->answer = err;
	kept_touch(&hold->kept);
	if (err == 0)
		linger_at_head(&hold->face->linger, &hold->lingering);
}

/* ---- loss ---- */

static void lock_lost(void *ctx)
{
	struct hold *hold = ctx;
	struct holder *holder;

	if (hold->state != HOLD_HELD && hold->state != HOLD_KEPT)
		return;
	kept_touch(&hold->kept);
	story_lost(&hold->story, hold->taker,
	           hold->face->clock_us() >= hold->most_until_us ? "held too long" : NULL);
	if (hold->state == HOLD_KEPT) {
		hold_free(hold);
		return;
	}
	hold_step(hold, HOLD_LOST);
	if (hold->kind->lost)
		hold->kind->lost(hold);
	DL_FOREACH(hold->holders, holder) {
		holder->kind->wake(holder);
		guardian_lose(hold->face->guardian, holder->slot);
	}
}

/* ---- asking ---- */

/* Nobody can have a lock that was lost while the hold lingered. The process is the same one if it
 * lives, but may have changed its user. */
static bool is_adoptable(const struct hold *hold, const struct hold_request *request)
{
	return family_lives(hold->lingering.pidfd) && hold->uid == request->uid &&
	       request->wait_us > 0 && hold->where == request->where &&
	       hold->owner == request->owner && hold->mode == request->mode &&
	       !(hold->answer == 0 && !lc_holds(hold->taker));
}

static pid_t asker_of(const struct hold_request *request)
{
	return request->asker ? request->asker : request->caller.process.pid;
}

struct hold *hold_adopt(struct face *face, const struct hold_request *request)
{
	struct lingering *lists[] = {face->linger.waiting, face->linger.heads};
	pid_t pid = asker_of(request);

	for (size_t i = 0; i < 2 && pid > 0; i++)
		for (struct lingering *lingering = lists[i], *next; lingering; lingering = next) {
			struct hold *hold = hold_of_lingering(lingering);

			next = lingering->next;
			if (lingering->pid != pid ||
			    strcmp(hold->node->lock, request->node->lock) != 0)
				continue;
			if (!is_adoptable(hold, request)) {
				hold_free(hold);
				continue;
			}
			hold_step(hold, HOLD_NEW);
			free(hold->lineage);
			hold->lineage = request->lineage;
			return hold;
		}
	return NULL;
}

int hold_take(struct face *face, const struct hold_request *request, void *ctx,
              struct hold **ret_hold)
{
	struct hold *hold = calloc(1, sizeof(*hold));
	struct lc_request ask = {
		.lock = request->node->lock,
		.mode = request->mode,
		.wait_us = request->wait_us,
		.czxid = request->czxid,
		.replaces = request->replaces ? request->replaces->taker : NULL,
		.pid = request->caller.process.pid,
		.uid = request->uid,
		.command = request->caller.command,
		.reason = request->reason,
	};
	int r;

	if (!hold)
		return -ENOMEM;
	*hold = (struct hold){
		.kind = request->kind,
		.ctx = ctx,
		.face = face,
		.node = request->node,
		.mode = request->mode,
		.caller = request->caller,
		.uid = request->uid,
		.asker = asker_of(request),
		.where = request->where,
		.owner = request->owner,
		.lineage = request->lineage,
		.most_until_us = LC_FOREVER,
		.least_until_us = INT64_MIN,
		.answer = NO_ANSWER,
	};
	r = lc_take(face->lc, &ask, lock_taken, lock_lost, hold, &hold->taker);
	if (r < 0) {
		story_refuse(&face->stories, request->node->lock, &request->caller, request->uid, r,
		             NULL);
		free(hold);
		return r;
	}
	story_begin(&hold->story, &face->stories, hold->node->lock, hold->mode, &hold->caller,
	            hold->uid);
	node_ref(hold->node);
	face->holds++;
	kept_begin(&face->keeping, &hold->kept, KEPT_HOLD, 0);
	*ret_hold = hold;
	return 0;
}

void hold_wait(struct hold *hold, fuse_req_t req)
{
	hold->req = req;
	hold->unique = pending_unique(hold->face);
	hold->since_us = hold->face->clock_us();
	hold->compared = hold->face->grants; /* by hold_of_family(), before */
	hold_step(hold, HOLD_WAITING);
	if (hold->answer != NO_ANSWER)
		answer_request(hold, hold->answer);
	else
		fuse_req_interrupt_func(req, wait_interrupted, hold);
}

struct hold *hold_resume(struct face *face, fuse_req_t req)
{
	struct hold *hold = pending_owner(face);

	if (!hold)
		return NULL;
	hold->req = req;
	fuse_req_interrupt_func(req, wait_interrupted, hold);
	return hold;
}

fuse_req_t hold_withdraw(struct hold *hold)
{
	fuse_req_t req = hold->state == HOLD_WAITING ? stop_waiting(hold, HOLD_GONE) : NULL;

	hold_free(hold);
	return req;
}

/* ---- holding ---- */

int hold_join(struct hold *hold, struct holder *holder, const struct hold_kind *kind,
              const struct caller *caller, uid_t uid, const struct node *door)
{
	struct guardian *guardian = hold->face->guardian;
	const struct guarded guarded = {
		.uid = uid,
		.process = caller->process,
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
		holder->slot = guardian_hold(guardian, &guarded);
		if (holder->slot < 0)
			return holder->slot;
	}
	holder->hold = hold;
	holder->life = family_watch(caller->process.pid);
	if (holder->life < 0 && caller->process.pid > 0)
		log_line(LC_WARNING, "%s: descriptors are scarce, nobody can join its taker",
		         door->lock);
	DL_APPEND(hold->holders, holder);
	kept_touch(&hold->kept);
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

void hold_watch_waiters(struct holder *holder)
{
	holder->watches_waiters = true;
	lc_watch_waiters(holder->hold->taker, waiters_changed);
}

/* Others see why nobody can have it. */
static void keep_lock(struct hold *hold)
{
	int64_t left_us = hold->least_until_us - hold->face->clock_us();
	int64_t until_ms = clock_read_ns(CLOCK_REALTIME) / 1000000 + left_us / 1000;
	const char *reason = lc_reason(hold->taker);
	char text[LC_REASON_MAX + 1], until[VIEW_TIME_MAX];

	snprintf(text, sizeof(text), "kept until %s, given back: %s", view_time(until, until_ms),
	         *reason ? reason : "-");
	(void)lc_set_reason(hold->taker, text, strlen(text)); /* it can do without */
	hold_step(hold, HOLD_KEPT);
}

/* Nobody has the lock by it any more. */
static void give_back(struct hold *hold)
{
	if (hold->state == HOLD_HELD && hold->least_until_us != INT64_MIN &&
	    !hold->face->draining && hold->taker && lc_holds(hold->taker) &&
	    hold->face->clock_us() < hold->least_until_us)
		keep_lock(hold);
	else
		hold_free(hold);
}

void hold_part(struct holder *holder)
{
	struct hold *hold = holder->hold;

	guardian_release(hold->face->guardian, holder->slot);
	if (!holder->next && hold->holders == holder)
		story_parted(&hold->story, holder->pid, holder->life);
	family_unwatch(holder->pid, holder->life);
	DL_DELETE(hold->holders, holder);
	kept_touch(&hold->kept);
	holder->hold = NULL;
	if (holder->watches_waiters && hold->holders && hold->taker && !anybody_watches(hold))
		lc_watch_waiters(hold->taker, NULL);
	assert(hold->state != HOLD_GRANTING); /* answer_request() is at work with it */
	if (!hold->holders)
		give_back(hold);
}

void hold_move(struct holder *holder, struct hold *to)
{
	struct hold *from = holder->hold;

	DL_DELETE(from->holders, holder);
	holder->hold = to;
	holder->watches_waiters = false;
	DL_APPEND(to->holders, holder);
	kept_touch(&from->kept);
	kept_touch(&to->kept);
	guardian_limit(to->face->guardian, holder->slot, to->most_until_us);
	if (!from->holders)
		hold_free(from);
}

void hold_changed(struct hold *hold)
{
	kept_touch(&hold->kept);
}

void hold_evicted(void *taker_ctx, const char *by)
{
	struct hold *hold = taker_ctx;

	story_evicted(&hold->story, by);
	kept_touch(&hold->kept);
}

/* ---- all of a mount ---- */

int holds_init(struct face *face)
{
	return linger_init(&face->linger, face->clock_us, stop_lingering);
}

void holds_drop(struct face *face, pid_t pid, const char *lock)
{
	struct lingering *lists[] = {face->linger.waiting, face->linger.heads};

	for (size_t i = 0; i < 2; i++)
		for (struct lingering *lingering = lists[i], *next; lingering; lingering = next) {
			struct hold *hold = hold_of_lingering(lingering);

			next = lingering->next;
			if ((pid == 0 || lingering->pid == pid) &&
			    (!lock || strcmp(hold->node->lock, lock) == 0))
				hold_free(hold);
		}
}

void holds_drop_kept(struct face *face)
{
	while (face->linger.kept)
		hold_free(hold_of_lingering(face->linger.kept));
}

void holds_drop_where(struct face *face, const void *where, const uint64_t *owner)
{
	struct lingering *lists[] = {face->linger.waiting, face->linger.heads};

	for (size_t i = 0; i < 2; i++)
		for (struct lingering *lingering = lists[i], *next; lingering; lingering = next) {
			struct hold *hold = hold_of_lingering(lingering);

			next = lingering->next;
			if (hold->where == where && (!owner || hold->owner == *owner))
				hold_free(hold);
		}
}

void holds_end(struct face *face, bool leave)
{
	struct hold *hold, *next;
	struct holder *holder;

	if (leave)
		holds_drop(face, 0, NULL);
	DL_FOREACH_SAFE(face->waiting, hold, next) {
		stop_waiting(hold, HOLD_GONE);
		if (!leave)
			hold->taker = NULL;
		hold_free(hold);
	}
	DL_FOREACH(face->held, hold) {
		if (leave)
			break;
		hold->taker = NULL;
		DL_FOREACH(hold->holders, holder)
			holder->slot = -1;
	}
}

/* When the oldest request must be answered, since the kernel would abort the mount otherwise. */
static int64_t waits_until(const struct face *face)
{
	int64_t wait = kernel_limit_wait_us(face->kernel_limit_s);

	return face->waiting && wait != INT64_MAX ? face->waiting->since_us + wait : INT64_MAX;
}

int64_t holds_wait(const struct face *face)
{
	int64_t until = waits_until(face), wait = linger_wait(&face->linger), left;

	if (face->admitting)
		return 0;
	left = until == INT64_MAX ? INT64_MAX : until - face->clock_us();
	return left < wait ? left : wait;
}

void holds_process(struct face *face, bool process_gone, bool guardian_spoke)
{
	if (guardian_spoke && !guardian_listen(face->guardian))
		log_line(LC_ERROR,
		         "the guardian was killed: no lock is granted any more, start anew");
	linger_process(&face->linger, process_gone);
	if (face->admitting) {
		face->admit_until_us = face->clock_us() + ADMIT_US;
		admit_families(face);
	}
	if (!face->waiting || face->kernel_limit_s == 0)
		return;
	for (int64_t now = face->clock_us(); waits_until(face) <= now;)
		answer_early(face->waiting, face->waiting->kind->too_long);
}

/* ---- over a reload ---- */

static void holder_carry(struct carry *carry, struct hold *hold, struct holder *holder,
                         const struct hold_kind *const kinds[])
{
	unsigned kind = holder && holder->kind == kinds[1];

	CARRY_RANGE(carry, kind, 0, HOLD_KINDS - 1);
	if (carry->loads && kind == 1 && hold->kind != kinds[1])
		carry->refuse("the state has a lock by flock that no flock has taken");
	holder = kinds[kind]->carry_holder(carry, hold, holder);
	holder->kind = kinds[kind];
	CARRY_PID(carry, holder->pid);
	CARRY_U32(carry, holder->uid);
	holder->life = process_life_carry(carry, holder->pid, holder->uid, holder->life);
	holder->slot = guardian_slot_carry(carry, hold->face->guardian, holder->slot);
	if (!carry->loads)
		return;
	holder->hold = hold;
	DL_APPEND(hold->holders, holder);
}

static void holders_carry(struct carry *carry, struct hold *hold,
                          const struct hold_kind *const kinds[])
{
	struct guardian *guardian = hold->face->guardian;
	bool admits = hold->admit_prev;
	struct holder *holder;
	size_t count = 0;

	DL_COUNT(hold->holders, holder, count);
	count = carry_count(carry, count);
	if (carry->loads && count == 0)
		carry->refuse("the state has a lock of nobody");
	holder = carry->loads ? NULL : hold->holders;
	for (size_t i = 0; i < count; i++) {
		holder_carry(carry, hold, holder, kinds);
		holder = holder ? holder->next : NULL;
	}
	DL_FOREACH(hold->holders, holder)
		if (carry->loads && !carry->checks && hold->state == HOLD_HELD &&
		    guardian_has_lost(guardian, holder->slot))
			lc_limit(hold->taker, 0); /* it is being stopped */
	CARRY_BOOL(carry, admits);
	if (carry->loads && admits)
		DL_APPEND2(hold->face->admitting, hold, admit_prev, admit_next);
}

/* The way that it once went: the lists that it stands in follow from that. */
static void step_to(struct carry *carry, struct hold *hold, enum hold_state to)
{
	hold_step(hold, HOLD_WAITING);
	switch (to) {
	case HOLD_WAITING:
		if (!pending_give(hold->face, hold->unique, hold))
			carry->refuse("the state has a taker without a request");
		break;
	case HOLD_LINGERING:
		hold_step(hold, HOLD_LINGERING);
		break;
	case HOLD_HELD:
	case HOLD_LOST:
	case HOLD_KEPT:
		hold_step(hold, HOLD_GRANTING);
		hold_step(hold, HOLD_HELD);
		if (to != HOLD_HELD)
			hold_step(hold, to);
		break;
	case HOLD_NEW:
	case HOLD_GRANTING:
	case HOLD_GONE:
		carry->refuse("the state has a taker that cannot be");
	}
}

static void claim_taker(struct carry *carry, struct hold *hold)
{
	uint64_t id = carry->loads ? 0 : lc_taker_id(hold->taker);

	CARRY_64(carry, id);
	if (!carry->loads || carry->checks)
		return;
	hold->taker = lc_claim(hold->face->lc, id, lock_taken, lock_lost, hold);
	if (!hold->taker)
		carry->refuse("the state has a taker that the engine does not know");
	if (hold->most_until_us != LC_FOREVER)
		lc_limit(hold->taker, hold->most_until_us);
}

static struct hold *new_hold(struct carry *carry, struct face *face)
{
	struct hold *hold = calloc(1, sizeof(*hold));

	if (!hold)
		carry->refuse(strerror(ENOMEM));
	hold->face = face;
	face->holds++;
	kept_begin(&face->keeping, &hold->kept, KEPT_HOLD, 0);
	return hold;
}

void hold_kept_carry(struct carry *carry, struct face *face, struct kept *kept,
                     const struct hold_kind *const kinds[HOLD_KINDS])
{
	struct hold *hold =
		kept ? (struct hold *)((char *)kept - offsetof(struct hold, kept)) : NULL;
	enum hold_state is = hold ? hold->state : HOLD_NEW;
	unsigned kind = hold && hold->kind == kinds[1];

	if (carry->loads)
		hold = new_hold(carry, face);
	CARRY_RANGE(carry, kind, 0, HOLD_KINDS - 1);
	hold->kind = kinds[kind];
	CARRY_ENUM(carry, is, HOLD_KEPT);
	hold->node = node_carry(carry, face->nodes, hold->node);
	if (carry->loads &&
	    (hold->node->kind != NODE_DOOR || hold->node->door.advisory != (kind == 1)))
		carry->refuse("the state has a taker of no door");
	if (carry->loads)
		node_ref(hold->node);
	CARRY_ENUM(carry, hold->mode, LC_SHARED);
	caller_carry(carry, &hold->caller);
	CARRY_U32(carry, hold->uid);
	CARRY_PID(carry, hold->asker);
	CARRY_64(carry, hold->owner);
	hold->lineage = lineage_carry(carry, hold->lineage);
	story_carry(carry, &hold->story, &face->stories, hold->node->lock);
	CARRY_64(carry, hold->unique);
	CARRY_64(carry, hold->since_us);
	CARRY_64(carry, hold->most_until_us);
	CARRY_64(carry, hold->least_until_us);
	CARRY_INT(carry, hold->answer);
	CARRY_64(carry, hold->serial);
	CARRY_64(carry, hold->compared);
	claim_taker(carry, hold);
	if (carry->loads)
		step_to(carry, hold, is);
	if (is_granted(is))
		holders_carry(carry, hold, kinds);
	else if (is != HOLD_KEPT)
		hold->kind->carry_ctx(carry, hold);
	if (is == HOLD_LINGERING)
		linger_carry(carry, &face->linger, &hold->lingering);
}

static int compare_serials(const struct hold *a, const struct hold *b)
{
	return a->serial < b->serial ? -1 : a->serial > b->serial;
}

static int compare_requests(const struct hold *a, const struct hold *b)
{
	return a->since_us < b->since_us ? -1 : a->since_us > b->since_us;
}

static void find_others(struct carry *carry, struct hold *hold)
{
	if (hold->kind->carried)
		hold->kind->carried(carry, hold);
}

/* They were read in the order in which they asked first. */
void holds_carried(struct carry *carry, struct face *face)
{
	struct lingering *lists[] = {face->linger.waiting, face->linger.heads}, *lingering;
	struct hold *hold;

	DL_SORT(face->held, compare_serials);
	DL_SORT(face->waiting, compare_requests);
	DL_FOREACH(face->waiting, hold)
		find_others(carry, hold);
	for (size_t i = 0; i < 2; i++)
		DL_FOREACH(lists[i], lingering)
			find_others(carry, hold_of_lingering(lingering));
}
