/* SPDX-License-Identifier: MIT
 *
 * redis.c - SET NX PX and a script that deletes what is ours: redis HOST PORT
 *
 * A lock that another process has is tried again every millisecond: there is no queue.
 */
#include "actor.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define TTL_MS 10000
#define RETRY_US 1000

static const char RELEASE[] = "if redis.call('get', KEYS[1]) == ARGV[1] then return "
			      "redis.call('del', KEYS[1]) end return 0";

struct session {
	redisContext *redis;
	char lock[64];
	char owner[33];
	char script[64];
};

static const char *host;
static int port;

static redisReply *must(struct session *session, void *reply)
{
	redisReply *answer = reply;

	if (!answer)
		actor_fail("redis: %s", session->redis->errstr);
	if (answer->type == REDIS_REPLY_ERROR)
		actor_fail("redis: %s", answer->str);
	return answer;
}

static void *session_create(const char *lock, bool shared)
{
	struct session *session = actor_alloc(sizeof(*session));
	unsigned char random[16];
	redisReply *reply;

	if (shared)
		actor_fail("exclusive only");
	snprintf(session->lock, sizeof(session->lock), "%s", lock);
	getrandom(random, sizeof(random), 0);
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(session->owner + 2 * i, 3, "%02x", random[i]);
	session->redis = redisConnect(host, port);
	if (!session->redis || session->redis->err)
		actor_fail("redis: no connection");
	reply = must(session, redisCommand(session->redis, "SCRIPT LOAD %s", RELEASE));
	snprintf(session->script, sizeof(session->script), "%s", reply->str);
	freeReplyObject(reply);
	return session;
}

static void session_destroy(void *argument)
{
	struct session *session = argument;

	redisFree(session->redis);
	free(session);
}

static void make(const char *lock)
{
	(void)lock;
}

static void take(void *argument)
{
	struct session *session = argument;

	for (;;) {
		redisReply *reply =
			must(session, redisCommand(session->redis, "SET %s %s NX PX %d",
		                                   session->lock, session->owner, TTL_MS));
		bool got = reply->type == REDIS_REPLY_STATUS;

		freeReplyObject(reply);
		if (got)
			return;
		usleep(RETRY_US);
	}
}

static void drop(void *argument)
{
	struct session *session = argument;

	freeReplyObject(
		must(session, redisCommand(session->redis, "EVALSHA %s 1 %s %s", session->script,
	                                   session->lock, session->owner)));
}

static void start(int argc, char **argv)
{
	if (argc != 3)
		actor_fail("usage: redis HOST PORT");
	host = argv[1];
	port = atoi(argv[2]);
}

int main(int argc, char **argv)
{
	static const struct peer redis = {
		.usage = "redis HOST PORT",
		.start = start,
		.make = make,
		.session_create = session_create,
		.session_destroy = session_destroy,
		.take = take,
		.drop = drop,
	};

	return actor_main(&redis, argc, argv);
}
