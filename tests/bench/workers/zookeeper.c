/* SPDX-License-Identifier: MIT
 *
 * zookeeper.c - locks with the single-threaded C client, one session for each
 * thread, every request awaited before the next:
 *
 *     zookeeper recipe SERVERS    create an ephemeral sequential node, list, watch the
 *                                 one before; delete: ZooKeeper's recipe, nothing more
 *     zookeeper create SERVERS    the create and the delete alone: a round trip each, the
 *                                 least that any lock on an ensemble costs; excludes nobody
 *     zookeeper herd SERVERS      one ephemeral node, which all waiters watch
 */
#include "actor.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

#define SESSION_MS 15000
#define ROOT "/bench"

struct session {
	zhandle_t *zk;
	char lock[128];  /* the lock's node */
	char entry[256]; /* the node created last */
	char ahead[256]; /* recipe: the entry before ours, or empty */
	int answers, rc;
	bool event; /* a watch has fired */
};

static const char *servers;
static enum { RECIPE, CREATE, HERD } way;
static atomic_ulong notifications;

/* ---- one request at a time ---- */

static void turn(struct session *session)
{
	struct timeval left = {1, 0};
	int fd = -1, interest = 0;
	struct pollfd poll_fd;

	zookeeper_interest(session->zk, &fd, &interest, &left);
	poll_fd = (struct pollfd){.fd = fd,
	                          .events = (short)((interest & ZOOKEEPER_READ ? POLLIN : 0) |
	                                            (interest & ZOOKEEPER_WRITE ? POLLOUT : 0))};
	poll(&poll_fd, 1, (int)(left.tv_sec * 1000 + left.tv_usec / 1000 + 1));
	zookeeper_process(session->zk,
	                  (poll_fd.revents & (POLLIN | POLLERR | POLLHUP) ? ZOOKEEPER_READ : 0) |
	                          (poll_fd.revents & POLLOUT ? ZOOKEEPER_WRITE : 0));
	if (is_unrecoverable(session->zk) == ZINVALIDSTATE)
		actor_fail("the session has ended");
}

static int answer(struct session *session, int sent)
{
	if (sent != ZOK)
		actor_fail("a request: %s", zerror(sent));
	while (!session->answers)
		turn(session);
	session->answers = 0;
	return session->rc;
}

static void must(struct session *session, int sent, const char *what)
{
	int rc = answer(session, sent);

	if (rc != ZOK)
		actor_fail("%s: %s", what, zerror(rc));
}

static void answered(struct session *session, int rc)
{
	session->rc = rc;
	session->answers++;
}

static void on_done(int rc, const void *context)
{
	answered((struct session *)context, rc);
}

static void on_created(int rc, const char *name, const void *context)
{
	struct session *session = (struct session *)context;

	if (rc == ZOK)
		snprintf(session->entry, sizeof(session->entry), "%s", name);
	answered(session, rc);
}

static void on_data(int rc, const char *value, int length, const struct Stat *stat,
                    const void *context)
{
	(void)value, (void)length, (void)stat;
	answered((struct session *)context, rc);
}

static void on_stat(int rc, const struct Stat *stat, const void *context)
{
	(void)stat;
	answered((struct session *)context, rc);
}

static const char *number_of(const char *entry)
{
	size_t length = strlen(entry);

	return length > 10 ? entry + length - 10 : entry;
}

/* Finds the nearest entry before ours. */
static void on_list(int rc, const struct String_vector *names, const void *context)
{
	struct session *session = (struct session *)context;
	const char *own = number_of(session->entry), *ahead = NULL;

	for (int i = 0; rc == ZOK && i < names->count; i++) {
		const char *name = names->data[i];

		if (strcmp(number_of(name), own) < 0 &&
		    (!ahead || strcmp(number_of(name), number_of(ahead)) > 0))
			ahead = name;
	}
	session->ahead[0] = '\0';
	if (ahead)
		snprintf(session->ahead, sizeof(session->ahead), "%s/%s", session->lock, ahead);
	answered(session, rc);
}

static void on_watch(zhandle_t *zk, int type, int state, const char *path, void *context)
{
	struct session *session = context;

	(void)zk, (void)state, (void)path;
	if (type == ZOO_SESSION_EVENT)
		return;
	session->event = true;
	atomic_fetch_add(&notifications, 1);
}

/* ---- sessions ---- */

static void *session_create(const char *lock, bool shared)
{
	struct session *session = actor_alloc(sizeof(*session));

	if (shared)
		actor_fail("exclusive only");
	snprintf(session->lock, sizeof(session->lock), ROOT "/%s", lock);
	session->zk = zookeeper_init(servers, NULL, SESSION_MS, NULL, NULL, 0);
	if (!session->zk)
		actor_fail("zookeeper_init: %s", strerror(errno));
	/* Numeric addresses; by default they are resolved in every turn. */
	zoo_set_servers_resolution_delay(session->zk, -1);
	while (zoo_state(session->zk) != ZOO_CONNECTED_STATE)
		turn(session);
	return session;
}

static void session_destroy(void *argument)
{
	struct session *session = argument;

	zookeeper_close(session->zk);
	free(session);
}

static void make(const char *lock)
{
	struct session *session = session_create(lock, false);
	const char *paths[] = {ROOT, session->lock};

	for (int i = 0; i < 2; i++) {
		int rc = answer(session, zoo_acreate(session->zk, paths[i], NULL, -1,
		                                     &ZOO_OPEN_ACL_UNSAFE, 0, on_created, session));
		if (rc != ZOK && rc != ZNODEEXISTS)
			actor_fail("create %s: %s", paths[i], zerror(rc));
	}
	session_destroy(session);
}

/* ---- taking ---- */

static void wait_for_event(struct session *session)
{
	while (!session->event)
		turn(session);
}

static void create_entry(struct session *session)
{
	unsigned char id[16];
	char path[256];
	int at = snprintf(path, sizeof(path), "%s/_c_", session->lock);

	getrandom(id, sizeof(id), 0);
	for (size_t i = 0; i < sizeof(id); i++)
		at += snprintf(path + at, sizeof(path) - (size_t)at, "%02x", id[i]);
	snprintf(path + at, sizeof(path) - (size_t)at, "-lock-");
	must(session,
	     zoo_acreate(session->zk, path, NULL, -1, &ZOO_OPEN_ACL_UNSAFE,
	                 ZOO_EPHEMERAL_SEQUENTIAL, on_created, session),
	     "create");
}

static void take_in_line(struct session *session)
{
	create_entry(session);
	for (;;) {
		must(session, zoo_aget_children(session->zk, session->lock, 0, on_list, session),
		     "list");
		if (!session->ahead[0])
			return;
		session->event = false;
		int rc = answer(session, zoo_awget(session->zk, session->ahead, on_watch, session,
		                                   on_data, session));
		if (rc == ZOK)
			wait_for_event(session);
		else if (rc != ZNONODE)
			actor_fail("watch: %s", zerror(rc));
	}
}

static void take_with_herd(struct session *session)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/lock", session->lock);
	for (;;) {
		int rc = answer(session,
		                zoo_acreate(session->zk, path, NULL, -1, &ZOO_OPEN_ACL_UNSAFE,
		                            ZOO_EPHEMERAL, on_created, session));
		if (rc == ZOK)
			return;
		if (rc != ZNODEEXISTS)
			actor_fail("create: %s", zerror(rc));
		session->event = false;
		/* exists would leave a watch on a node that has gone. */
		rc = answer(session,
		            zoo_awget(session->zk, path, on_watch, session, on_data, session));
		if (rc == ZOK)
			wait_for_event(session);
		else if (rc != ZNONODE)
			actor_fail("watch: %s", zerror(rc));
	}
}

static void take(void *argument)
{
	struct session *session = argument;

	if (way == CREATE)
		create_entry(session);
	else if (way == RECIPE)
		take_in_line(session);
	else
		take_with_herd(session);
}

static void drop(void *argument)
{
	struct session *session = argument;

	must(session, zoo_adelete(session->zk, session->entry, -1, on_done, session), "delete");
}

static unsigned long count(void)
{
	return atomic_load(&notifications);
}

/* The session lives only as long as this process pings. */
static void idle(void *argument)
{
	struct session *session = argument;

	must(session, zoo_aexists(session->zk, ROOT, 0, on_stat, session), "exists");
}

static void start(int argc, char **argv)
{
	if (argc != 3)
		actor_fail("usage: zookeeper recipe|create|herd SERVERS");
	way = !strcmp(argv[1], "recipe") ? RECIPE : !strcmp(argv[1], "create") ? CREATE : HERD;
	servers = argv[2];
	zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
}

int main(int argc, char **argv)
{
	static const struct peer zookeeper = {
		.usage = "zookeeper recipe|create|herd SERVERS",
		.start = start,
		.make = make,
		.session_create = session_create,
		.session_destroy = session_destroy,
		.take = take,
		.drop = drop,
		.idle = idle,
		.count = count,
	};

	return actor_main(&zookeeper, argc, argv);
}
