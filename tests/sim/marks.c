/* SPDX-License-Identifier: MIT
 *
 * marks.c - entries that somebody evicts with lc_evict(). An entry of another client is deleted
 * at once. An entry of a mount is marked: the mount tells the taker, and deletes the entry when
 * no program works under the lock any more. Nobody else deletes it before a session timeout has
 * passed, and nobody removes the mark.
 */
#include "pure/name.h"
#include "sim.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* A mount is told of a letter by the watch on its mailbox. Then it reads its entries. */
#define NOTICE_US 2000000
#define LINE 17          /* a letter */
#define SETTLED_US 20000 /* a holder's entry is watched so long after the grant */

static int64_t session_timeout(const struct sim *sim, int64_t id)
{
	int64_t timeout_us = INT64_MAX;
	struct session *session;

	LL_FOREACH(sim->world.sessions, session)
		if (session->id == id)
			timeout_us = session->timeout_us;
	/* Some servers may have granted a shorter one since. */
	if (sim->world.config.limit_least_us && timeout_us > sim->world.config.limit_least_us)
		timeout_us = sim->world.config.limit_least_us;
	for (int i = 0; i < WORLD_SERVERS_MAX; i++)
		if (sim->world.config.timeout_max_us[i] &&
		    timeout_us > sim->world.config.timeout_max_us[i])
			timeout_us = sim->world.config.timeout_max_us[i];
	return timeout_us;
}

static bool is_marked(const void *data, int len)
{
	return len > 7 && !memcmp(data, "evict: ", 7);
}

/* The session that has written; 0: a write from outside. */
static int64_t writer(const struct transaction *transaction)
{
	return transaction->request ? transaction->request->conn->session : 0;
}

static void note_mark(struct sim *sim, struct node *node, const struct transaction *transaction,
                      const struct change *change)
{
	struct taker *taker = judge_owner(sim, node);
	bool was = is_marked(node->data, node->data_len),
	     is = is_marked(change->data, change->data_len);

	if (was && !is)
		sim_violation(sim, "d: the mark on %s is wiped out", node->path);
	if (was || !is)
		return;
	node->marked_us = sim->agenda.now_us;
	node->poked_us = 0;
	sim->totals->marks++;
	trace("mark on %s, by %" PRIx64, node->path, (uint64_t)writer(transaction));
	if (taker) {
		taker->marked_us = sim->agenda.now_us;
		taker->poked_us = -1;
		taker->marked_token = node->stat.czxid;
	}
}

/* The node of another client has the name of a taker's entry that was deleted. A mount that does
 * not know that, and deletes its entry, deletes this node. */
static bool replaces(struct sim *sim, const struct node *node)
{
	struct node named = {.name = node->name, .stat.ephemeral_owner = 1};
	struct taker *taker = judge_owner(sim, &named);

	return node->stat.ephemeral_owner & WORLD_FOREIGN && taker && taker->evicted_token;
}

/* The mailbox of its mount was there when the entry was marked. */
static bool could_be_told(const struct sim *sim, const struct node *entry)
{
	struct node *home = tree_find(&sim->world.committed, SIM_ROOT "/.zklockfs"), *node;

	DL_FOREACH(home ? home->children : NULL, node)
		if (node->stat.ephemeral_owner == entry->stat.ephemeral_owner &&
		    strstr(node->name, "-pokes") && node->stat.czxid < entry->stat.mzxid)
			return true;
	return false;
}

static void note_delete(struct sim *sim, struct node *node, const struct transaction *transaction)
{
	int64_t owner = node->stat.ephemeral_owner;
	int64_t since_us = node->poked_us ? node->poked_us : node->marked_us;
	int64_t age_us = sim->agenda.now_us - since_us;

	if (!transaction->request || writer(transaction) == owner)
		return;
	if (replaces(sim, node))
		return;
	if (!owner || !(order_shape(node) & SHAPE_OF_MOUNT)) {
		if (!node->asked_away)
			sim_violation(sim, "d: %s is deleted, and nobody has asked for that",
			              node->path);
		return;
	}
	if (!node->poked_us && could_be_told(sim, node))
		sim_violation(sim, "d: %s is deleted by another mount, whose own was not told",
		              node->path);
	if (!node->marked_us ||
	    (judge_owner(sim, node) && age_us < session_timeout(sim, owner) / 1000 * 995))
		sim_violation(sim,
		              "d: %s is deleted by another mount, %" PRId64
		              " ms after its mount was told",
		              node->path, node->marked_us ? age_us / 1000 : -1);
}

/* The last letter names an entry. */
static bool is_named(const struct node *entry, const struct change *change)
{
	char digits[LINE] = "";
	struct entry_name name;

	if (!name_parse(entry->name, &name))
		return false;
	if (change->data_len < LINE)
		return false;
	memcpy(digits, (const char *)change->data + change->data_len - LINE, LINE - 1);
	return strtoull(digits, NULL, 16) == name.taker_half;
}

static void note_letter(struct sim *sim, const struct node *node, const struct change *change)
{
	for (int i = 0; i < sim->plan.locks; i++) {
		struct node *lock = tree_find(&sim->world.committed, sim->locks[i].path), *entry;

		DL_FOREACH(lock ? lock->children : NULL, entry) {
			struct taker *taker = judge_owner(sim, entry);

			if (!entry->marked_us || entry->poked_us ||
			    entry->stat.ephemeral_owner != node->stat.ephemeral_owner ||
			    !is_named(entry, change))
				continue;
			entry->poked_us = sim->agenda.now_us;
			if (taker)
				taker->poked_us = sim->agenda.now_us;
		}
	}
}

void marks_committing(struct sim *sim, const struct transaction *transaction)
{
	static const char home[] = SIM_ROOT "/.zklockfs/";

	for (int i = 0; i < transaction->count; i++) {
		const struct change *change = &transaction->changes[i];
		struct node *node = tree_find(&sim->world.committed, change->path);

		if (!node || change->kind == CHANGE_CREATE)
			continue;
		if (!strncmp(node->path, home, sizeof(home) - 1)) {
			if (change->kind == CHANGE_SET && strstr(node->name, "-pokes"))
				note_letter(sim, node, change);
		} else if (judge_is_entry(node)) {
			if (change->kind == CHANGE_SET)
				note_mark(sim, node, transaction, change);
			else
				note_delete(sim, node, transaction);
		}
	}
}

/* From now on the entry may be deleted at once if it is another client's. */
void marks_asked(struct sim *sim, struct node *node)
{
	node->asked_away = true;
	outsider_asked_away(sim, node->path);
}

void marks_promised(const struct question *question)
{
	struct sim *sim = question->sim;
	struct node *node = tree_find(&sim->world.committed, question->lock->path);

	node = node ? node->children : NULL;
	while (node && node->stat.czxid != question->token)
		node = node->next;
	if (!node || node->promised_us)
		return;
	node->promised_us = sim->agenda.now_us;
	node->promised_by = question->mount->host.index;
	node->promised_life = question->mount->life;
}

/* The entry's own mount deletes it, or, after some time, the mount that has promised it. */
void marks_judge_node(struct sim *sim, const struct node *node)
{
	struct mount *mount = &sim->mounts[node->promised_by];
	int64_t due_us = node->promised_us + sim->plan.timeout_us / 100 * 101,
		trouble_us = mount_trouble(mount);

	if (!node->promised_us || mount->life != node->promised_life || mount->drained)
		return;
	if (due_us < trouble_us)
		due_us = trouble_us;
	if (sim->agenda.now_us - due_us > 2 * NOTICE_US)
		sim_violation(sim, "d: %s was to be taken away by %s, and stands there", node->path,
		              mount->host.name);
}

bool marks_taken_away(const struct taker *taker)
{
	return taker->marked_us >= 0 && taker->marked_token == taker->entry_token;
}

/* Since when the mount can know of the mark, or INT64_MAX: a holder's entry is watched; for a
 * waiter there is a letter. */
static int64_t due_us(const struct taker *taker)
{
	int64_t since_us = taker->marked_us;

	if (taker->phase == T_HELD) {
		if (since_us < taker->granted_us + SETTLED_US)
			since_us = taker->granted_us + SETTLED_US;
		return since_us;
	}
	return taker->poked_us >= 0 ? taker->poked_us : INT64_MAX;
}

void marks_judge(struct taker *taker)
{
	struct sim *sim = taker->sim;
	int64_t since_us, trouble_us = mount_trouble(taker->mount);

	if (!marks_taken_away(taker) || (taker->phase != T_WAITING && taker->phase != T_HELD))
		return;
	since_us = due_us(taker);
	if (since_us < trouble_us)
		since_us = trouble_us;
	if (since_us < INT64_MAX &&
	    sim->agenda.now_us - since_us > NOTICE_US + 2 * lease_spacing(&taker->mount->lease))
		sim_violation(sim, "d: taker %d on %s, which %s, is evicted from %s and not told",
		              taker->pid, taker->mount->host.name,
		              taker->phase == T_HELD ? "holds" : "waits", taker->lock->name);
}
