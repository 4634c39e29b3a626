/* SPDX-License-Identifier: MIT
 *
 * home.c - see home.h. The addresses of servers may lead to another ensemble one day. There the
 * mount's session is over, and everything else looks as usual: a lock is free that somebody
 * holds in the right ensemble. So an ensemble has a mark, which the mount remembers: zxid, time and
 * data (a random number) of ROOT/ROOT_DIR at its creation. The mount makes a node of its
 * own in a session only after it has read the mark, so nothing is made or granted elsewhere.
 *
 *   connected, and the node of the heartbeats is there: it is written. Its name has 64 random bits,
 *                so no other ensemble has it
 *   it is not made yet, or not there:
 *     SYNC, GET of ROOT_DIR ─► the mark is the known one, or none is known      HERE
 *                           ─► another one, or no ROOT_DIR                      NOT_HERE
 *
 * A connection on which a heartbeat was answered leads home. If somebody removes the root there and
 * makes it again, the mount takes over the new mark.
 *
 * A copy of an ensemble's data has the same mark: the mount takes it for its own ensemble.
 */
#include "session/home.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NUMBER_DIGITS 16

struct lc_mark lc_mark_of(int64_t czxid, int64_t ctime_ms, const void *data, size_t len)
{
	struct lc_mark mark = {.czxid = czxid, .ctime_ms = ctime_ms};
	char digits[NUMBER_DIGITS + 1] = "";

	if (len != NUMBER_DIGITS)
		return mark;
	memcpy(digits, data, NUMBER_DIGITS);
	if (strspn(digits, "0123456789abcdef") == NUMBER_DIGITS)
		mark.number = strtoull(digits, NULL, 16);
	return mark;
}

static bool is_same_mark(const struct lc_mark *a, const struct lc_mark *b)
{
	return a->czxid == b->czxid && a->ctime_ms == b->ctime_ms && a->number == b->number;
}

#define MARK_TEXT 96

static const char *mark_text(char text[MARK_TEXT], const struct lc_mark *mark)
{
	time_t seconds = (time_t)(mark->ctime_ms / 1000);
	char when[32] = "?";
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	snprintf(text, MARK_TEXT, "made %s UTC, zxid 0x%" PRIx64 ", number %016" PRIx64, when,
	         (uint64_t)mark->czxid, mark->number);
	return text;
}

void home_met(struct lc *lc, enum lc_level level, const char *format, ...)
{
	char text[HOME_MET_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (strcmp(text, lc->home->met) == 0)
		return;
	strcpy(lc->home->met, text);
	lc_report(lc, level, "%s", text);
}

/* `there`: NULL if nothing was found. */
static void found_another(struct lc *lc, const struct lc_mark *there)
{
	const char *server = lc->ensemble->port->server(lc->ensemble);
	struct home *home = lc->home;
	char ours[MARK_TEXT], theirs[MARK_TEXT];

	mark_text(ours, &home->known);
	if (there)
		home_met(lc, LC_ERROR,
		         "%s is another ensemble: %s there: %s; ours: %s; only a restart of the "
		         "mount accepts it",
		         server, home->dir, mark_text(theirs, there), ours);
	else
		home_met(lc, LC_ERROR,
		         "%s is another ensemble, or ours without its data: we find no %s there; "
		         "ours: %s; only a restart of the mount accepts it",
		         server, home->dir, ours);
	home->elsewhere = home->strange = true;
	home->found(lc, HOME_NOT_HERE, 0);
}

bool lc_knows_mark(const struct lc *lc)
{
	return lc->home->known.czxid != 0;
}

bool lc_is_mark(const struct lc *lc, const struct lc_mark *mark)
{
	return lc_knows_mark(lc) && is_same_mark(&lc->home->known, mark);
}

bool home_may_be_elsewhere(const struct lc *lc)
{
	return lc_knows_mark(lc) && !lc->home->certain;
}

/* ---- making it ---- */

/* At the start this mount cannot be. Later no lock can be held there, and only the root's owner
 * knows whether the root comes back. */
static void root_is_missing(struct lc *lc, int err)
{
	struct home *home = lc->home;

	if (home->root == ROOT_UNKNOWN) {
		home->found(lc, HOME_UNUSABLE, err);
		return;
	}
	if (home->root != ROOT_GONE)
		lc_report(lc, LC_ERROR,
		          "somebody has removed %s: there are no locks until it is made again",
		          lc->root);
	home->root = ROOT_GONE;
	home->found(lc, HOME_LATER, 0);
}

/* The root is made in one go, from the top; EXISTS is as good as OK. */
static void dir_made(void *ctx, const struct ensemble_answer *answer)
{
	struct lc *lc = ctx;
	enum ensemble_result result = answer->result;

	if (ensemble_unanswered(answer)) {
		lc->home->found(lc, HOME_UNKNOWN, 0);
	} else if (result == ENSEMBLE_OK || result == ENSEMBLE_EXISTS) {
		home_find(lc);
	} else if (result == ENSEMBLE_NONODE) {
		root_is_missing(lc, -ENOENT);
	} else if (result == ENSEMBLE_NOCHILDREN) {
		root_is_missing(lc, -ENOTDIR);
	} else if (result == ENSEMBLE_NOAUTH) {
		lc->home->found(lc, HOME_UNUSABLE, -EACCES);
	} else {
		home_met(lc, LC_ERROR, "cannot make %s: %s", lc->home->dir, lc_why_refused(answer));
		lc->home->found(lc, HOME_LATER, 0);
	}
}

static void make_dir(struct lc *lc)
{
	char *path = lc->home->dir, number[NUMBER_DIGITS + 1];

	if (lc->config.make_root && lc->home->root == ROOT_UNKNOWN)
		for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
			*slash = '\0';
			lc_submit(lc, ensemble_create(path, NULL, 0), lc_ignore, lc);
			*slash = '/';
		}
	snprintf(number, sizeof(number), "%016" PRIx64, lc_random(lc));
	lc_submit(lc, ensemble_create(path, number, NUMBER_DIGITS), dir_made, lc);
}

/* ---- finding it ---- */

static void mark_read(struct lc *lc, const struct lc_mark *mark)
{
	struct home *home = lc->home;

	if (home_may_be_elsewhere(lc) && !is_same_mark(&home->known, mark)) {
		found_another(lc, mark);
		return;
	}
	home->known = *mark;
	home->looked = true;
	home->found(lc, HOME_HERE, 0);
}

static void dir_read(void *ctx, const struct ensemble_answer *answer)
{
	struct lc *lc = ctx;
	enum ensemble_result result = answer->result;
	struct lc_mark mark;

	if (ensemble_unanswered(answer)) {
		lc->home->found(lc, HOME_UNKNOWN, 0);
	} else if (result == ENSEMBLE_OK) {
		mark = lc_mark_of(answer->stat->czxid, answer->stat->ctime_ms, answer->data,
		                  (size_t)answer->data_len);
		mark_read(lc, &mark);
	} else if (result != ENSEMBLE_NONODE && result != ENSEMBLE_NOAUTH) {
		home_met(lc, LC_WARNING, "the ensemble refuses to show %s", lc->home->dir);
		lc->home->found(lc, HOME_LATER, 0);
	} else if (home_may_be_elsewhere(lc)) {
		found_another(lc, NULL);
	} else if (result == ENSEMBLE_NONODE) {
		make_dir(lc);
	} else {
		lc->home->found(lc, HOME_UNUSABLE, -EACCES);
	}
}

/* A server that lags may not know ROOT_DIR before the sync. */
void home_find(struct lc *lc)
{
	lc_submit(lc, ensemble_sync(lc->home->dir), lc_ignore, lc);
	lc_submit(lc, ensemble_get(lc->home->dir), dir_read, lc);
}

void home_connected(struct lc *lc)
{
	lc->home->certain = lc->home->looked = lc->home->strange = false;
}

void home_missed(struct lc *lc)
{
	lc->home->looked = false;
	lc->home->strange = true;
}

void home_proved(struct lc *lc)
{
	struct home *home = lc->home;

	if (home->root == ROOT_GONE)
		lc_report(lc, LC_NOTICE, "%s is there again", lc->root);
	home->root = ROOT_GOOD;
	home->certain = true;
	home->elsewhere = false;
	home->met[0] = '\0';
}

/* ---- the object ---- */

int home_begin(struct lc *lc, home_found_fn *found)
{
	lc->home->found = found;
	lc->home->dir = path_join(lc->root, ROOT_DIR);
	return lc->home->dir ? 0 : -ENOMEM;
}

void home_free(struct lc *lc)
{
	free(lc->home->dir);
}

void home_save_load(struct codec *codec, struct lc *lc)
{
	struct home *home = lc->home;

	CODEC_ENUM(codec, home->root, ROOT_GONE);
	CODEC_RANGE(codec, home->known.czxid, home->root != ROOT_UNKNOWN, INT64_MAX);
	CODEC_64(codec, home->known.ctime_ms);
	CODEC_64(codec, home->known.number);
}
