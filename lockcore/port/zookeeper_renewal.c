/* SPDX-License-Identifier: MIT
 *
 * zookeeper_renewal.c - see zookeeper_port.h. The request that takes a session to a server, its
 * renewal, is held back until the server is known to answer:
 *
 *   new connection --> [HELD] --told: events->renews()--> [TOLD] --next process()--> leaves
 *
 * The client sends the request from zookeeper_process() alone, so it is held back by not calling
 * that. TOLD lasts a turn: the caller records what it was told before the request can leave.
 *
 * A scout goes first. A server that stands still would carry the request out later, whatever has
 * happened meanwhile, so a silent server gets none. The request leaves without a scout if that
 * costs nothing: there is no lease to lose, or no more of it than a silent server would leave.
 */
#include "port/zookeeper_port.h"

#include <poll.h>
#include <sys/socket.h>

/* A server that has turned a scout away may turn away the next one, too. */
#define SCOUT_PAUSE_US 250000
/* How often it is looked at what the renewal costs. */
#define LOOK_US 50000

void renewal_begin(struct zookeeper *zk)
{
	renewal_end(zk);
	if (zk->events->renews && zoo_client_id(zk->handle)->client_id != 0)
		zk->renewal.state = RENEWAL_HELD;
}

void renewal_end(struct zookeeper *zk)
{
	zk->renewal.state = RENEWAL_NONE;
	scout_end(&zk->renewal.scout);
}

void renewal_turned_away(struct zookeeper *zk)
{
	const char *server = zoo_get_current_server(zk->handle);

	if (!zk->dropped) {
		zk->in_callback = true;
		zk->events->turned_away(zk->ctx, server ? server : "-");
		zk->in_callback = false;
	}
	zk->dropped = false;
}

/* Events of poll(2) that the client's socket has now. */
static short happened(const struct zookeeper *zk)
{
	struct pollfd pollfd = {.fd = zk->fd, .events = POLLOUT | POLLRDHUP};

	return poll(&pollfd, 1, 0) > 0 ? pollfd.revents : 0;
}

static bool costs(struct zookeeper *zk)
{
	bool does;

	zk->in_callback = true;
	does = zk->events->renewal_costs(zk->ctx) > 0;
	zk->in_callback = false;
	return does;
}

static void announce(struct zookeeper *zk)
{
	scout_end(&zk->renewal.scout);
	zk->renewal.state = RENEWAL_TOLD;
	zk->renewal.connect_us = zk->clock_us(zk->clock_ctx);
	zk->in_callback = true;
	zk->events->renews(zk->ctx);
	zk->in_callback = false;
}

/* False: the scout is lost. */
static bool scout(struct zookeeper *zk)
{
	struct scout *scout = &zk->renewal.scout;

	if (scout->state == SCOUT_IDLE && zk->clock_us(zk->clock_ctx) >= zk->renewal.scout_us)
		scout_send(scout, zk->fd);
	scout_step(scout);
	return scout->state != SCOUT_LOST;
}

bool renewal_waits(struct zookeeper *zk)
{
	struct renewal *renewal = &zk->renewal;
	short events;

	if (renewal->state == RENEWAL_TOLD)
		renewal->state = RENEWAL_NONE;
	if (renewal->state == RENEWAL_NONE)
		return false;
	events = happened(zk);
	if (zk->dropped || zk->check || events & (POLLERR | POLLHUP | POLLRDHUP)) {
		renewal_end(zk);
		return false;
	}
	if (!(events & POLLOUT)) {
		return true;
	} else if (!costs(zk) || renewal->scout.state == SCOUT_BACK) {
		announce(zk);
	} else if (!scout(zk)) {
		renewal->scout_us = zk->clock_us(zk->clock_ctx) + SCOUT_PAUSE_US;
		if (renewal->scout.turned_away)
			renewal_turned_away(zk);
		zk->dropped = true;
		shutdown(zk->fd, SHUT_RDWR);
		renewal_end(zk);
		return false;
	}
	return true;
}

int64_t renewal_poll(const struct zookeeper *zk, struct pollfd *ret_pollfd)
{
	const struct scout *scout = &zk->renewal.scout;

	if (scout->state == SCOUT_CONNECTING || scout->state == SCOUT_ASKING)
		*ret_pollfd = (struct pollfd){.fd = scout->fd, .events = scout_interest(scout)};
	else if (happened(zk) & POLLOUT) /* for the next scout */
		ret_pollfd->fd = -1;
	return LOOK_US;
}
