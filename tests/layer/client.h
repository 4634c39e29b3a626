/* SPDX-License-Identifier: MIT
 *
 * client.h - plays the ZooKeeper client, for tests of the port: a test says what happens to it. It
 * asserts the rules for its use, which the real client does not check.
 */
#ifndef LAYER_CLIENT_H
#define LAYER_CLIENT_H

#include <stdbool.h>
#include <zookeeper/zookeeper.h>

struct pending;

struct _zhandle {
	watcher_fn watcher;
	void *ctx;
	int state;
	int fds[2];     /* the port's end, and the server's */
	bool silent;    /* the connection is lost, and the port was not told yet */
	bool numeric;   /* it looks up no names */
	bool authentic; /* credentials were added */
	struct pending *pending;
	clientid_t id;
	char servers[128];
};

/* What happens to the next request; HALF_WAY: refused after it was noted; FOR_GOOD: invalid. */
enum how { TAKE, REFUSE, REFUSE_HALF_WAY, REFUSE_FOR_GOOD };
extern enum how next_request;
extern zhandle_t *current;
extern int next_code;         /* of the next answer */
extern int next_state;        /* that the client tells next, instead of what it reads; or 0 */
extern bool no_socket;        /* interest fails, and gives the number of a closed socket */
extern bool noticed;          /* interest notices a lost connection, and reports it at once */
extern char client_saw[1024]; /* the requests that it has taken: a test empties it */

#endif
