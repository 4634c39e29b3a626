/* SPDX-License-Identifier: MIT
 *
 * core.c - the engine as one object: it wires the layers, and gives one turn its order.
 *
 *   lc_process():  callbacks to the frontend that are due, of so many takers in one turn: a
 *                    taker that got the lock by a hand-off does not wait for the network
 *                  -> answers and events of the port -> callbacks
 *                  -> due timers -> creates, deletes, listings of this turn -> callbacks
 *                  -> questions, behind all that is for the locks
 *   lc_send():     all requests since the last time leave
 *
 * No callback to the frontend comes from inside the call that caused it. So a callback never finds
 * half-changed state.
 */
#include "engine.h"

#include "ask/asking.h"
#include "ask/evict.h"
#include "ask/waiters.h"
#include "grant/grant.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- what the session tells ---- */

static void session_beaten(struct lc *lc, bool resumed)
{
	if (resumed) {
		watches_resume(lc);
		locks_resume(lc);
	}
	calls_resume(lc);
	session_read_mailbox(lc);
}

static void session_ended(struct lc *lc)
{
	batch_clear(lc);
	watches_clear(lc);
	locks_session_ended(lc);
}

/* Its entries go with the session. All waiters fail. */
static void session_unusable(struct lc *lc)
{
	takers_fail(lc, -ESHUTDOWN);
}

static bool session_unused(const struct lc *lc)
{
	return lc->entries->by_id.count == 0 && !lc->calls->calls;
}

static const struct session_events session_events = {
	.beaten = session_beaten,
	.letters = loss_by_letters,
	.alive = loss_of_missing,
	.extended = locks_fresh,
	.over = loss_of_lease,
	.disconnected = batch_clear,
	.ended = session_ended,
	.unusable = session_unusable,
	.unused = session_unused,
	.changed = locks_changed,
};

/* ---- the object ---- */

/* All layers' parts. */
struct engine {
	struct lc lc; /* first: lc_destroy() frees the engine by it */
	struct home home;
	struct session session;
	struct quota quota;
	struct watches watches;
	struct locks locks;
	struct entries entries;
	struct batch batch;
	struct takers takers;
	struct reads reads;
	struct calls calls;
	struct evictions evictions;
};

static struct lc *make_engine(void)
{
	struct engine *engine = calloc(1, sizeof(*engine));

	if (!engine)
		return NULL;
	engine->lc.home = &engine->home;
	engine->lc.session = &engine->session;
	engine->lc.quota = &engine->quota;
	engine->lc.watches = &engine->watches;
	engine->lc.locks = &engine->locks;
	engine->lc.entries = &engine->entries;
	engine->lc.batch = &engine->batch;
	engine->lc.takers = &engine->takers;
	engine->lc.reads = &engine->reads;
	engine->lc.calls = &engine->calls;
	engine->lc.evictions = &engine->evictions;
	return &engine->lc;
}

bool lc_knows_clients(const char *name)
{
	return clients_find(name) != NULL;
}

const char *lc_check_root(const char *root)
{
	size_t len = strlen(root);

	if (len > LC_PATH_MAX)
		return "it is too long";
	if (len < 2 || root[0] != '/')
		return "it must begin with a slash and name a sub-tree";
	if (strcmp(root, "/zookeeper") == 0 || strncmp(root, "/zookeeper/", 11) == 0)
		return "ZooKeeper keeps /zookeeper for itself";
	for (const char *name = root + 1;; name = strchr(name, '/') + 1) {
		char part[LC_NAME_MAX + 1];
		size_t n = strcspn(name, "/");

		if (n == 0)
			return "a name in it is empty";
		if (n > LC_NAME_MAX)
			return "a name in it is too long";
		memcpy(part, name, n);
		part[n] = '\0';
		/* "/locks" and "/try" are fine for a root; only the characters matter. */
		if (part[0] == '.')
			return "a name in it begins with a dot";
		if (!name_has_good_characters(part))
			return "ZooKeeper does not take a character in it";
		if (name[n] == '\0')
			return NULL;
	}
}

static void free_engine(struct lc *lc)
{
	decide_finish(lc);
	table_finish(&lc->entries->by_id);
	session_free(lc);
	free(lc->root);
	free(lc);
}

/* All but the session. */
static int prepare_engine(const struct lc_config *config, struct ensemble *ensemble,
                          struct lc **ret_lc)
{
	const struct clients *clients;
	struct lc *lc;

	if (lc_check_root(config->root) || !config->host || config->session_timeout_us <= 0 ||
	    config->tick_time_us <= 0)
		return -EINVAL;
	clients = config->clients ? clients_find(config->clients) : &clients_all[0];
	if (!clients)
		return -EINVAL;
	lc = make_engine();
	if (!lc)
		return -ENOMEM;
	lc->config = *config;
	lc->clients = clients;
	lc->ensemble = ensemble;
	name_host(lc->host, config->host);
	lc->root = strdup(config->root);
	adopt_kinds(lc);
	if (lc->root) {
		*ret_lc = lc;
		return 0;
	}
	free_engine(lc);
	return -ENOMEM;
}

int lc_create(const struct lc_config *config, struct ensemble *ensemble, struct lc **ret_lc)
{
	struct lc *lc;
	int r = prepare_engine(config, ensemble, &lc);

	if (r < 0)
		return r;
	r = session_begin(lc, &session_events);
	if (r < 0)
		free_engine(lc);
	else
		*ret_lc = lc;
	return r;
}

int lc_adopt(const struct lc_config *config, struct ensemble *ensemble, struct codec *codec,
             struct lc **ret_lc)
{
	struct lc *lc;
	int r = prepare_engine(config, ensemble, &lc);

	if (r < 0)
		return r;
	if (codec->checks)
		lc->config.records = NULL; /* its objects are no changes */
	r = adopt_records(lc, &session_events, config->records, codec);
	if (r == 0 && !codec->checks)
		*ret_lc = lc;
	else
		lc_destroy(lc, /* end_session = */ false);
	return r;
}

static bool is_empty(const struct lc *lc)
{
	const struct takers *takers = lc->takers;

	return !lc->timers.first && !lc->locks->by_path && !lc->locks->touched &&
	       lc->entries->by_id.count == 0 && lc->entries->there == 0 &&
	       lc->entries->looks == 0 && !lc->entries->writers.users && takers->waiters == 0 &&
	       takers->holders == 0 && takers->losing == 0 && !takers->waiters_changed &&
	       !lc->calls->calls && !lc->calls->changes.users && !lc->watches->unwatches &&
	       !lc->quota->users && lc->quota->entry_bytes == 0 && lc->quota->watch_bytes == 0;
}

void lc_destroy(struct lc *lc, bool end_session)
{
	struct lc_taker *taker, *next;

	if (!lc)
		return;
	lc->dying = true;
	calls_finish(lc);
	/* Answers what is outstanding, and ends every entry. */
	session_finish(lc, end_session);
	asking_finish(lc);
	evictions_finish(lc);
	TAKERS_FOREACH_SAFE(lc, taker, next)
		if (taker->state != TAKER_LEFT)
			lc_leave(taker);
	assert(is_empty(lc));
	free_engine(lc);
}

/* ---- one turn ---- */

int64_t lc_prepare(struct lc *lc, struct pollfd *ret_pollfd)
{
	int64_t wait = lc->ensemble->port->prepare(lc->ensemble, ret_pollfd);

	if (lc->timers.first) {
		int64_t left = lc->timers.first->at_us - lc_now(lc);

		if (left < wait)
			wait = left;
	}
	if (asking_wait(lc) < wait)
		wait = asking_wait(lc);
	if (lc->takers->due || wait < 0)
		wait = 0;
	return wait;
}

void lc_process(struct lc *lc, short revents)
{
	unsigned left = TOLD_PER_TURN;

	takers_tell(lc, &left);
	lc->ensemble->port->process(lc->ensemble, revents);
	takers_tell(lc, &left);
	asking_tell(lc); /* before their time is up */
	timers_run(&lc->timers, lc_now(lc));
	locks_flush(lc);
	takers_tell(lc, &left);
	waiters_tell(lc);
	locks_flush(lc);
	asking_send(lc);
}

void lc_send(struct lc *lc)
{
	lc->ensemble->port->flush(lc->ensemble);
}

/* ---- looking at it ---- */

bool lc_woken(const struct lc *lc)
{
	return lc->session->resting && !lc_ready(lc);
}

const char *lc_host(const struct lc *lc)
{
	return lc->host;
}

int lc_why(const struct lc *lc)
{
	return lc->session->why;
}

const char *lc_state_name(enum lc_state state)
{
	switch (state) {
	case LC_CONNECTING:
		return "connecting";
	case LC_READY:
		return "ready";
	case LC_SUSPENDED:
		return "suspended";
	case LC_UNUSABLE:
		return "unusable";
	}
	return "?";
}

void lc_status(struct lc *lc, struct lc_status *ret_status)
{
	const struct session *session = lc->session;
	const struct takers *takers = lc->takers;
	size_t stay = takers->holders + takers->waiters + takers->losing;

	assert(stay <= lc->entries->by_id.count);
	*ret_status = (struct lc_status){
		.state = session->state,
		.why = session->why,
		.session = session->id,
		.session_timeout_us = session->lease.timeout_us,
		.tick_time_us = session->lease.tick_us,
		.resting = session->resting && lc_ready(lc),
		.leaseless = session->lease.deadline_us == INT64_MIN &&
	                     (session->state == LC_READY || session->state == LC_SUSPENDED),
		.lease_left_us = lease_left(&session->lease, lc_now(lc)),
		.epoch = session->beat.epoch,
		.away_us = session->state == LC_READY ? -1 : session->away_us,
		.server = lc->ensemble->port->server(lc->ensemble),
		.elsewhere = lc->home->elsewhere,
		.met = lc->home->met,
		.holders = takers->holders,
		.waiters = takers->waiters,
		.losing = takers->losing,
		.leaving = (unsigned)(lc->entries->by_id.count - stay),
		.entries = lc->entries->there,
		.entry_bytes = lc->quota->entry_bytes,
		.watch_bytes = lc->quota->watch_bytes,
		.connections = session->connections,
		.sessions = session->sessions,
		.counters = lc->counters,
	};
}
