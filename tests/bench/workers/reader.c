/* SPDX-License-Identifier: MIT
 *
 * reader.c - a holder that reads its descriptor without a pause:
 *
 *     reader FILE
 *
 * It prints `ready` once it holds, and then answers each line on stdin with one on stdout:
 *
 *     longest    the longest read since the last such line, in us, and how many reads
 *     stalled    answered when a read has not come back for STALLED_NS
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STALLED_NS 2000000
#define LOOK_US 200

static int lock_file;
static atomic_llong begun, longest, reads;

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "reader: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *read_on(void *arg)
{
	char token[64];

	for (begun = now_ns();; reads++) {
		int64_t end, before = begun;

		if (pread(lock_file, token, sizeof(token), 0) <= 0)
			fail("the lock is lost");
		end = now_ns();
		if (end - before > longest)
			longest = end - before;
		begun = end;
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char line[32];

	lock_file = argc == 2 ? open(argv[1], O_RDWR) : -1;
	if (lock_file < 0)
		fail(argc == 2 ? argv[1] : "usage: reader FILE");
	errno = pthread_create(&thread, NULL, read_on, NULL);
	if (errno)
		fail("pthread_create");
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, "stalled\n") == 0)
			while (now_ns() - begun < STALLED_NS)
				usleep(LOOK_US);
		printf("%lld %lld\n", (long long)longest / 1000, (long long)reads);
		fflush(stdout);
		if (strcmp(line, "longest\n") == 0)
			longest = reads = 0;
	}
	return 0;
}
