/* SPDX-License-Identifier: MIT
 *
 * reuse.c - an entry that serves several takes of one process.
 *
 * A program that takes and gives back one lock again and again would pay a write for each take. So
 * the entry of a holder that leaves may be *spare* for a moment: its taker has left, its delete is
 * put off by a timer, and the next take of the same process gets it, granted in the same turn.
 *
 * Exclusion. From outside this is one holder of at most REUSE_US. The entry is in the queue and
 * first all the time, so no other entry can be first. The new hold needs what each grant needs: a
 * session that may grant, now and when it is told. An entry that somebody has deleted meanwhile is
 * one of a holder whose entry is deleted: within REUSE_US a holder's entry is not watched either,
 * and the next hold is watched when the first one would have been.
 *
 * Briefly. A spare entry is in the way of a taker of another host that will not wait, and nobody
 * holds. So it stays for the time of one create at most, in which that taker meets an entry that is
 * being deleted, too; and only for a process that has taken the lock again within that time before,
 * in a lock that no other client has used lately.
 *
 * No queue. An entry is spare only if its taker is the only one of this mount in the lock, and a
 * listing of that entry, or an event of the lock's names since then, has shown nobody else. Who
 * comes later waits for the rest of the moment at most; no grant relies on the event.
 *
 * No leftovers. Nothing of the node changes, so all that its name and data say has to be true of
 * the next hold: process, user, command, mode, no reason. An answer under way that names the entry
 * would act for the next hold, so there is none. What was asked for is set anew by the function
 * that sets it for a new taker.
 *
 * Tokens. A store cannot tell two holds with one token apart. So an entry whose token was given is
 * not spare: at most the last of its holds has a token.
 *
 * A spare entry is that of a leaver in all other respects: its mark, its loss, the end of the
 * session, another process that goes on from the records.
 */
#include "grant/grant.h"

#include "lock/known.h"

#include <string.h>

/* An entry serves for the time of so many creates, from its first grant on: then its own create
 * costs an eighth of the time. It never serves for so long that a holder's entry would be
 * watched. */
#define REUSE_CREATES 8
#define REUSE_US LONG_HOLD_US
/* An entry is spare for this time at most, however slow a create is. */
#define REUSE_IDLE_US 500
/* Nothing is spare in a lock that another client has used within this time. */
#define REUSE_ALONE_US 1000000

static int64_t longest(const struct lc *lc)
{
	int64_t us = REUSE_CREATES * lc->entries->create_us;

	return us < REUSE_US ? us : REUSE_US;
}

/* The longest time from the end of a hold to the next take. */
static int64_t longest_idle(const struct lc *lc)
{
	int64_t us = lc->entries->create_us;

	return us < REUSE_IDLE_US ? us : REUSE_IDLE_US;
}

/* What others see of the entry is true of any hold of that process, and its token was not given. */
static bool is_plain(const struct lc_taker *taker)
{
	const struct entry_data *data = &taker->entry.data;

	return taker->entry.mode == LC_EXCLUSIVE && !data->reason && !data->told_since &&
	       !data->dirty && !taker->told_token && data->pid != 0;
}

/* No other client was here lately. */
static bool is_left_alone(const struct lock *lock)
{
	return lc_now(lock->lc) - lock->known.met_us > REUSE_ALONE_US;
}

static bool is_alone(const struct lc_taker *taker)
{
	const struct lock *lock = taker->entry.lock;

	return lock->takers.all == taker && !taker->next && lock->node.info.slots <= 1 &&
	       lock->batch.unknown == 0 && !lock->grant.unproved && !lock->grant.held_back;
}

static bool may_be_spare(const struct lc_taker *taker)
{
	const struct entry *entry = &taker->entry;
	struct lc *lc = entry->lock->lc;

	return taker->entry.repeated && !taker_is_untold(taker) && taker_holds_entry(taker) &&
	       known_is_first(entry) && entry->pending == 0 && is_plain(taker) && is_alone(taker) &&
	       is_left_alone(entry->lock) && session_may_grant(lc) &&
	       lc_now(lc) < entry->lock->repeat.granted_us + longest(lc);
}

bool reuse_is_repeated(const struct lock *lock, const struct lc_request *request)
{
	const struct lock_repeat *last = &lock->repeat;

	return lock->lc->config.reuse && request->pid != 0 && last->pid == request->pid &&
	       last->uid == request->uid &&
	       lc_now(lock->lc) - last->left_us < longest_idle(lock->lc) && is_left_alone(lock);
}

bool reuse_leave(struct lc_taker *taker)
{
	struct lock *lock = taker->entry.lock;
	int64_t end_us, idle_us;

	if (!lock->lc->config.reuse)
		return false;
	if (taker->state == TAKER_HELD) {
		lock->repeat.left_us = lc_now(lock->lc);
		lock->repeat.pid = is_plain(taker) ? taker->entry.data.pid : 0;
		lock->repeat.uid = taker->entry.data.uid;
	}
	if (!may_be_spare(taker))
		return false;
	end_us = lock->repeat.granted_us + longest(lock->lc);
	idle_us = lock->repeat.left_us + longest_idle(lock->lc);
	taker_leave_spare(taker, idle_us < end_us ? idle_us : end_us);
	return true;
}

/* The entry serves this request as well as a new one would. */
static bool serves(const struct lc_taker *taker, const struct lc_request *request)
{
	const struct entry_data *data = &taker->entry.data;
	const struct lock *lock = taker->entry.lock;

	return data->pid == request->pid && data->uid == request->uid &&
	       strcmp(data->command, request->command) == 0 && request->mode == LC_EXCLUSIVE &&
	       !request->replaces && !(request->reason && *request->reason) &&
	       (request->czxid == 0 || request->czxid == lock->node.info.czxid);
}

static bool may_serve(const struct lc_taker *taker)
{
	const struct entry *entry = &taker->entry;
	struct lc *lc = entry->lock->lc;

	return entry->pending == 0 && is_alone(taker) && session_may_grant(lc) &&
	       lc_now(lc) < entry->lock->repeat.granted_us + longest(lc);
}

struct lc_taker *reuse_take(struct lock *lock, const struct lc_request *request)
{
	struct lc_taker *taker = lock->takers.all;

	if (!taker || !taker->spare)
		return NULL;
	if (serves(taker, request) && may_serve(taker)) {
		lock->lc->counters.reuses++;
		return taker;
	}
	taker_drop_spare(taker);
	return NULL;
}

void reuse_end(struct lock *lock)
{
	struct lc_taker *last = lock->takers.all ? lock->takers.all->prev : NULL;

	if (!last)
		return;
	last->entry.repeated = false;
	taker_drop_spare(last);
}

void reuse_end_at(struct lc *lc, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct lock *lock;

	if (!lc->config.reuse)
		return;
	lock = lock_find(lc, path, strlen(path));
	if (lock)
		reuse_end(lock);
	lock = lock_find(lc, path, (size_t)(slash - path));
	if (lock)
		reuse_end(lock);
}
