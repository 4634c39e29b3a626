/* SPDX-License-Identifier: MIT
 *
 * late.c - entries that come late. A create whose connection was lost, and which the barrier and
 * the listing behind it did not show, is taken for never done: its taker makes another entry, or
 * leaves. But a server that stood still with the create in a queue can pass it on when it wakes,
 * for its leader checks only whether that *server* has the session, and an old ConnectRequest
 * gives the session back to it for a moment. Such an entry would block its lock as long as the
 * session lives.
 *
 * Who may be deleted: a node with this session's half in its name, and this session as its owner,
 * whose full name no taker has or can get. A taker whose create is not answered, or is to be sent,
 * may get any number: nodes with its UUID wait for a later listing. Any other taker has its name;
 * a later entry of it has a higher number, for a lock never gives a number twice, and where
 * numbers repeat, no name is made while it stands. So a name that nobody has stays nobody's. Other
 * clients can make such names, but no nodes of this session.
 */
#include "lock/late.h"

#include <stdlib.h>
#include <string.h>

/* So many nodes are read at a time, since all that is sent in a turn goes before the next
 * heartbeat. The listing that follows a deletion shows those that are left. */
#define LATE_ASKED_MAX 64

struct late_node {
	struct lock *lock;
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

static void finish(struct late_node *node)
{
	struct lock *lock = node->lock;

	free(node);
	lock->late.asked--;
	if (lock->late.asked == 0 && lock->late.deleted) {
		lock->late.deleted = false;
		lock_want_list(lock);
	}
	lock_unuse(lock);
}

static void deleted(void *ctx, const struct ensemble_answer *answer)
{
	struct late_node *node = ctx;

	if (answer->result == ENSEMBLE_OK) {
		node->lock->late.deleted = true;
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
	struct entry_name name;
	bool known = answer->result == ENSEMBLE_NONODE || answer->result == ENSEMBLE_NOAUTH ||
	             answer->result == ENSEMBLE_GONE; /* NOAUTH: a mount may read its own nodes */

	if (answer->result == ENSEMBLE_OK) {
		bool ours = answer->stat->ephemeral_owner == lock->lc->session->id;

		/* A taker may have begun to make an entry since. */
		if (ours && name_parse(node->znode, &name) &&
		    is_nobodys(lock, node->znode, &name)) {
			delete_node(node, answer->stat->version);
			return;
		}
		known = !ours;
	}
	if (!known)
		lock_expect_late(lock);
	finish(node);
}

static struct late_node *make_node(struct lock *lock, const char *znode)
{
	struct late_node *node = malloc(sizeof(*node) + strlen(znode) + 1);

	if (node) {
		node->lock = lock;
		strcpy(node->znode, znode);
	}
	return node;
}

void late_found(struct lock *lock, const char *znode, const struct entry_name *name,
                uint64_t number)
{
	struct late_node *node;
	char *path;

	if (!is_nobodys(lock, znode, name) || lock->late.asked == LATE_ASKED_MAX ||
	    (lock->late.asked > 0 && lock->late.listing != number))
		return; /* nodes of an earlier listing are being read */
	node = make_node(lock, znode);
	path = path_join(lock->path, znode);
	if (!node || !path) {
		lock_expect_late(lock);
		free(node);
	} else {
		lock_use(lock);
		lock->late.asked++;
		lock->late.listing = number;
		lc_submit(lock->lc, ensemble_get(path), owner_answered, node);
	}
	free(path);
}
