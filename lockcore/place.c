/* SPDX-License-Identifier: MIT
 *
 * place.c - a taker's place in the queue: its entry in ZooKeeper.
 *
 * What ZooKeeper has said (taker->znode) tells whether it is there. taker_step() does
 * whatever brings that to what the taker's state wants, and is called whenever either may
 * have changed. So the duty to delete an entry is there from before its create is sent, and
 * ends only at OK, NONODE or the session's end, whether or not anybody still waits for it:
 *
 *              create             OK                delete            OK, NONODE
 *   [ABSENT] ---------> [CREATING] -----> [PRESENT] -------> [DELETING] --------> [ABSENT]
 *                           |  unanswered    ^  ^                |
 *                           v                |  '----------------'  unanswered, refused
 *                       [UNKNOWN] -----------'  found in a listing; not found: ABSENT
 */
#include "engine.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Between tries of a delete that the ensemble refuses. */
#define RETRY_US 1000000

void taker_absent(struct lc_taker *taker)
{
	struct lc_taker *next = taker->next;

	while (next && next->znode != ZNODE_PRESENT && next->znode != ZNODE_DELETING)
		next = next->next;
	if (next)
		next->adjacent &= taker->adjacent;
	taker->znode = ZNODE_ABSENT;
	taker->adjacent = taker->first = taker->watch_armed = taker->gone = false;
	free(taker->name);
	taker->name = NULL;
}

char *taker_path(const struct lc_taker *taker)
{
	return lc_join(taker->lock->path, taker->name);
}

/* Present from now on, under this name. `stat`: NULL if it is new. */
static void set_present(struct lc_taker *taker, const char *znode, const struct ensemble_stat *stat)
{
	struct lc_taker *before;
	struct entry_name name;
	char *copy = strdup(znode);
	bool parsed = name_parse(znode, &name);

	(void)parsed;
	assert(parsed && name.taker_half == taker->id);
	assert(!stat || stat->ephemeral_owner == taker->lc->session.id);
	if (!copy) {
		/* Without its name it cannot be deleted; a listing will find it. */
		taker->znode = ZNODE_UNKNOWN;
		lock_want_list(taker->lock);
		return;
	}
	free(taker->name);
	taker->name = copy;
	taker->number = name.number;
	taker->czxid = stat ? stat->czxid : 0;
	taker->version = stat ? stat->version : 0;
	taker->znode = ZNODE_PRESENT;
	/* The numbers follow each other: nobody is in between. */
	before = taker == taker->lock->takers ? NULL : taker->prev;
	while (before && before->znode != ZNODE_PRESENT)
		before = before == taker->lock->takers ? NULL : before->prev;
	taker->adjacent = before && before->number + 1 == taker->number && name.number > 0;
	if (taker->adjacent && before->state == TAKER_HELD)
		taker_watch_next(before);
}

/* A failed create: what its taker is told. */
static int create_error(enum ensemble_result result)
{
	if (result == ENSEMBLE_NONODE || result == ENSEMBLE_NOCHILDREN)
		return -ENOENT;
	return result == ENSEMBLE_NOAUTH ? -EACCES : -ENOLCK;
}

/* An upgrade is to be told that an exclusive one stands in between, one that will not wait that
 * somebody does, and one that means another lock that it does: those need a listing of their own. */
static bool needs_list(const struct lc_taker *taker)
{
	return taker->instead || taker->immediate || !taker_means(taker) || !lock_guarded(taker->lock);
}

/* Without a listing: it follows one of ours that was first, and is gone with its making. */
static bool comes_first(const struct lc_taker *taker)
{
	return taker->follows >= 0 && taker->number == taker->follows + 1 &&
	       taker->number < NAME_NUMBER_ZONE && taker->state == TAKER_WAITING && taker_means(taker) &&
	       taker->znode == ZNODE_PRESENT && taker->lock->holding == 0 && !taker->lock->unresolved &&
	       session_may_grant(taker->lc);
}

static void made(struct lc_taker *taker, const struct ensemble_answer *answer)
{
	session_wrote(taker->lc, taker->sent_us);
	set_present(taker, strrchr(answer->path, '/') + 1, answer->stat);
	if (comes_first(taker))
		taker_grant(taker, true);
	/* Whoever guarded it when it was sent may have gone meanwhile. */
	else if (taker->state == TAKER_WAITING && needs_list(taker) &&
	         taker->lock->list_sent == taker->created_at)
		lock_want_list(taker->lock);
}

static void not_made(struct lc_taker *taker, enum ensemble_result result)
{
	if (result == ENSEMBLE_REFUSED && lc_is_due(taker->lc, &taker->lc->refused_said_us))
		lc_report(taker->lc, LC_WARNING, "%s: the ensemble refuses entries: over a quota?",
		          taker->lock->path);
	taker_absent(taker);
	if (taker->state == TAKER_WAITING)
		taker_fail(taker, create_error(result));
}

void taker_created(struct lc_taker *taker, const struct ensemble_answer *answer)
{
	taker->pending--;
	taker->lock->proven = answer->result == ENSEMBLE_OK;
	assert(taker->znode == ZNODE_CREATING);
	if (answer->result == ENSEMBLE_GONE)
		return;   /* taker_session_ended() follows */
	if (answer->result == ENSEMBLE_OK) {
		made(taker, answer);
	} else if (answer->result == ENSEMBLE_UNKNOWN) {
		taker->znode = ZNODE_UNKNOWN;
		taker->lock->unresolved = true;
		lock_want_list(taker->lock);   /* the connection may live */
	} else {
		not_made(taker, answer->result);
	}
	taker_step(taker);
}

static void create(struct lc_taker *taker)
{
	struct lc *lc = taker->lc;
	char prefix[NAME_PREFIX_MAX];

	name_format(prefix, lc->session.half, taker->id, lc->host, taker->pid, taker->mode);
	taker->name = strdup(prefix);
	taker->znode = ZNODE_CREATING;
	if (!taker->name || !batch_add(taker)) {
		taker_absent(taker);
		taker_fail(taker, -ENOMEM);
		return;
	}
	/* To the end: the order of creates is the order of entries. */
	DL_DELETE(taker->lock->takers, taker);
	DL_APPEND(taker->lock->takers, taker);
	/* Sent back to back: a free lock costs one round trip. */
	if (needs_list(taker))
		lock_want_list(taker->lock);
	else
		lock_recheck(taker->lock);
}

void taker_deleted(struct lc_taker *taker, const struct ensemble_answer *answer)
{
	enum ensemble_result result = answer->result;

	taker->pending--;
	taker->lock->proven = result == ENSEMBLE_OK;
	assert(taker->znode == ZNODE_DELETING && !taker_wants(taker));
	if (result == ENSEMBLE_GONE)
		return;
	if (result == ENSEMBLE_OK)
		session_wrote(taker->lc, taker->sent_us);
	if (result == ENSEMBLE_OK || result == ENSEMBLE_NONODE)
		taker_absent(taker);
	else
		taker->znode = ZNODE_PRESENT;   /* as far as we know: delete it again */
	if (taker->znode == ZNODE_PRESENT && result != ENSEMBLE_UNKNOWN) {
		lc_report(taker->lc, LC_WARNING, "%s/%s: cannot be deleted, trying again",
		          taker->lock->path, taker->name);
		timer_set(taker->lc, &taker->limit, lc_now(taker->lc) + RETRY_US);
	}
	if (taker->znode == ZNODE_ABSENT && taker->lock->behind_leaver)
		lock_want_list(taker->lock);
	taker_step(taker);
}

static void delete(struct lc_taker *taker)
{
	taker->znode = ZNODE_DELETING;
	if (!batch_add(taker)) {
		taker->znode = ZNODE_PRESENT;
		timer_set(taker->lc, &taker->limit, lc_now(taker->lc) + RETRY_US);
	}
}

void taker_unsent(struct lc_taker *taker)
{
	taker->pending--;
	taker->lock->proven = false;
	if (taker->znode == ZNODE_CREATING)
		taker_absent(taker);
	else
		taker->znode = ZNODE_PRESENT;
	taker_step(taker);
}

void taker_step(struct lc_taker *taker)
{
	bool ready = session_ready(taker->lc);

	switch (taker->znode) {
	case ZNODE_ABSENT:
		if (!taker_wants(taker)) {
			taker_settle(taker);
			return;
		}
		if (!ready || taker->state != TAKER_WAITING || taker->missing)
			return;
		if (taker->probing)
			lock_want_list(taker->lock);
		else if (!taker->lock->unresolved)
			create(taker);
		return;
	case ZNODE_PRESENT:
		/* A delete that was refused waits for its timer. */
		if (!ready || taker_wants(taker) || taker->limit.armed || taker->gone)
			return;
		if (taker->lock->unproved && !taker->lock->proven) {
			taker->lock->held_back = true;   /* lock_proved() goes on */
			taker_watch_self(taker->lock->unproved);
		} else {
			delete(taker);
		}
		return;
	case ZNODE_CREATING:
	case ZNODE_UNKNOWN:
	case ZNODE_DELETING:
		return;   /* an answer or a listing goes on from here */
	}
}

/* ---- what listings find ---- */

/* Made with all of the name that the create was sent with, so it may be its node; and so may
 * be copies that others have made of it. Whose session it belongs to tells. */
struct claim {
	struct lc_taker *taker;
	char *znode;
};

static void claim_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct claim *claim = ctx;
	struct lc_taker *taker = claim->taker;

	taker->pending--;
	taker->claims--;
	taker->claim_lost |= answer->result == ENSEMBLE_UNKNOWN;
	if (answer->result == ENSEMBLE_OK && taker->znode == ZNODE_UNKNOWN &&
	    answer->stat->ephemeral_owner == taker->lc->session.id) {
		set_present(taker, claim->znode, answer->stat);
		taker->claim_lost |= taker->znode == ZNODE_UNKNOWN;   /* no memory: it is there */
		entry_read(taker, answer);
	}
	free(claim->znode);
	free(claim);
	if (answer->result == ENSEMBLE_GONE || taker->claims > 0)
		return;
	/* What was found is judged by a listing, and what was not found out is looked for again. */
	lock_want_list(taker->lock);
	if (taker->znode == ZNODE_UNKNOWN && !taker->claim_lost)
		taker_not_found(taker);
	else
		taker_step(taker);
}

static struct claim *make_claim(struct lc_taker *taker, const char *znode)
{
	struct claim *claim = malloc(sizeof(*claim));

	if (claim)
		*claim = (struct claim){.taker = taker, .znode = strdup(znode)};
	if (claim && claim->znode)
		return claim;
	free(claim);
	return NULL;
}

void taker_found(struct lc_taker *taker, const struct queue_entry *entry)
{
	struct claim *claim;
	char *path;

	assert(taker->znode == ZNODE_UNKNOWN);
	if (taker->claims > 0 && taker->claimed != taker->listed)
		return;   /* those of an earlier listing are being asked */
	if (taker->claims == 0)
		taker->claim_lost = false;
	taker->claimed = taker->listed;
	claim = make_claim(taker, entry->znode);
	path = lc_join(taker->lock->path, entry->znode);
	if (!claim || !path) {
		taker->claim_lost = true;
		lock_look_later(taker->lock);
		if (claim)
			free(claim->znode);
		free(claim);
	} else {
		taker->pending++;
		taker->claims++;
		lc_submit_beside(taker->lc, &(struct ensemble_op){.kind = ENSEMBLE_GET, .path = path}, 1,
		                 claim_answered, claim);
	}
	free(path);
}

void taker_not_found(struct lc_taker *taker)
{
	assert(taker->znode == ZNODE_UNKNOWN && taker->state != TAKER_HELD);
	taker_absent(taker);
	taker_settle(taker);   /* one that waits is created again by the lock, in order */
}
