/* SPDX-License-Identifier: MIT
 *
 * poke.c - how a mount hears at once that one of its entries was marked, where no watch on the
 * entry tells it: a waiter behind others has none.
 *
 * Each mount has an ephemeral node for this, `<half of its session>-pokes` beside the node of
 * its heartbeats, and watches it. A mount that has marked an entry adds a line to it that names
 * the entry, by compare-and-set: so none is lost between two that poke, and the node's version
 * counts them. The mount reads the node, and the entries of those lines that are new; all
 * of its entries only where there were more than the node holds. On a new connection nothing is
 * granted before that: a waiter that was marked meanwhile would hold a lock, and the evictor
 * deletes its entry after a session timeout.
 *
 *   who evicts   find the node: below his own root, then below each node on the way to the lock,
 *                since the other's root may be another one
 *                  there      read, add, write if nobody has meanwhile, else again
 *                  not there  of a mount that has no such node the heartbeats' node is written:
 *                             it sees a version that is not its own (session.c)
 */
#include "ask/poke.h"

#include "lock/entry_data.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Roots that are tried: mounts that are further down do not notice at once. */
#define ROOTS_MAX 16
/* Entries that the node names at most. */
#define LINES_MAX 64
#define LINE 17 /* the second half of the entry's UUID, and a newline */

/* The connection was lost, or the session with it. */
static bool is_unknown(const struct ensemble_answer *answer)
{
	return answer->result == ENSEMBLE_UNKNOWN || answer->result == ENSEMBLE_GONE;
}

/* ---- being poked ---- */

static void read_pokes(struct lc *lc);

int pokes_begin(struct lc *lc)
{
	lc->pokes->node =
		malloc(strlen(lc->root) + 1 + strlen(ROOT_DIR) + 18 + strlen(POKES_SUFFIX));
	return lc->pokes->node ? 0 : -ENOMEM;
}

void pokes_new_session(struct lc *lc)
{
	strcpy(stpcpy(lc->pokes->node, lc->session->node.path), POKES_SUFFIX);
	lc->pokes->state = POKES_ABSENT;
	lc->pokes->unread = lc->pokes->look_at_all = false;
	lc->entries->look_failed = false;
}

/* As long as the marks are not read that the lines name, the lines are as good as lost for the
 * next process. */
void pokes_save_load(struct codec *codec, struct lc *lc)
{
	bool lost = lc->pokes->state == POKES_VANISHED || lc->pokes->look_at_all ||
	            lc->entries->looks > 0 || lc->entries->look_failed;
	bool made = lc->pokes->state == POKES_MADE;

	CODEC_INT(codec, lc->pokes->seen);
	CODEC_BOOL(codec, lost);
	CODEC_BOOL(codec, made);
	if (!codec->loads)
		return;
	pokes_new_session(lc);
	if (lost)
		lc->pokes->state = POKES_VANISHED;
	else if (made)
		lc->pokes->state = POKES_MADE;
}

static void pokes_made(void *ctx, const struct ensemble_answer *answer)
{
	struct lc *lc = ctx;
	struct pokes *pokes = lc->pokes;
	bool is_there = answer->result == ENSEMBLE_OK || answer->result == ENSEMBLE_EXISTS;

	pokes->asked--;
	if (!is_there && !is_unknown(answer))
		entries_await_marks(lc); /* the heartbeats' node is poked instead */
	if (!is_there)
		return;
	if (answer->result == ENSEMBLE_OK)
		session_wrote(lc, pokes->sent_us);
	/* Lines may have gone with the former node. */
	pokes->look_at_all |= pokes->state == POKES_VANISHED;
	pokes->state = POKES_MADE;
	read_pokes(lc);
}

static void make_pokes(struct lc *lc)
{
	assert(lc->pokes->asked == 0); /* sent_us belongs to one request */
	lc->pokes->asked++;
	lc->pokes->seen = 0;
	lc->pokes->sent_us = lc_now(lc);
	lc_submit(lc, ensemble_create_ephemeral(lc->pokes->node, NULL, 0), pokes_made, lc);
}

/* It is made again with the next heartbeat: somebody may be about to remove the whole tree. */
static void pokes_vanished(struct lc *lc)
{
	lc->pokes->state = POKES_VANISHED;
}

/* The last lines, so many of them. */
static void look_at_named(struct lc *lc, const char *data, size_t len, size_t count)
{
	for (const char *line = data + len - count * LINE; line < data + len; line += LINE) {
		char digits[LINE] = "";
		struct entry *entry;
		uint64_t id;

		memcpy(digits, line, LINE - 1);
		id = strtoull(digits, NULL, 16);
		entry = entry_find(lc, id);
		if (entry)
			entry_check_mark(entry);
	}
}

/* Nothing is granted before the marks are read that were made while there was no contact. */
static void read_all_marks(struct lc *lc)
{
	if (!lc->session->marks_unread)
		return;
	entries_check_marks(lc);
	entries_await_marks(lc);
}

static void pokes_read(void *ctx, const struct ensemble_answer *answer)
{
	struct lc *lc = ctx;
	struct pokes *pokes = lc->pokes;
	int64_t news;

	pokes->asked--;
	if (answer->result == ENSEMBLE_NONODE && pokes->state == POKES_MADE)
		pokes_vanished(lc);
	pokes->unread = answer->result != ENSEMBLE_OK;
	if (pokes->unread) { /* asked again with the next heartbeat, or the next connection */
		if (!is_unknown(answer))
			read_all_marks(lc);
		return;
	}
	news = (int64_t)answer->stat->version - pokes->seen;
	pokes->seen = answer->stat->version;
	if (news > answer->data_len / LINE || pokes->look_at_all)
		entries_check_marks(lc);
	else if (news > 0)
		look_at_named(lc, answer->data, (size_t)answer->data_len, (size_t)news);
	pokes->look_at_all = false;
	entries_await_marks(lc);
}

static void read_pokes(struct lc *lc)
{
	lc->pokes->unread = false;
	lc->pokes->asked++;
	lc_submit(lc, ensemble_watch(lc->pokes->node), pokes_read, lc);
}

void pokes_resume(struct lc *lc)
{
	if (lc->pokes->state == POKES_MADE)
		read_pokes(lc);
	else
		make_pokes(lc);
}

void pokes_try_again(struct lc *lc)
{
	bool again = lc->session->marks_unread && lc->entries->awaited == 0;

	if (lc->pokes->asked == 0 && (lc->pokes->state != POKES_MADE || lc->pokes->unread || again))
		pokes_resume(lc);
}

void pokes_changed(struct lc *lc, const char *path, enum ensemble_change change)
{
	if (strcmp(path, lc->pokes->node) != 0 || lc->pokes->state != POKES_MADE)
		return;
	if (change == ENSEMBLE_DELETED)
		pokes_vanished(lc);
	else
		read_pokes(lc);
}

/* ---- poking ---- */

struct poke {
	struct lc *lc;
	struct entry_name name;
	char *lock;       /* the path of the entry's lock */
	char *node;       /* the node that was asked for last */
	unsigned roots;   /* tried, without the own one */
	size_t root_len;  /* of the root that is tried now, in `lock` */
	int64_t until_us; /* a refusal is tried again until then */
	poke_done_fn *done;
	void *ctx;
	struct timer retry;
	struct poke *prev, *next; /* in lc->pokes->under_way */
};

void poke_free(struct poke *poke)
{
	if (!poke)
		return;
	free(poke->lock);
	free(poke->node);
	free(poke);
}

static void stop_poke(struct poke *poke)
{
	timer_clear(&poke->lc->timers, &poke->retry);
	DL_DELETE(poke->lc->pokes->under_way, poke);
}

static void end_poke(struct poke *poke)
{
	poke_done_fn *done = poke->done;
	void *ctx = poke->ctx;

	stop_poke(poke);
	poke_free(poke);
	done(ctx);
}

void pokes_cancel(struct lc *lc)
{
	struct poke *poke;

	while ((poke = lc->pokes->under_way)) {
		stop_poke(poke);
		poke_free(poke);
	}
}

void pokes_finish(struct lc *lc)
{
	free(lc->pokes->node);
}

/* True: there is another one. Roots are in the lock's path, from the top; the own one, which is the
 * likeliest, comes first. */
static bool next_root(struct poke *poke)
{
	size_t own = strlen(poke->lc->root);

	if (poke->roots == 0)
		poke->root_len = 0; /* where the others begin */
	do {
		const char *slash = strchr(poke->lock + poke->root_len + 1, '/');

		if (!slash || poke->roots++ >= ROOTS_MAX)
			return false;
		poke->root_len = (size_t)(slash - poke->lock);
	} while (poke->root_len == own);
	return true;
}

/* It is begun anew: a second poke does no harm. */
static void retry_later(struct poke *poke)
{
	timer_set(&poke->lc->timers, &poke->retry, lc_now(poke->lc) + RETRY_US);
}

/* One of the two nodes below the root that is tried now. */
static void ask_node(struct poke *poke, struct ensemble_op op, const char *suffix,
                     ensemble_answer_fn *answered)
{
	free(poke->node);
	if (asprintf(&poke->node, "%.*s/" ROOT_DIR "/%016" PRIx64 "%s", (int)poke->root_len,
	             poke->lock, poke->name.session_half, suffix) < 0) {
		poke->node = NULL;
		retry_later(poke);
		return;
	}
	op.path = poke->node;
	lc_submit(poke->lc, op, answered, poke);
}

static void find_node(struct poke *poke);

static void retry_poke(void *ctx)
{
	struct poke *poke = ctx;

	if (session_is_ready(poke->lc))
		find_node(poke);
	else
		retry_later(poke);
}

/* It may be otherwise the next time. */
static bool may_be_tried_again(const struct poke *poke, const struct ensemble_answer *answer)
{
	return is_unknown(answer) ||
	       (answer->result == ENSEMBLE_REFUSED && lc_now(poke->lc) < poke->until_us);
}

/* The heartbeats' node. */
static void beat_written(void *ctx, const struct ensemble_answer *answer)
{
	struct poke *poke = ctx;

	if (may_be_tried_again(poke, answer))
		retry_later(poke);
	else if (answer->result != ENSEMBLE_OK && next_root(poke))
		find_node(poke);
	else
		end_poke(poke);
}

static void write_beat(struct poke *poke)
{
	ask_node(poke,
	         ensemble_set(NULL, poke->name.host, strlen(poke->name.host), ENSEMBLE_ANY_VERSION),
	         "", beat_written);
}

static void line_added(void *ctx, const struct ensemble_answer *answer)
{
	struct poke *poke = ctx;

	if (may_be_tried_again(poke, answer))
		retry_later(poke);
	else if (answer->result == ENSEMBLE_BADVERSION || answer->result == ENSEMBLE_NONODE)
		find_node(poke); /* somebody else has poked it; or it is being made again */
	else if (answer->result != ENSEMBLE_OK)
		write_beat(poke);
	else
		end_poke(poke);
}

static void add_line(struct poke *poke, const struct ensemble_answer *answer)
{
	char data[LINES_MAX * LINE + 1];
	size_t kept = (size_t)answer->data_len / LINE * LINE;
	size_t most = (LINES_MAX - 1) * LINE;
	const char *from = answer->data;

	if (kept > most) {
		from += kept - most;
		kept = most;
	}
	if (kept > 0)
		memcpy(data, from, kept);
	snprintf(data + kept, LINE + 1, "%016" PRIx64 "\n", poke->name.taker_half);
	ask_node(poke, ensemble_set(NULL, data, kept + LINE, answer->stat->version), POKES_SUFFIX,
	         line_added);
}

static void node_found(void *ctx, const struct ensemble_answer *answer)
{
	struct poke *poke = ctx;

	if (may_be_tried_again(poke, answer))
		retry_later(poke);
	else if (answer->result == ENSEMBLE_OK)
		add_line(poke, answer);
	else
		write_beat(poke);
}

static void find_node(struct poke *poke)
{
	ask_node(poke, ensemble_get(NULL), POKES_SUFFIX, node_found);
}

struct poke *poke_make(struct lc *lc, const char *entry, const struct entry_name *name,
                       poke_done_fn *done, void *ctx)
{
	struct poke *poke = calloc(1, sizeof(*poke));

	if (!poke)
		return NULL;
	*poke = (struct poke){
		.lc = lc,
		.name = *name,
		.lock = strdup(entry),
		.root_len = strlen(lc->root),
		.done = done,
		.ctx = ctx,
		.retry = {.fire = retry_poke, .ctx = poke},
	};
	if (!poke->lock) {
		poke_free(poke);
		return NULL;
	}
	*strrchr(poke->lock, '/') = '\0';
	return poke;
}

void poke_send(struct poke *poke, int64_t until_us)
{
	struct lc *lc = poke->lc;

	poke->until_us = until_us;
	DL_APPEND(lc->pokes->under_way, poke);
	if (session_is_ready(lc))
		find_node(poke);
	else
		retry_later(poke);
}
