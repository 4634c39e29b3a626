/* SPDX-License-Identifier: MIT
 *
 * scout.h - does a server take sessions right now? The scout asks it for a short session of the
 * scout's own, and ends that at once.
 *
 *   [IDLE] --scout_send()--> [CONNECTING] --connected--> [ASKING] --granted--> [BACK]
 *                                  |                         |
 *                                  '--------- failed --------'-------------> [LOST]
 *
 * A session is granted when a quorum has agreed to it (but for local sessions), so a granted
 * scout shows that the server, its leader and a quorum are at work. The answer is no evidence for
 * any lease: the next connection to the same address may lead to another server.
 *
 * Nothing here waits: the caller polls scout->fd for scout_interest(), and calls scout_step().
 */
#ifndef LOCKCORE_SCOUT_H
#define LOCKCORE_SCOUT_H

#include <stdbool.h>

enum scout_state { SCOUT_IDLE, SCOUT_CONNECTING, SCOUT_ASKING, SCOUT_BACK, SCOUT_LOST };

/* What of an answer is read: its length, the version of the protocol, the timeout. */
#define SCOUT_ANSWER 12

struct scout {
	enum scout_state state;
	int fd;           /* CONNECTING, ASKING, BACK; else -1 */
	bool turned_away; /* LOST: the server took the connection, and closed it or refused */
	unsigned char answer[SCOUT_ANSWER];
	unsigned len; /* so much of it has come */
};

void scout_init(struct scout *scout);
/* To the address that the socket `like` is connected to. */
void scout_send(struct scout *scout, int like);
/* Events of poll(2). */
short scout_interest(const struct scout *scout);
void scout_step(struct scout *scout);
/* Ends its session if it has one, and makes it IDLE. */
void scout_end(struct scout *scout);

#endif
