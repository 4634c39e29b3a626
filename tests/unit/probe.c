/* SPDX-License-Identifier: MIT
 *
 * What servers say of their settings, and what it means; what is met at those that are none.
 */
#include "setup/probe.h"

#include "unit.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void versions(void **state)
{
	static const struct {
		const char *a, *b;
		int order;
	} rows[] = {
		{"3.9.4", "3.9.4", 0}, {"3.8.0", "3.9.4", -1}, {"3.10.0", "3.9.4", 1},
		{"3.9", "3.9.0", 0},   {"3.9.10", "3.9.9", 1}, {"4", "3.9.4", 1},
		{"3.9.3", "3.9", 1},   {"", "0.0.1", -1},      {"3..9", "3.0.9", 0},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		expect(probe_compare_versions(rows[i].a, rows[i].b) == rows[i].order, "%s, %s",
		       rows[i].a, rows[i].b);
		expect(probe_compare_versions(rows[i].b, rows[i].a) == -rows[i].order, "%s, %s",
		       rows[i].b, rows[i].a);
	}
}

static void which_forget(void **state)
{
	(void)state;
	assert_true(probe_forgets("3.4.14"));
	assert_true(probe_forgets("3.8.4"));
	assert_true(probe_forgets("3.9.3"));
	assert_false(probe_forgets("3.9.4"));
	assert_false(probe_forgets("3.10.0"));
	assert_false(probe_forgets(""));
}

static void ticks(void **state)
{
	static const struct {
		int64_t conf, shortest, longest, tick;
		bool certain;
	} rows[] = {
		{3000, 4000, 40000, 3000, true}, /* it says so, whatever the limits are */
		{500, 0, 0, 500, true},          {0, 4000, 40000, 2000, true},
		{0, 6000, 60000, 3000, true},    {0, 4000, 60000, 2000, false},
		{0, 10000, 40000, 5000, false},  {0, 0, 0, 0, false},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct probe probe = {.tick_ms = rows[i].conf,
		                      .shortest_ms = rows[i].shortest,
		                      .longest_ms = rows[i].longest};
		bool certain;

		expect(probe_tick(&probe, &certain) == rows[i].tick, "%zu", i);
		expect(certain == rows[i].certain, "%zu", i);
	}
}

/* A server of the test: what it does with each connection. */
struct peer {
	const char *first;  /* says this at once */
	bool hangs_up;      /*   and ends the connection */
	const char *answer; /* to anything */
	bool deaf;          /* does not even look */
	enum probe_met met;
	const char *version, *mode;
	int fd;
	char address[32];
};

static void begin_peer(struct peer *peer)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
	                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);

	peer->fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(peer->fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(peer->fd, 5), 0);
	assert_int_equal(getsockname(peer->fd, (struct sockaddr *)&address, &len), 0);
	sprintf(peer->address, "127.0.0.1:%d", ntohs(address.sin_port));
}

static void serve_peer(const struct peer *peer)
{
	char question[4] = "";
	int fd;

	if (peer->deaf)
		pause();
	fd = accept(peer->fd, NULL, NULL);
	if (peer->first)
		(void)!write(fd, peer->first, strlen(peer->first));
	if (peer->hangs_up)
		_exit(0);
	for (size_t len = 0; len < 4; len++)
		if (read(fd, question + len, 1) != 1)
			_exit(1);
	if (memcmp(question, "srvr", 4) != 0)
		_exit(1);
	if (peer->answer)
		(void)!write(fd, peer->answer, strlen(peer->answer));
	_exit(0);
}

static struct peer *find_peer(struct peer *peers, size_t count, const char *address)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(peers[i].address, address) == 0)
			return &peers[i];
	fail_msg("nobody was to ask %s", address);
	return NULL;
}

static void what_is_met(void **state)
{
	struct peer peers[] = {
		{.hangs_up = true, .met = PROBE_CLOSES},
		{.met = PROBE_CLOSES}, /* when it is asked */
		{.answer = "\x15\x03\x03", .met = PROBE_SPEAKS_TLS},
		{.first = "SSH-2.0-OpenSSH_9\r\n", .met = PROBE_STRANGE},
		{.answer = "HTTP/1.1 400 Bad Request\r\n\r\n", .met = PROBE_STRANGE},
		{.answer = "This ZooKeeper instance is not currently serving requests\n",
	         .met = PROBE_NO_QUORUM},
		{.answer = "srvr is not executed because it is not in the whitelist.\n",
	         .met = PROBE_USABLE},
		{.answer =
	                 "Zookeeper version: 3.9.4-x, built on y\nMode: follower\nNode count: 4\n",
	         .met = PROBE_USABLE,
	         .version = "3.9.4",
	         .mode = "follower"},
		{.deaf = true, .met = PROBE_SILENT},
		{.address = "127.0.0.1:1", .met = PROBE_UNREACHABLE},
		{.address = "[::1]:1", .met = PROBE_UNREACHABLE},
	};
	enum { SILENT = 2 }; /* nobody is there */
	char list[LENGTH(peers) * 32] = "";
	pid_t pids[LENGTH(peers)];
	struct prober prober;
	struct probe probe;
	size_t heard = 0;

	(void)state;
	for (size_t i = 0; i < LENGTH(peers); i++) {
		if (i + SILENT < LENGTH(peers)) {
			begin_peer(&peers[i]);
			pids[i] = fork();
			if (pids[i] == 0)
				serve_peer(&peers[i]);
		}
		sprintf(list + strlen(list), "%s%s", i ? "," : "", peers[i].address);
	}
	prober_init(&prober);
	assert_int_equal(prober_begin(&prober, list, NULL), 0);
	while (prober.fd >= 0) {
		struct pollfd pollfd = {.fd = prober.fd, .events = POLLIN};

		assert_int_equal(poll(&pollfd, 1, 30000), 1);
		while (prober_read(&prober, &probe)) {
			struct peer *peer = find_peer(peers, LENGTH(peers), probe.address);

			heard++;
			expect(probe.met == peer->met, "%s: %s", probe.address, probe_text(&probe));
			assert_string_equal(probe.version, peer->version ? peer->version : "");
			assert_string_equal(probe.mode, peer->mode ? peer->mode : "");
			expect(probe.met != PROBE_UNREACHABLE || probe.error != 0, "%s",
			       probe.address);
		}
	}
	assert_int_equal(heard, LENGTH(peers));
	for (size_t i = 0; i + SILENT < LENGTH(peers); i++) {
		kill(pids[i], SIGKILL);
		close(peers[i].fd);
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions),
		cmocka_unit_test(which_forget),
		cmocka_unit_test(ticks),
		cmocka_unit_test(what_is_met),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
