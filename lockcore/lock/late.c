/* SPDX-License-Identifier: MIT
 *
 * late.c - whose a node is that has this session's half in its name, while no taker has its full
 * name. A read tells: other clients can make such names, but no nodes of this session.
 *
 * A create was not answered. Each node with the whole name that it was sent with, up to the digits,
 * may be what it has made, or a copy that another client has made. If none of the nodes that a
 * listing shows is of this session, the create was not done.
 *
 * A create was given up. Its connection was lost, and the barrier and the listing behind it did not
 * show its node: the create is taken for never done, and its taker makes another entry, or leaves.
 * But a server that stood still with the create in a queue can pass it on when it wakes, for its
 * leader checks only whether that *server* has the session, and an old ConnectRequest gives the
 * session back to it for a moment. Such an entry would block its lock as long as the session lives.
 *
 * Who may be deleted: a node of this session with this session's half in its name, whose full name
 * no taker has or can get. A taker whose create is not answered, or is to be sent, may get any
 * number: nodes with its UUID wait for a later listing. Any other taker has its name; a later entry
 * of it has a higher number, for a lock never gives a number twice, and where numbers repeat, no
 * name is made while it stands. So a name that nobody has stays nobody's.
 */
#include "lock/taker.h"

#include <stdlib.h>
#include <string.h>

/* So many nodes are read at a time, since all that is sent in a turn goes before the next
 * heartbeat. The listing that follows a deletion shows those that are left. */
#define LATE_ASKED_MAX 64

struct late_node {
	struct lock *lock;
	struct entry_name name;
	char znode[];
};

/* The entry's create is not answered, or is to be sent. */
static bool awaits_a_name(struct entry *entry)
{
	return entry->state == ENTRY_CREATING || entry->state == ENTRY_UNKNOWN ||
	       (entry->state == ENTRY_ABSENT && taker_of(entry)->state == TAKER_WAITING);
}

/* No taker has that name, or can get it. */
static bool is_nobodys(struct lock *lock, const char *znode, const struct entry_name *name)
{
	struct entry *entry = entry_named(lock, name);

	if (!name->of_mount || name->session_half != lock->lc->session->half)
		return false;
	return !entry || (!awaits_a_name(entry) && strcmp(entry->name, znode) != 0);
}

/* The entry that the node may be, whose create was not answered; NULL: none. */
static struct entry *may_be_of(struct lock *lock, const char *znode, const struct entry_name *name)
{
	struct entry *entry = entry_named(lock, name);
	bool may_be = entry && entry->state == ENTRY_UNKNOWN &&
	              strncmp(znode, entry->name, strlen(entry->name)) == 0;

	return may_be ? entry : NULL;
}

/* The owner of a node could not be read: no create is sent again before the next listing. */
static void not_told(struct lock *lock, enum ensemble_result result)
{
	lock->late.untold = true;
	if (result == ENSEMBLE_GONE)
		return;
	lock_expect_late(lock);
	if (result != ENSEMBLE_UNKNOWN && lock->late.again)
		lock_list_later(lock);
}

/* All nodes of a listing were read. A listing behind them judges the entry that was found. */
static void all_are_read(struct lock *lock)
{
	struct lock_late *late = &lock->late;
	struct lc_taker *taker, *next;

	if (late->again && !lock->lists.later)
		lock_want_list(lock);
	DL_FOREACH_SAFE(lock->takers.all, taker, next)
		if (!late->untold && taker->entry.state == ENTRY_UNKNOWN &&
		    taker->entry.shown_in == late->listing)
			entry_not_found(&taker->entry);
	if (late->again && lock->batch.unknown == 0)
		lock_step(lock); /* creates have waited for the outcome */
	late->again = late->untold = false;
}

static void finish(struct late_node *node)
{
	struct lock *lock = node->lock;

	free(node);
	if (--lock->late.asked == 0)
		all_are_read(lock);
	lock_unuse(lock);
}

static void deleted(void *ctx, const struct ensemble_answer *answer)
{
	struct late_node *node = ctx;

	if (answer->result == ENSEMBLE_OK) {
		node->lock->late.again = true;
		lock_expect_late(node->lock);
		lc_report(node->lock->lc, LC_NOTICE,
		          "%s/%s: its create was given up, and was done late: deleted",
		          node->lock->path, node->znode);
	} else if (answer->result != ENSEMBLE_NONODE && answer->result != ENSEMBLE_GONE) {
		lock_expect_late(node->lock);
	}
	finish(node);
}

static void delete_node(struct late_node *node, int32_t version)
{
	char *path = path_join(node->lock->path, node->znode);

	if (path) {
		lc_submit(node->lock->lc, ensemble_delete(path, version), deleted, node);
		free(path);
		return;
	}
	lock_expect_late(node->lock);
	finish(node);
}

static void owner_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct late_node *node = ctx;
	struct lock *lock = node->lock;
	enum ensemble_result result = answer->result;
	struct entry *entry = may_be_of(lock, node->znode, &node->name);

	if (result == ENSEMBLE_OK && answer->stat->ephemeral_owner == lock->lc->session->id) {
		if (entry) {
			entry_found(entry, node->znode, answer);
		} else if (is_nobodys(lock, node->znode, &node->name)) {
			delete_node(node, answer->stat->version);
			return;
		} else {
			lock_expect_late(lock); /* a taker has begun to make an entry since */
		}
	} else if (result != ENSEMBLE_OK && result != ENSEMBLE_NONODE &&
	           result != ENSEMBLE_NOAUTH) { /* NOAUTH: a mount may read its own nodes */
		not_told(lock, result);
	}
	finish(node);
}

static void ask_owner(struct lock *lock, const char *znode, const struct entry_name *name)
{
	struct late_node *node = malloc(sizeof(*node) + strlen(znode) + 1);
	char *path = path_join(lock->path, znode);

	if (node && path) {
		*node = (struct late_node){.lock = lock, .name = *name};
		strcpy(node->znode, znode);
		lock_use(lock);
		lock->late.asked++;
		lc_submit(lock->lc, ensemble_get(path), owner_answered, node);
	} else {
		not_told(lock, ENSEMBLE_REFUSED);
		free(node);
	}
	free(path);
}

void late_found(struct lock *lock, const char *znode, const struct entry_name *name,
                uint64_t number)
{
	struct entry *entry = may_be_of(lock, znode, name);
	struct lock_late *late = &lock->late;

	if (entry) {
		entry->shown_in = number;
		late->again = true;
	} else if (!is_nobodys(lock, znode, name) || late->asked >= LATE_ASKED_MAX) {
		return;
	}
	if (late->asked > 0 && late->listing != number)
		return; /* nodes of an earlier listing are being read */
	late->listing = number;
	ask_owner(lock, znode, name);
}
