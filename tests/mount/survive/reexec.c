/* SPDX-License-Identifier: MIT
 *
 * A program that takes a lock, and executes itself again and again while it holds it: each time
 * the engine and its session go on. See reexec.py.
 *
 *   reexec SERVERS TIMES   prints a line for each program: "held TOKEN", or "lost"
 *
 * Before it executes itself it stops, until it gets SIGCONT.
 */
#include "host/clock.h"
#include "lockcore.h"
#include "port/ensemble_zookeeper.h"
#include "store/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND INT64_C(1000000)
#define PATIENCE_US (30 * SECOND)

static bool is_told, is_lost;

static void require(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static int64_t clock_us(void *ctx)
{
	(void)ctx;
	return clock_now_us();
}

static int64_t wall_ms(void *ctx)
{
	(void)ctx;
	return clock_read_ns(CLOCK_REALTIME) / 1000000;
}

static void random_bytes(void *ctx, void *ret_bytes, size_t len)
{
	(void)ctx;
	require(getrandom(ret_bytes, len, 0) == (ssize_t)len, "getrandom");
}

static void report(void *ctx, enum lc_level level, const char *text)
{
	(void)ctx;
	(void)level;
	fprintf(stderr, "%s\n", text);
}

static void taken(void *ctx, int err)
{
	(void)ctx;
	require(err == 0 && !is_told, "taken() again, or an error");
	is_told = true;
}

static void lost(void *ctx)
{
	(void)ctx;
	is_lost = true;
}

static bool holds_or_lost(struct lc *lc, struct lc_taker *taker)
{
	return is_lost || (is_told && lc_ready(lc) && lc_holds(taker));
}

static bool has_left(struct lc *lc, struct lc_taker *taker)
{
	(void)taker;
	return lc_idle(lc);
}

static void run_until(struct lc *lc, struct lc_taker *taker,
                      bool (*done)(struct lc *lc, struct lc_taker *taker))
{
	int64_t end_us = clock_now_us() + PATIENCE_US;

	while (!done(lc, taker)) {
		struct pollfd pollfd;
		int64_t wait_us = lc_prepare(lc, &pollfd);

		require(clock_now_us() < end_us, "nothing happens");
		if (wait_us > SECOND)
			wait_us = SECOND;
		(void)poll(&pollfd, pollfd.fd >= 0, (int)(wait_us / 1000 + (wait_us % 1000 > 0)));
		if (pollfd.fd < 0)
			pollfd.revents = 0;
		lc_process(lc, pollfd.revents);
		lc_send(lc);
	}
}

/* The sockets that the program before has left open. */
static struct records records;

static int count_sockets(void)
{
	DIR *fds = opendir("/proc/self/fd");
	const struct dirent *item;
	int count = 0;

	require(fds, "/proc/self/fd");
	while ((item = readdir(fds)))
		if (item->d_name[0] != '.') {
			struct stat status;

			if (fstat(atoi(item->d_name), &status) == 0)
				count += S_ISSOCK(status.st_mode);
		}
	closedir(fds);
	return count;
}

static void go_on_in_another(struct lc *lc, struct lc_taker *taker, const char *servers, int times)
{
	char fd_text[16], times_text[16], id_text[32];

	lc_record(lc);
	records_write(&records);
	require(!records.codec.failed && store_commit(records.store) == 0, "the records");
	snprintf(fd_text, sizeof(fd_text), "%d", store_fd(records.store));
	snprintf(times_text, sizeof(times_text), "%d", times - 1);
	snprintf(id_text, sizeof(id_text), "%" PRIu64, lc_taker_id(taker));
	require(fcntl(store_fd(records.store), F_SETFD, 0) == 0, "fcntl");
	require(raise(SIGSTOP) == 0, "raise");
	execl("/proc/self/exe", "reexec", servers, times_text, fd_text, id_text, (char *)NULL);
	require(false, "execl");
}

static struct lc_taker *adopt(const struct lc_config *config, struct ensemble *ensemble,
                              const char *id, struct lc **ret_lc)
{
	struct codec codec = {.loads = true};
	struct lc_taker *taker;

	require(lc_adopt(config, ensemble, &codec, ret_lc) == 0, "lc_adopt");
	taker = lc_claim(*ret_lc, strtoull(id, NULL, 10), taken, lost, NULL);
	require(taker, "lc_claim");
	lc_claimed(*ret_lc);
	is_told = true;
	return taker;
}

static void begin_records(const char *fd)
{
	struct store *store;
	const char *why;

	if (fd)
		require(store_open(atoi(fd), &store, &why) == 0, "store_open");
	else
		require(store_create(&store, &(const char *){NULL}) == 0, "store_create");
	records.memory = &store_memory;
	records.store = store;
}

int main(int argc, char *argv[])
{
	struct lc_config config = {
		.root = "/locks",
		.make_root = true,
		.host = "reexec",
		.session_timeout_us = 4 * SECOND,
		.tick_time_us = SECOND / 2,
		.without = {.mode = 0755, .lock_file_mode = 0600},
		.clock_us = clock_us,
		.wall_ms = wall_ms,
		.random = random_bytes,
		.report = report,
		.records = &records,
	};
	struct lc_request request = {
		.lock = "build", .wait_us = LC_FOREVER, .pid = getpid(), .command = "reexec"};
	struct ensemble *ensemble;
	struct lc_taker *taker;
	struct lc *lc;
	int times;

	require(argc >= 3, "usage: reexec SERVERS TIMES");
	times = atoi(argv[2]);
	require(count_sockets() == 0, "a socket was handed on");
	require(ensemble_zookeeper_create(argv[1], NULL, clock_us, NULL, &ensemble) == 0, "port");
	begin_records(argc > 4 ? argv[3] : NULL);
	if (argc > 4) {
		taker = adopt(&config, ensemble, argv[4], &lc);
	} else {
		require(lc_create(&config, ensemble, &lc) == 0, "lc_create");
		require(lc_take(lc, &request, taken, lost, NULL, &taker) == 0, "lc_take");
	}
	run_until(lc, taker, holds_or_lost);
	if (is_lost)
		printf("lost\n");
	else
		printf("held %" PRIx64 "\n", (uint64_t)lc_token(taker));
	fflush(stdout);
	if (times > 0 && !is_lost)
		go_on_in_another(lc, taker, argv[1], times);
	lc_leave(taker);
	run_until(lc, taker, has_left);
	lc_destroy(lc, true);
	ensemble_zookeeper_destroy(ensemble);
	return 0;
}
