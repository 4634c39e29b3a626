/* SPDX-License-Identifier: MIT
 *
 * postgres.c - a row of a unique name, inserted and never committed: postgres CONNINFO
 *
 * Another insert of the same name waits until the transaction ends; the server ends
 * it when the connection is closed.
 */
#include "actor.h"

#include <postgresql/libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

struct session {
	PGconn *conn;
	char insert[128];
};

static const char *conninfo;

static void must(PGconn *conn, const char *command)
{
	PGresult *result = PQexec(conn, command);

	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		actor_fail("%s: %s", command, PQerrorMessage(conn));
	PQclear(result);
}

static PGconn *open_connection(void)
{
	PGconn *conn = PQconnectdb(conninfo);

	if (PQstatus(conn) != CONNECTION_OK)
		actor_fail("postgres: %s", PQerrorMessage(conn));
	must(conn, "SET client_min_messages = error");
	return conn;
}

static void *session_create(const char *lock, bool shared)
{
	struct session *session = actor_alloc(sizeof(*session));

	if (shared)
		actor_fail("exclusive only");
	snprintf(session->insert, sizeof(session->insert), "BEGIN; INSERT INTO locks VALUES ('%s')",
	         lock);
	session->conn = open_connection();
	return session;
}

static void session_destroy(void *argument)
{
	struct session *session = argument;

	PQfinish(session->conn);
	free(session);
}

static void make(const char *lock)
{
	PGconn *conn = open_connection();

	(void)lock;
	must(conn, "CREATE TABLE IF NOT EXISTS locks (name text PRIMARY KEY)");
	PQfinish(conn);
}

static void take(void *argument)
{
	struct session *session = argument;

	must(session->conn, session->insert);
}

static void drop(void *argument)
{
	struct session *session = argument;

	must(session->conn, "ROLLBACK");
}

static void start(int argc, char **argv)
{
	if (argc != 2)
		actor_fail("usage: postgres CONNINFO");
	conninfo = argv[1];
}

int main(int argc, char **argv)
{
	static const struct peer postgres = {
		.usage = "postgres CONNINFO",
		.start = start,
		.make = make,
		.session_create = session_create,
		.session_destroy = session_destroy,
		.take = take,
		.drop = drop,
	};

	return actor_main(&postgres, argc, argv);
}
