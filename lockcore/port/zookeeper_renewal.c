/* SPDX-License-Identifier: MIT
 *
 * zookeeper_renewal.c - see zookeeper_port.h. The request that takes a session to a server, its
 * renewal, is held back until the server is known to answer:
 *
 *   new connection --> [HELD] --told: events->renews()--> [TOLD] --next process()--> leaves
 *                        | scout                 ^
 *                        '------> [SCOUTED] -----'
 *
 * The client sends the request from zookeeper_process() alone, so it is held back by not calling
 * that. TOLD lasts a turn: the caller records what it was told before the request can leave.
 *
 * A scout goes first if the caller wants one. A server that stands still would carry the request
 * out later, whatever has happened meanwhile, so a server that is silent to the scout gets none.
 * A server that begins to serve closes the connections that had come before, at their first
 * request, and one whose queue of connections was full does not know them. So the connection only
 * tells which server is the next one: the request leaves on another, begun when the scout is back.
 * Servers that turn scouts away for a minute, but not the client, may have a limit of connections:
 * then the request leaves without a scout.
 */
#include "port/zookeeper_port.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* A server that has turned a scout away may turn away the next one, too. */
#define SCOUT_PAUSE_US 250000
/* So long scouts are turned away before the request leaves without one. */
#define SCOUT_PATIENCE_US 60000000

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

	if (!zk->dropped && zk->events->turned_away)
		zk->events->turned_away(zk->ctx, server ? server : "-");
	zk->dropped = false;
}

/* Events of poll(2) that the client's socket has now. */
static short happened(const struct zookeeper *zk)
{
	struct pollfd pollfd = {.fd = zk->fd, .events = POLLOUT | POLLRDHUP};

	(void)poll(&pollfd, 1, 0);
	return pollfd.revents;
}

static void announce(struct zookeeper *zk)
{
	scout_end(&zk->renewal.scout);
	zk->renewal.state = RENEWAL_TOLD;
	zk->renewal.connect_us = zk->clock_us(zk->clock_ctx);
	zk->events->renews(zk->ctx);
}

static bool is_patient(const struct zookeeper *zk, int64_t now_us)
{
	int64_t since_us = zk->renewal.refused_us;

	return since_us == 0 || now_us - since_us < SCOUT_PATIENCE_US;
}

/* Whether the server, to which the client is connected, answers. */
enum scout_news { NEWS_NONE, NEWS_GOOD, NEWS_BAD };

/* The client's connection is closed: its socket is another one. The client has sent nothing on it,
 * and does not notice. */
static void park(struct zookeeper *zk)
{
	int family = AF_UNSPEC, on = 1, fd;
	socklen_t len = sizeof(family);

	(void)getsockopt(zk->fd, SOL_SOCKET, SO_DOMAIN, &family, &len);
	fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)dup3(fd, zk->fd, O_CLOEXEC);
	close(fd);
}

/* Connects to the server from which the scout is back. */
static void connect_anew(struct zookeeper *zk)
{
	struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
	socklen_t len = sizeof(address);

	(void)getpeername(zk->renewal.scout.fd, (struct sockaddr *)&address, &len);
	(void)connect(zk->fd, (struct sockaddr *)&address, len);
	scout_end(&zk->renewal.scout);
	zk->renewal.state = RENEWAL_SCOUTED;
}

static enum scout_news scout(struct zookeeper *zk)
{
	struct scout *scout = &zk->renewal.scout;
	int64_t now_us = zk->clock_us(zk->clock_ctx);

	if (scout->state == SCOUT_IDLE && !is_patient(zk, now_us))
		return NEWS_GOOD;
	if (scout->state == SCOUT_IDLE && now_us >= zk->renewal.scout_us) {
		scout_send(scout, zk->fd);
		park(zk);
	}
	scout_step(scout);
	if (scout->state == SCOUT_BACK)
		return NEWS_GOOD;
	if (scout->state != SCOUT_LOST)
		return NEWS_NONE;
	zk->renewal.scout_us = now_us + SCOUT_PAUSE_US;
	if (scout->turned_away && zk->renewal.refused_us == 0)
		zk->renewal.refused_us = now_us;
	return NEWS_BAD;
}

/* The client finds out by reading, and goes to the next server. */
static void give_up(struct zookeeper *zk)
{
	shutdown(zk->fd, SHUT_RDWR);
	renewal_end(zk);
}

static enum scout_news news_of(struct zookeeper *zk)
{
	if (zk->renewal.state == RENEWAL_SCOUTED)
		return NEWS_GOOD;
	if (zk->renewal.scout.state == SCOUT_IDLE && !zk->events->needs_scout(zk->ctx))
		return NEWS_GOOD;
	return scout(zk);
}

bool renewal_waits(struct zookeeper *zk)
{
	struct renewal *renewal = &zk->renewal;
	enum scout_news news;
	short events;

	if (renewal->state == RENEWAL_TOLD)
		renewal->state = RENEWAL_NONE;
	if (renewal->state == RENEWAL_NONE)
		return false;
	events = POLLOUT;
	if (renewal->scout.state == SCOUT_IDLE)
		events = happened(zk);
	if (zk->dropped || zk->check || events & (POLLERR | POLLHUP | POLLRDHUP)) {
		give_up(zk);
		return false;
	}
	if (!(events & POLLOUT))
		return true;
	news = news_of(zk);
	if (news == NEWS_GOOD && renewal->scout.state == SCOUT_BACK) {
		connect_anew(zk);
	} else if (news == NEWS_GOOD) {
		announce(zk);
	} else if (news == NEWS_BAD) {
		if (renewal->scout.turned_away)
			renewal_turned_away(zk);
		zk->dropped = true;
		give_up(zk);
	}
	return news != NEWS_BAD;
}

int64_t renewal_poll(const struct zookeeper *zk, struct pollfd *ret_pollfd)
{
	const struct renewal *renewal = &zk->renewal;
	int64_t pause_us = renewal->scout_us - zk->clock_us(zk->clock_ctx);

	if (zk->dropped)
		return 0;
	if (renewal->scout.state == SCOUT_CONNECTING || renewal->scout.state == SCOUT_ASKING)
		*ret_pollfd = (struct pollfd){.fd = renewal->scout.fd,
		                              .events = scout_interest(&renewal->scout)};
	else if (!(happened(zk) & POLLOUT))
		return INT64_MAX; /* the client's own socket */
	else if (pause_us <= 0)
		return 0;
	else
		ret_pollfd->fd = -1;
	return pause_us > 0 ? pause_us : INT64_MAX;
}
