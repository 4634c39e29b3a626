/* SPDX-License-Identifier: MIT
 *
 * mailbox.c - how a mount hears that somebody has evicted one of its takers.
 *
 * Each mount has an ephemeral node for this beside that of its heartbeats, and watches it. Who
 * evicts adds a letter by compare-and-set (ask/evict.c), in the transaction that marks the entry.
 * The mount reads the entries that the letters name, for the marks tell who has evicted. Then it
 * empties the mailbox. So a letter that is there is not done yet, and nothing about letters is
 * remembered, neither from connection to connection nor for the next process.
 *
 *   a new connection in the same session:
 *     the first write is answered -> the mailbox is read -> the named entries are asked for
 *        -> the session is ready: the second write, listings and all else come behind that
 *
 * All entries are asked for where a letter may be missing: the mailbox had to be made anew, it
 * cannot be read or made, or mounts of the former version have left letters out of a full one.
 */
#include "session/mailbox.h"

#include "pure/letters.h"

#include <string.h>

void mailbox_connected(struct lc *lc)
{
	lc->session->mailbox.there = lc->session->mailbox.asked = false;
}

/* The former version remembers more. It takes from this record that it has to read all entries, and
 * makes the mailbox if it does not find one. */
void mailbox_save_load(struct codec *codec)
{
	int32_t version = 0;
	bool unread = true, made = true;

	CODEC_INT(codec, version);
	CODEC_BOOL(codec, unread);
	CODEC_BOOL(codec, made);
}

/* ---- reading ---- */

static void open_letters(struct lc *lc, const void *letters, size_t len, bool all)
{
	lc->session->mailbox.len = len;
	lc->session->events->letters(lc, letters, len, all);
	if (lc->session->state == LC_SUSPENDED)
		lc->session->mailbox.opened(lc);
}

static void make_mailbox(struct lc *lc);

static void mailbox_was_read(void *ctx, const struct ensemble_answer *answer)
{
	struct lc *lc = ctx;
	struct session_mailbox *mailbox = &lc->session->mailbox;
	size_t len = (size_t)answer->data_len;
	bool all;

	mailbox->asked = false;
	if (answer->result == ENSEMBLE_OK) {
		all = mailbox->is_new || letters_are_full(len);
		mailbox->there = true;
		mailbox->is_new = false;
		mailbox->version = answer->stat->version;
		open_letters(lc, answer->data, len, all);
	} else if (answer->result == ENSEMBLE_NONODE) {
		make_mailbox(lc);
	} else if (!ensemble_unanswered(answer)) { /* it is read after the next heartbeat */
		open_letters(lc, NULL, 0, /* all = */ true);
	}
}

static void watch_mailbox(struct lc *lc)
{
	lc->session->mailbox.asked = true;
	lc_submit(lc, ensemble_watch(lc->session->mailbox.path), mailbox_was_read, lc);
}

static void mailbox_was_made(void *ctx, const struct ensemble_answer *answer)
{
	struct lc *lc = ctx;
	struct session_mailbox *mailbox = &lc->session->mailbox;

	mailbox->asked = false;
	mailbox->is_new |= answer->result == ENSEMBLE_OK;
	if (answer->result == ENSEMBLE_OK || answer->result == ENSEMBLE_EXISTS)
		watch_mailbox(lc);
	else if (!ensemble_unanswered(answer))
		open_letters(lc, NULL, 0, /* all = */ true);
}

static void make_mailbox(struct lc *lc)
{
	lc->session->mailbox.asked = true;
	lc_submit(lc, ensemble_create_ephemeral(lc->session->mailbox.path, NULL, 0),
	          mailbox_was_made, lc);
}

void session_read_mailbox(struct lc *lc)
{
	if (!lc->session->mailbox.asked && !lc->session->mailbox.there)
		watch_mailbox(lc);
}

void session_letters_done(struct lc *lc)
{
	struct session_mailbox *mailbox = &lc->session->mailbox;

	if (mailbox->len == 0)
		return;
	mailbox->len = 0;
	/* If another letter has come meanwhile, this write fails by its version. The event of that
	 * letter comes before the answer, and has the mailbox read again. */
	lc_submit(lc, ensemble_set(mailbox->path, "", 0, mailbox->version), lc_ignore, lc);
}

bool mailbox_changed(struct lc *lc, const char *path, enum ensemble_change change)
{
	if (strcmp(path, lc->session->mailbox.path) != 0)
		return false;
	if (change == ENSEMBLE_DELETED)
		lc->session->mailbox.there = false;
	else
		watch_mailbox(lc);
	return change == ENSEMBLE_DELETED;
}
