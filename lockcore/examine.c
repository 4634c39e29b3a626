/* SPDX-License-Identifier: MIT
 *
 * examine.c - would a mount with these options work? Without an engine, and without a change: each
 * write is a transaction that is bound to fail. It makes the node that a mount would make first,
 * and then checks a version that the root cannot have. So it goes the way of a write, through the
 * quorum and past the access rights, and leaves nothing.
 */
#include "session/base.h"
#include "session/session_lease.h"

#include "lockcore.h"
#include "port/ensemble.h"
#include "pure/lease.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

struct lc_examine {
	const struct lc_config *config;
	struct ensemble *ensemble;
	struct lc_examination result;
	char *dir;  /* ROOT/ROOT_DIR */
	char *node; /* below it, or below ROOT if there is none; NULL: not known yet */
	int64_t sent_us;
	bool connected, asked;
};

static void conclude(struct lc_examine *examine, int err)
{
	examine->result.err = err;
	examine->result.done = true;
}

static void examined_connected(void *ctx, const struct ensemble_session *session,
                               int64_t timeout_us, int64_t connect_us)
{
	struct lc_examine *examine = ctx;
	const struct lc_config *config = examine->config;

	(void)session;
	(void)connect_us;
	examine->connected = true;
	examine->asked = false;
	examine->result.session_timeout_us = timeout_us;
	examine->result.too_short =
		!lease_possible(timeout_us, config->tick_time_us, config->loss_lead_us);
	if (examine->result.too_short)
		session_report_short(config, timeout_us, config->tick_time_us);
	snprintf(examine->result.server, sizeof(examine->result.server), "%s",
	         examine->ensemble->port->server(examine->ensemble));
}

static void examined_disconnected(void *ctx)
{
	((struct lc_examine *)ctx)->connected = false;
}

static void examined_ended(void *ctx, bool refused)
{
	conclude(ctx, refused ? -EKEYREJECTED : -ECONNRESET);
}

/* Where the mount would make its node. */
static void examined_dir(void *ctx, const struct ensemble_answer *answer)
{
	struct lc_examine *examine = ctx;
	bool absent = answer->result == ENSEMBLE_NONODE;

	examine->asked = false;
	if (answer->result == ENSEMBLE_UNKNOWN || answer->result == ENSEMBLE_GONE)
		return;
	examine->node = path_join(absent ? examine->config->root : examine->dir, "examined");
	if (!examine->node)
		conclude(examine, -ENOMEM);
}

static void examined_write(void *ctx, const struct ensemble_answer *answer)
{
	struct lc_examine *examine = ctx;
	struct lc_examination *result = &examine->result;

	examine->asked = false;
	switch (answer->result) {
	case ENSEMBLE_BADVERSION: /* as meant: all but the version was good */
		result->write_us[result->writes++] =
			examine->config->clock_us(examine->config->ctx) - examine->sent_us;
		if (result->writes == LC_EXAMINE_WRITES)
			conclude(examine, 0);
		return;
	case ENSEMBLE_UNKNOWN:
	case ENSEMBLE_GONE:
		return; /* on the next connection */
	case ENSEMBLE_NONODE:
		conclude(examine, -ENOENT);
		return;
	case ENSEMBLE_NOCHILDREN:
		conclude(examine, -ENOTDIR);
		return;
	case ENSEMBLE_NOAUTH:
		conclude(examine, -EACCES);
		return;
	case ENSEMBLE_REFUSED:
		if (answer->why)
			snprintf(result->why, sizeof(result->why), "%s", answer->why);
		conclude(examine, -EIO);
		return;
	case ENSEMBLE_INVALID:
	case ENSEMBLE_OK:
	case ENSEMBLE_EXISTS:
	case ENSEMBLE_NOTEMPTY:
		conclude(examine, -EIO);
		return;
	}
}

static void ask_next(struct lc_examine *examine)
{
	struct ensemble_op ops[2];

	examine->asked = true;
	if (!examine->node) {
		ops[0] = ensemble_get(examine->dir);
		examine->ensemble->port->submit(examine->ensemble, ops, 1, examined_dir, examine);
		return;
	}
	ops[0] = ensemble_create_ephemeral(examine->node, NULL, 0);
	ops[1] = ensemble_check(examine->config->root, INT_MAX);
	examine->sent_us = examine->config->clock_us(examine->config->ctx);
	examine->ensemble->port->submit(examine->ensemble, ops, 2, examined_write, examine);
}

int lc_examine(const struct lc_config *config, struct ensemble *ensemble,
               struct lc_examine **ret_examine)
{
	static const struct ensemble_events events = {
		.connected = examined_connected,
		.disconnected = examined_disconnected,
		.ended = examined_ended,
	};
	struct lc_examine *examine;
	int r = -ENOMEM;

	if (lc_check_root(config->root))
		return -EINVAL;
	examine = calloc(1, sizeof(*examine));
	if (!examine)
		return -ENOMEM;
	examine->config = config;
	examine->ensemble = ensemble;
	examine->dir = path_join(config->root, ROOT_DIR);
	if (examine->dir)
		r = ensemble->port->open(ensemble, config->session_timeout_us, NULL, &events,
		                         examine);
	if (r < 0) {
		free(examine->dir);
		free(examine);
		return r;
	}
	*ret_examine = examine;
	return 0;
}

int64_t lc_examine_prepare(struct lc_examine *examine, struct pollfd *ret_pollfd)
{
	return examine->ensemble->port->prepare(examine->ensemble, ret_pollfd);
}

const struct lc_examination *lc_examine_process(struct lc_examine *examine, short revents)
{
	examine->ensemble->port->process(examine->ensemble, revents);
	if (examine->connected && !examine->asked && !examine->result.done)
		ask_next(examine);
	examine->ensemble->port->flush(examine->ensemble);
	return &examine->result;
}

void lc_examine_end(struct lc_examine *examine)
{
	examine->ensemble->port->close(examine->ensemble, /* end_session = */ true);
	free(examine->dir);
	free(examine->node);
	free(examine);
}
