/* SPDX-License-Identifier: MIT
 *
 * core.c - the engine as one object: making it, and the order of one turn.
 *
 *   lc_process():  answers and events of the port -> due timers
 *                  -> listings wanted in this turn -> callbacks to the face
 *                  -> what only wants to know, behind all that is for the locks
 *
 * Callbacks come last, so that nothing they do can meet half-changed state.
 */
#include "engine.h"
#include "poke.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t lc_now(struct lc *lc)
{
	return lc->config.clock_us(lc->config.ctx);
}

uint64_t lc_random(struct lc *lc)
{
	uint64_t bits;

	lc->config.random(lc->config.ctx, &bits, sizeof(bits));
	return bits;
}

void lc_report(struct lc *lc, enum lc_level level, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	lc->config.report(lc->config.ctx, level, text);
}

#define QUIET_US (10 * 1000000LL)

bool lc_is_due(struct lc *lc, int64_t *said_us)
{
	if (*said_us != 0 && lc_now(lc) - *said_us < QUIET_US)
		return false;
	*said_us = lc_now(lc);
	return true;
}

void lc_submit(struct lc *lc, const struct ensemble_op *ops, int count, ensemble_answer_fn *answer,
               void *ctx)
{
	batch_send(lc);
	lc_submit_beside(lc, ops, count, answer, ctx);
}

void lc_submit_beside(struct lc *lc, const struct ensemble_op *ops, int count,
                      ensemble_answer_fn *answer, void *ctx)
{
	lc->counters.requests++;
	lc->ensemble->port->submit(lc->ensemble, ops, count, answer, ctx);
}

void lc_ignore(void *ctx, const struct ensemble_answer *answer)
{
	(void)ctx;
	(void)answer;
}

char *lc_join(const char *directory, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", directory, name) < 0 ? NULL : path;
}

char *lc_path(struct lc *lc, const char *lock)
{
	return *lock ? lc_join(lc->root, lock) : strdup(lc->root);
}

/* ---- the object ---- */

static bool valid_root(const char *root)
{
	size_t len = strlen(root);
	const char *why;

	if (len < 2 || root[0] != '/' || root[len - 1] == '/' || len > LC_PATH_MAX)
		return false;
	if (strcmp(root, "/zookeeper") == 0 || strncmp(root, "/zookeeper/", 11) == 0)
		return false;
	for (const char *name = root + 1;; name = strchr(name, '/') + 1) {
		char part[LC_NAME_MAX + 1];
		size_t n = strcspn(name, "/");

		if (n == 0 || n > LC_NAME_MAX)
			return false;
		memcpy(part, name, n);
		part[n] = '\0';
		/* "/locks" and "/try" are fine for a root; only the characters matter. */
		if (lc_check_name(part, &why) < 0 && (part[0] == '.' || strstr(why, "ZooKeeper")))
			return false;
		if (name[n] == '\0')
			return true;
	}
}

int lc_create(const struct lc_config *config, struct ensemble *ensemble, struct lc **ret_lc)
{
	struct lc *lc;
	int r;

	if (!valid_root(config->root) || !config->host || config->session_timeout_us <= 0 ||
	    config->tick_time_us <= 0)
		return -EINVAL;
	lc = calloc(1, sizeof(*lc));
	if (!lc)
		return -ENOMEM;
	lc->config = *config;
	lc->ensemble = ensemble;
	name_host(lc->host, config->host);
	lc->root = strdup(config->root);
	asking_begin(lc);
	r = lc->root ? session_begin(lc) : -ENOMEM;
	if (r < 0) {
		free(lc->root);
		free(lc);
		return r;
	}
	*ret_lc = lc;
	return 0;
}

void lc_destroy(struct lc *lc, bool farewell)
{
	struct lc_taker *taker, *next;

	if (!lc)
		return;
	lc->dying = true;
	calls_finish(lc);
	/* Answers what is outstanding, and ends every entry. */
	session_finish(lc, farewell);
	asking_finish(lc);
	evictions_finish(lc);
	pokes_finish(lc);
	HASH_ITER(hh, lc->takers, taker, next)
		if (taker->state != TAKER_LEFT)
			lc_leave(taker);
	assert(!lc->locks && !lc->takers && !lc->due && !lc->timers && !lc->calls && !lc->orphans && !lc->unwatches &&
	       !lc->stirred && !lc->pokes && !lc->shares && lc->entry_bytes == 0 && lc->watch_bytes == 0);
	free(lc->root);
	free(lc);
}

int64_t lc_prepare(struct lc *lc, struct pollfd *ret_pollfd)
{
	int64_t wait = lc->ensemble->port->prepare(lc->ensemble, ret_pollfd);

	if (lc->timers) {
		int64_t left = lc->timers->at_us - lc_now(lc);

		if (left < wait)
			wait = left;
	}
	if (asking_wait(lc) < wait)
		wait = asking_wait(lc);
	if (lc->due || wait < 0)
		wait = 0;
	return wait;
}

void lc_process(struct lc *lc, short revents)
{
	/* Whom a release has handed the lock does not wait for the network. */
	takers_tell(lc);
	lc->ensemble->port->process(lc->ensemble, revents);
	takers_tell(lc);
	asking_tell(lc);   /* before their time is up */
	timers_run(lc);
	locks_flush(lc);
	takers_tell(lc);
	attend_tell(lc);
	locks_flush(lc);
	asking_send(lc);
}

void lc_drain(struct lc *lc)
{
	struct lc_taker *taker, *next;

	lc->draining = true;
	HASH_ITER(hh, lc->takers, taker, next)
		if (taker->state == TAKER_WAITING)
			taker_fail(taker, -ESHUTDOWN);
}

void lc_forfeit(struct lc *lc)
{
	struct lc_taker *taker, *next;

	HASH_ITER(hh, lc->takers, taker, next) {
		if (taker->state != TAKER_HELD)
			continue;
		taker->forfeited = true;
		taker_lose(taker);
	}
	lc_drain(lc);   /* those who had not been told that they hold, too */
}

bool lc_idle(const struct lc *lc)
{
	return lc->holders == 0 && !lc->takers && !lc->due;
}

bool lc_doubted(struct lc *lc)
{
	return session_doubted(lc);
}

bool lc_ready(const struct lc *lc)
{
	return session_ready(lc);
}

const char *lc_host(const struct lc *lc)
{
	return lc->host;
}

int lc_why(const struct lc *lc)
{
	return lc->session.why;
}

const char *lc_state_name(enum lc_state state)
{
	switch (state) {
	case LC_CONNECTING: return "connecting";
	case LC_READY: return "ready";
	case LC_SUSPENDED: return "suspended";
	case LC_UNUSABLE: return "unusable";
	}
	return "?";
}

void lc_status(struct lc *lc, struct lc_status *ret_status)
{
	const struct session *session = &lc->session;
	unsigned leaving = 0, losing = 0, entries = 0;

	for (struct lc_taker *taker = lc->takers; taker; taker = taker->hh.next) {
		leaving += !taker_wants(taker);
		losing += taker->state == TAKER_LOST && !taker->lost_done;
		entries += taker->znode != ZNODE_ABSENT;
	}
	*ret_status = (struct lc_status){
		.state = session->state, .why = session->why, .session = session->id,
		.session_timeout_us = session->lease.timeout_us,
		.tick_time_us = lc->config.tick_time_us,
		.lease_left_us = lease_left(&session->lease, lc_now(lc)),
		.server = lc->ensemble->port->server(lc->ensemble),
		.holders = lc->holders, .waiters = lc->waiters, .losing = losing,
		.leaving = leaving, .entries = entries,
		.entry_bytes = lc->entry_bytes,
		.connections = session->connections, .sessions = session->sessions,
		.counters = lc->counters,
	};
}
