/* SPDX-License-Identifier: MIT
 *
 * scout.c - see scout.h. The C client has one session at a time and cannot be asked for another
 * one, so the two packets of ZooKeeper's protocol that a scout needs are written here.
 */
#include "port/scout.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void scout_init(struct scout *scout)
{
	*scout = (struct scout){.fd = -1};
}

static void lose(struct scout *scout, bool turned_away)
{
	if (scout->fd >= 0)
		close(scout->fd);
	scout_init(scout);
	scout->state = SCOUT_LOST;
	scout->turned_away = turned_away;
}

void scout_send(struct scout *scout, int like)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);

	scout_end(scout);
	if (getpeername(like, (struct sockaddr *)&address, &len) == 0)
		scout->fd =
			socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (scout->fd < 0 ||
	    (connect(scout->fd, (struct sockaddr *)&address, len) < 0 && errno != EINPROGRESS))
		lose(scout, /* turned_away = */ false);
	else
		scout->state = SCOUT_CONNECTING;
}

short scout_interest(const struct scout *scout)
{
	return scout->state == SCOUT_CONNECTING ? POLLOUT : POLLIN;
}

/* A ConnectRequest, with numbers in the order of the network: length, version, the newest zxid
 * seen (8 bytes), the timeout, the session's id (8 bytes), the length of the password, the
 * password (16 bytes), and whether a server that can only read will do. The server raises the
 * timeout to the shortest that it grants. */
static void ask(struct scout *scout)
{
	enum { LENGTH = 4 + 8 + 4 + 8 + 4 + 16 + 1 };
	unsigned char request[4 + LENGTH] = {[3] = LENGTH, [19] = 1, [31] = 16};
	struct pollfd pollfd = {.fd = scout->fd, .events = POLLOUT};

	if (poll(&pollfd, 1, 0) <= 0)
		return;
	if (send(scout->fd, request, sizeof(request), MSG_NOSIGNAL) != (ssize_t)sizeof(request))
		lose(scout, /* turned_away = */ false);
	else
		scout->state = SCOUT_ASKING;
}

static void hear(struct scout *scout)
{
	ssize_t n = recv(scout->fd, scout->answer + scout->len, SCOUT_ANSWER - scout->len, 0);
	uint32_t words[3], length; /* length, version, timeout; as in SCOUT_ANSWER */

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		lose(scout, /* turned_away = */ true);
		return;
	}
	scout->len += (unsigned)n;
	if (scout->len < SCOUT_ANSWER)
		return;
	memcpy(words, scout->answer, sizeof(words));
	length = ntohl(words[0]);
	if ((length == 36 || length == 37) && words[1] == 0 && (int32_t)ntohl(words[2]) > 0)
		scout->state = SCOUT_BACK;
	else
		lose(scout, /* turned_away = */ true);
}

void scout_step(struct scout *scout)
{
	if (scout->state == SCOUT_CONNECTING)
		ask(scout);
	if (scout->state == SCOUT_ASKING)
		hear(scout);
}

void scout_end(struct scout *scout)
{
	/* A request of length 8: number 1, type -11, which ends the session. */
	static const unsigned char farewell[] = {0, 0, 0, 8, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xf5};

	unsigned char rest[64];

	if (scout->state == SCOUT_BACK) {
		/* What is left unread would reset the connection, and the farewell with it. */
		(void)!recv(scout->fd, rest, sizeof(rest), 0);
		(void)!send(scout->fd, farewell, sizeof(farewell), MSG_NOSIGNAL);
	}
	if (scout->fd >= 0)
		close(scout->fd);
	scout_init(scout);
}
