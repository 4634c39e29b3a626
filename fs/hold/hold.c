/* SPDX-License-Identifier: MIT */
#include "hold/hold.h"

#include "guard/guardian.h"
#include "hold/audit.h"
#include "hold/linger.h"
#include "host/clock.h"
#include "host/log.h"
#include "host/process.h"
#include "request/reply.h"
#include "tree/view.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* The engine has not answered while the hold lingered. */
#define NO_ANSWER 1
/* How long a turn may look for processes that join families. */
#define ADMIT_US 5000

struct hold *hold_of_lingering(struct lingering *lingering)
{
	return (struct hold *)((char *)lingering - offsetof(struct hold, lingering));
}

/* Thousands of holds may wait, so the struct stays small. */
_Static_assert(sizeof(void *) != 8 || sizeof(struct hold) <= 376, "a hold has grown");

static void stop_admitting(struct hold *hold)
{
	record_touch(&hold->record);
	if (hold->admit_prev)
		DL_DELETE2(hold->front->holds->admitting, hold, admit_prev, admit_next);
	hold->admit_prev = NULL;
}

static int64_t later(int64_t now, int64_t us)
{
	return us < INT64_MAX - now ? now + us : INT64_MAX;
}

bool hold_is_granted(const struct hold *hold)
{
	return hold->state == HOLD_GRANTING || hold->state == HOLD_HELD || hold->state == HOLD_LOST;
}

void hold_step(struct hold *hold, enum hold_state to)
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
	struct frontend *front = hold->front;
	enum hold_state from = hold->state;
	bool was_granted = hold_is_granted(hold);

	(void)steps; /* without asserts */
	assert(steps[from] & 1U << to);
	hold->state = to;
	record_touch(&hold->record);
	if (from == HOLD_WAITING) {
		DL_DELETE(front->holds->waiting, hold);
		front->holds->seekers -= hold->lineage != NULL;
	}
	if (from == HOLD_LINGERING || from == HOLD_KEPT)
		linger_end(&front->holds->linger, &hold->lingering);
	if (from == HOLD_HELD)
		stop_admitting(hold);
	if (was_granted && !hold_is_granted(hold))
		DL_DELETE(front->holds->held, hold);
	if (to == HOLD_WAITING) {
		DL_APPEND(front->holds->waiting, hold);
		front->holds->seekers += hold->lineage != NULL;
	}
	if (to == HOLD_GRANTING)
		DL_APPEND(front->holds->held, hold);
	if (to == HOLD_KEPT)
		linger_keep(&front->holds->linger, &hold->lingering, hold->least_until_us);
}

void hold_free(struct hold *hold)
{
	struct frontend *front = hold->front;

	if (hold->state != HOLD_GONE)
		hold_step(hold, HOLD_GONE);
	if (hold->ctx)
		hold->kind->dropped(hold->ctx);
	audit_end(&hold->audit, hold->taker);
	if (hold->taker)
		lc_leave(hold->taker);
	node_unref(front->nodes, hold->node);
	free(hold->lineage);
	front->holds->count--;
	record_end(&hold->record);
	free(hold);
}

static void stop_lingering(struct lingering *lingering)
{
	hold_free(hold_of_lingering(lingering));
}

/* ---- waiting ---- */

/* The caller must answer the request right after: that also ends its interrupts. */
static struct request *stop_waiting(struct hold *hold, enum hold_state to)
{
	struct request *req = hold->req;

	hold->req = NULL;
	hold_step(hold, to);
	return req;
}

/* The request gets EINTR, and its place in the queue lingers. */
static void wait_interrupted(void *ctx)
{
	struct hold *hold = ctx;
	struct frontend *front = hold->front;
	bool lingers = !front->draining &&
	               linger_begin(&front->holds->linger, &hold->lingering, hold->asker);

	reply_err(stop_waiting(hold, lingers ? HOLD_LINGERING : HOLD_GONE), EINTR);
	if (!lingers)
		hold_free(hold);
}

/* ---- families ---- */

/* How many generations above the process the nearest living holder is; INT_MAX: no ancestor
 * holds. */
static int distance_to(const struct hold *hold, const struct lineage *lineage)
{
	const struct claim *claim;
	int shortest = INT_MAX;

	DL_FOREACH(hold->claims, claim) {
		int distance = lineage_find(lineage, claim->pid);

		/* If the holder still lives, it had that number when the lineage was read. */
		if (distance >= 0 && distance < shortest && process_lives(claim->life))
			shortest = distance;
	}
	return shortest;
}

/* A process that has joined loses the lock with the hold, and is stopped then. The user of the hold
 * may evict it at any time. So only processes that this user may signal anyway may join. */
static bool may_join(const struct hold *hold, const struct lineage *lineage)
{
	struct process asker = {.pid = lineage->of[0], .fd = -1};

	return hold->audit.uid == 0 ||
	       (process_ask(&asker) && process_obeys(&asker, hold->audit.uid));
}

struct hold *hold_of_family(struct frontend *front, const char *lock, const struct lineage *lineage)
{
	struct hold *hold, *nearest = NULL;
	int shortest = INT_MAX;

	DL_FOREACH(front->holds->held, hold) {
		int distance;

		if (hold->audit.mode != LC_EXCLUSIVE || strcmp(hold->node->lock, lock) != 0 ||
		    !lc_holds(hold->taker))
			continue;
		distance = distance_to(hold, lineage);
		if (distance < shortest) {
			nearest = hold;
			shortest = distance;
		}
	}
	return nearest && may_join(nearest, lineage) ? nearest : NULL;
}

/* Whether the process of a waiting hold may join that one. Its lineage was read when it asked,
 * before its family had the lock: so it is read again, into *now, which is the caller's to free.
 * The next call takes it from there if it is of the same process: threads of one process usually
 * wait one behind the other. */
static bool has_family(const struct hold *family, const struct hold *waiting, struct lineage **now)
{
	if (distance_to(family, waiting->lineage) == INT_MAX)
		return false;
	if (!*now || (*now)->of[0] != waiting->audit.caller.pid) {
		free(*now);
		*now = lineage_read(waiting->audit.caller.pid);
	}
	return *now && distance_to(family, *now) != INT_MAX && may_join(family, *now);
}

/* Lets waiting processes join a family that was granted the lock after they had asked. False: some
 * are left for the next turn. */
static bool admit_family(struct hold *family)
{
	struct frontend *front = family->front;
	struct lineage *now = NULL;
	struct hold *hold, *next;
	bool all = true;

	DL_FOREACH_SAFE(front->holds->waiting, hold, next) {
		if (!hold->lineage || hold->compared >= family->serial ||
		    strcmp(hold->node->lock, family->node->lock) != 0)
			continue;
		all = front->clock_us() <= front->holds->admit_until_us;
		if (!all)
			break;
		hold->compared = family->serial;
		record_touch(&hold->record);
		if (!has_family(family, hold, &now))
			continue;
		hold->kind->found(hold, family, stop_waiting(hold, HOLD_GONE));
		hold->ctx = NULL;
		hold_free(hold);
	}
	free(now);
	return all;
}

/* Lets processes join all families of the list. lc_holds() takes a lost family off the list; in
 * doubt it stays there, for two seconds at most. */
static void admit_families(struct frontend *front)
{
	struct hold *family;

	while ((family = front->holds->admitting) && lc_holds(family->taker) &&
	       admit_family(family))
		stop_admitting(family);
}

/* ---- whoever was ahead ---- */

/* Sessions last for seconds: after a shorter wait nothing is asked. */
#define LONG_US 1000000

/* A question to the engine. Its answer frees it, or the end of the engine. */
struct ahead_question {
	struct frontend *front;
	uint64_t serial; /* the hold's; the hold may be gone when the answer comes */
	struct lc_call *call;
	struct lc_ahead *ahead;
	struct ahead_question *prev, *next;
};

static void free_question(struct ahead_question *question)
{
	DL_DELETE(question->front->holds->questions, question);
	free(question->ahead);
	free(question);
}

static void session_asked(void *ctx, int err, int64_t renewed_ms)
{
	struct ahead_question *question = ctx;
	struct hold *hold;

	(void)renewed_ms;
	DL_FOREACH(question->front->holds->held, hold)
		if (err == -ENOENT && hold->serial == question->serial) {
			audit_after(&hold->audit, question->ahead);
			record_touch(&hold->record);
		}
	free_question(question);
}

/* A host that dies with a lock cannot tell of it. So whoever gets the lock after a wait is told, in
 * its log and history, that the session of the one ahead has ended. That is asked when the lock is
 * granted already: nobody waits for the answer. */
static void ask_who_was_ahead(struct hold *hold)
{
	int64_t waited_us = hold->audit.granted_us - hold->audit.asked_us;
	struct lc_ahead *ahead = lc_take_ahead(hold->taker);
	struct ahead_question *question;

	if (!ahead)
		return;
	question = waited_us < LONG_US ? NULL : malloc(sizeof(*question));
	if (!question) {
		free(ahead);
		return;
	}
	*question = (struct ahead_question){
		.front = hold->front,
		.serial = hold->serial,
		.ahead = ahead,
	};
	DL_APPEND(hold->front->holds->questions, question);
	if (lc_renewed(hold->front->lc, hold->node->lock, hold->audit.uid, ahead->znode,
	               session_asked, question, &question->call) < 0)
		free_question(question);
}

static void forget_questions(struct frontend *front)
{
	struct ahead_question *question, *next;

	DL_FOREACH_SAFE(front->holds->questions, question, next)
		free_question(question);
}

/* ---- the answer ---- */

void hold_keep(struct hold *hold, const struct lock_file *lock_file)
{
	int64_t until = later(hold->front->clock_us(), lock_file->least_us);

	if (lock_file->least_us > 0 && until > hold->least_until_us)
		hold->least_until_us = until;
}

/* The lock file's most and least times begin with the grant. */
static void begin_limits(struct hold *hold)
{
	const struct lock_file *lock_file = &hold->node->lock_file;
	int64_t now;

	if (lock_file->most_us == LC_FOREVER && lock_file->least_us == 0)
		return;
	now = hold->front->clock_us();
	hold->most_until_us = later(now, lock_file->most_us);
	if (hold->most_until_us != LC_FOREVER)
		lc_limit(hold->taker, hold->most_until_us);
	hold_keep(hold, lock_file);
}

static void answer_request(struct hold *hold, int err)
{
	struct frontend *front = hold->front;
	struct request *req = stop_waiting(hold, err < 0 ? HOLD_GONE : HOLD_GRANTING);

	if (err < 0) {
		audit_refused(&hold->audit, err);
		reply_err(req, -err);
		hold_free(hold);
		return;
	}
	hold->serial = ++front->holds->grants;
	begin_limits(hold);
	hold->kind->granted(hold, req);
	hold->ctx = NULL;
	if (!hold->claims) {
		hold_free(hold);
		return;
	}
	hold_step(hold, HOLD_HELD);
	audit_granted(&hold->audit, hold->taker);
	ask_who_was_ahead(hold);
	if (front->holds->seekers > 0 && hold->audit.mode == LC_EXCLUSIVE) {
		DL_APPEND2(front->holds->admitting, hold, admit_prev, admit_next);
		record_touch(&hold->record);
		admit_families(front);
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
	record_touch(&hold->record);
	if (err == 0)
		linger_at_head(&hold->front->holds->linger, &hold->lingering);
}

/* ---- loss ---- */

/* Why the lock is lost, in words; NULL: the ensemble is the cause. */
static const char *why_lost(const struct hold *hold)
{
	const struct claim *claim;
	struct lc_status status;

	if (hold->front->clock_us() >= hold->most_until_us)
		return "held too long";
	lc_status(hold->front->lc, &status);
	/* The guardian may have begun to stop a holder before this daemon took over. */
	DL_FOREACH(hold->claims, claim)
		if (status.lease_left_us > 0 &&
		    guardian_has_lost(hold->front->guardian, claim->slot))
			return "the lease was about to end, and its holder is stopped";
	return NULL;
}

void hold_wake_pollers(void *ctx)
{
	const struct hold *hold = ctx;
	const struct claim *claim;

	DL_FOREACH(hold->claims, claim)
		answers_wake_poller(hold->front, claim->file->poller);
}

static void lock_lost(void *ctx)
{
	struct hold *hold = ctx;
	struct claim *claim;

	if (hold->state != HOLD_HELD && hold->state != HOLD_KEPT)
		return;
	record_touch(&hold->record);
	audit_lost(&hold->audit, hold->taker, why_lost(hold));
	if (hold->state == HOLD_KEPT) {
		hold_free(hold);
		return;
	}
	hold_step(hold, HOLD_LOST);
	if (hold->kind->lost)
		hold->kind->lost(hold);
	hold_wake_pollers(hold);
	DL_FOREACH(hold->claims, claim)
		guardian_lose(hold->front->guardian, claim->slot);
}

/* ---- asking ---- */

/* A lock that was lost while the hold lingered is of no use. If the process lives it is the same
 * one, but it may have changed its user. */
static bool is_adoptable(const struct hold *hold, const struct hold_request *request)
{
	return process_lives(hold->lingering.pidfd) && hold->audit.uid == request->ask.uid &&
	       request->ask.wait_us > 0 && hold->where == request->where &&
	       hold->owner == request->owner && hold->audit.mode == request->ask.mode &&
	       !(hold->answer == 0 && !lc_holds(hold->taker));
}

static pid_t asker_of(const struct hold_request *request)
{
	return request->asker ? request->asker : request->caller.pid;
}

struct hold *hold_adopt(struct frontend *front, const struct hold_request *request)
{
	struct lingering *lingering, *next;
	pid_t pid = asker_of(request);

	LINGERING_FOREACH_SAFE(front, lingering, next) {
		struct hold *hold = hold_of_lingering(lingering);

		if (lingering->pid != pid || strcmp(hold->node->lock, request->node->lock) != 0)
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

int hold_take(struct frontend *front, const struct hold_request *request, void *ctx,
              struct hold **ret_hold)
{
	struct hold *hold = calloc(1, sizeof(*hold));
	struct lc_request ask = request->ask;
	int r;

	if (!hold)
		return -ENOMEM;
	ask.replaces = request->replaces ? request->replaces->taker : NULL;
	ask.pid = request->caller.pid;
	ask.command = request->caller.command;
	*hold = (struct hold){
		.kind = request->kind,
		.ctx = ctx,
		.front = front,
		.node = request->node,
		.asker = asker_of(request),
		.where = request->where,
		.owner = request->owner,
		.lineage = request->lineage,
		.most_until_us = LC_FOREVER,
		.least_until_us = INT64_MIN,
		.answer = NO_ANSWER,
	};
	r = lc_take(front->lc, &ask, lock_taken, lock_lost, hold, &hold->taker);
	if (r < 0) {
		audit_refuse(&front->holds->audit_log, request->node->lock, &request->caller,
		             request->ask.uid, r, NULL);
		free(hold);
		return r;
	}
	audit_begin(&hold->audit, &front->holds->audit_log, hold->node->lock, request->ask.mode,
	            &request->caller, request->ask.uid);
	node_ref(hold->node);
	front->holds->count++;
	record_begin(&front->records, &hold->record, RECORD_HOLD, 0);
	*ret_hold = hold;
	return 0;
}

void hold_wait(struct hold *hold, struct request *req)
{
	hold->req = req;
	hold->since_us = hold->front->clock_us();
	hold->compared = hold->front->holds->grants; /* the caller has asked hold_of_family() */
	hold_step(hold, HOLD_WAITING);
	if (hold->answer != NO_ANSWER)
		answer_request(hold, hold->answer);
	else
		request_wait(req, wait_interrupted, hold);
}

bool hold_find_taker(struct hold *hold, uint64_t taker_id)
{
	hold->taker = lc_claim(hold->front->lc, taker_id, lock_taken, lock_lost, hold);
	if (hold->taker && hold->most_until_us != LC_FOREVER)
		lc_limit(hold->taker, hold->most_until_us);
	return hold->taker;
}

bool hold_resume(struct request *req)
{
	if (req->owner)
		request_wait(req, wait_interrupted, req->owner);
	return req->owner;
}

struct request *hold_withdraw(struct hold *hold)
{
	struct request *req = hold->state == HOLD_WAITING ? stop_waiting(hold, HOLD_GONE) : NULL;

	hold_free(hold);
	return req;
}

void hold_evicted(void *ctx, void *taker_ctx, const char *by)
{
	struct hold *hold = taker_ctx;

	(void)ctx;
	audit_evicted(&hold->audit, by);
	record_touch(&hold->record);
}

/* ---- claims ---- */

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
	assert(hold->state != HOLD_GRANTING); /* answer_request() is at work with it */
	if (!hold->claims)
		give_back(hold);
}

void claim_move(struct claim *claim, struct hold *to)
{
	struct hold *from = claim->hold;

	DL_DELETE(from->claims, claim);
	claim->hold = to;
	DL_APPEND(to->claims, claim);
	record_touch(&from->record);
	record_touch(&to->record);
	guardian_limit(to->front->guardian, claim->slot, to->most_until_us);
	if (!from->claims)
		hold_free(from);
}

/* ---- all of a mount ---- */

bool holds_init(struct frontend *front)
{
	return linger_init(&front->holds->linger, front->clock_us, stop_lingering);
}

void holds_drop(struct frontend *front, pid_t pid, const char *lock)
{
	struct lingering *lingering, *next;

	LINGERING_FOREACH_SAFE(front, lingering, next)
		if (lingering->pid == pid &&
		    strcmp(hold_of_lingering(lingering)->node->lock, lock) == 0)
			hold_free(hold_of_lingering(lingering));
}

void holds_drop_all(struct frontend *front)
{
	struct lingering *lingering, *next;

	LINGERING_FOREACH_SAFE(front, lingering, next)
		hold_free(hold_of_lingering(lingering));
	while (front->holds->linger.lists[LINGERS_KEPT])
		hold_free(hold_of_lingering(front->holds->linger.lists[LINGERS_KEPT]));
}

void holds_drop_where(struct frontend *front, const void *where, const uint64_t *owner)
{
	struct lingering *lingering, *next;

	LINGERING_FOREACH_SAFE(front, lingering, next) {
		struct hold *hold = hold_of_lingering(lingering);

		if (hold->where == where && (!owner || hold->owner == *owner))
			hold_free(hold);
	}
}

unsigned holds_lost(const struct frontend *front, const struct hold **ret_first)
{
	const struct hold *hold;
	unsigned count = 0;

	*ret_first = NULL;
	DL_FOREACH(front->holds->held, hold)
		if (hold->state == HOLD_LOST) {
			*ret_first = count++ == 0 ? hold : *ret_first;
		}
	return count;
}

void holds_end(struct frontend *front)
{
	struct hold *hold, *next;

	if (front->lc)
		holds_drop_all(front);
	DL_FOREACH_SAFE(front->holds->waiting, hold, next) {
		stop_waiting(hold, HOLD_GONE);
		if (!front->lc)
			hold->taker = NULL;
		hold_free(hold);
	}
	if (front->lc)
		return;
	DL_FOREACH(front->holds->held, hold)
		hold->taker = NULL;
	forget_questions(front);
}

int64_t holds_wait(const struct frontend *front)
{
	/* No timer is needed for a doubt: what ends it wakes the loop. */
	return front->holds->admitting && !lc_doubted(front->lc)
	               ? 0
	               : linger_wait(&front->holds->linger);
}

void holds_process(struct frontend *front, bool process_gone, bool guardian_spoke)
{
	if (guardian_spoke && !guardian_lives(front->guardian))
		log_line(LC_ERROR,
		         "the guardian was killed: no more locks are granted; restart the mount");
	linger_process(&front->holds->linger, process_gone);
	if (front->holds->admitting) {
		front->holds->admit_until_us = front->clock_us() + ADMIT_US;
		admit_families(front);
	}
}
