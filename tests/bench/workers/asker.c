/* SPDX-License-Identifier: MIT
 *
 * asker.c - one user does one thing to a mount for a while, and prints figures:
 *
 *     asker UID wait FILE COUNT              COUNT threads wait at a lock file, until killed
 *     asker UID KIND LOCK COUNT SECONDS      COUNT threads ask, one question after the other
 *     asker UID take LOCK COUNT SECONDS      COUNT threads take and give back, with a pause
 *
 * KIND: holder (read it), pollpri (on a descriptor that holds), stat (a name that is not in the
 * queue), ls (the queue), mix (each thread another one of these). Or a write, each thread
 * in a lock of its own below LOCK: mkdir (and rmdir), chmod, value, reason, fsync, cycle
 * (take it and give it back), writes (each thread another one of these). It prints `ready`,
 * waits for a line on stdin, and prints its figures in the end: `least` is how often the thread
 * was served that was served least often.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES (64 * 1024)
#define TAKE_PAUSE_US 2000
#define TAKES_MAX 100000
#define ERRNO_MAX 140

static const char *path, *kind;
static atomic_bool over;
static atomic_long done, failed[ERRNO_MAX];
static int held = -1;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t takes[TAKES_MAX];
static size_t take_count;
static long *served; /* by thread */

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "asker: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void count(bool ok)
{
	if (ok)
		done++;
	else
		failed[errno < ERRNO_MAX ? errno : 0]++;
}

/* ---- what is done ---- */

static bool read_holder(void)
{
	char name[256], text[4096];
	int fd, error;
	bool ok;

	snprintf(name, sizeof(name), "%s/holder", path);
	fd = open(name, O_RDONLY);
	if (fd < 0)
		return false;
	ok = read(fd, text, sizeof(text)) > 0;
	error = errno;
	close(fd);
	errno = error;
	return ok;
}

static bool poll_held(void)
{
	struct pollfd pfd = {.fd = held, .events = POLLPRI};

	return poll(&pfd, 1, 0) >= 0 && !(pfd.revents & POLLERR);
}

static bool stat_missing(unsigned number)
{
	char name[256];
	struct stat st;

	snprintf(name, sizeof(name), "%s/queue/1%09u-exclusive-1-nobody", path, number);
	return stat(name, &st) < 0 && errno == ENOENT;
}

static bool list_queue(void)
{
	char name[256];
	bool any = false;
	DIR *dir;

	snprintf(name, sizeof(name), "%s/queue", path);
	dir = opendir(name);
	if (!dir)
		return false;
	errno = 0;
	while (readdir(dir))
		any = true;
	closedir(dir);
	return any && errno == 0;
}

static bool ask_once(const char *what, unsigned number)
{
	if (strcmp(what, "holder") == 0)
		return read_holder();
	if (strcmp(what, "pollpri") == 0)
		return poll_held();
	if (strcmp(what, "stat") == 0)
		return stat_missing(number);
	return list_queue();
}

static const char *const writes[] = {"mkdir", "chmod", "value", "reason", "fsync", "cycle"};
#define WRITES (sizeof(writes) / sizeof(writes[0]))

static bool is_write(const char *what)
{
	bool is = strcmp(what, "writes") == 0;

	for (size_t i = 0; i < WRITES; i++)
		is |= strcmp(what, writes[i]) == 0;
	return is;
}

static void own_lock(char *ret_name, size_t size, unsigned number, const char *file)
{
	snprintf(ret_name, size, "%s/own%u%s", path, number, file);
}

static bool write_value(const char *name, unsigned turn)
{
	int fd = open(name, O_WRONLY), error;
	char text[16];
	ssize_t n;

	if (fd < 0)
		return false;
	n = write(fd, text, (size_t)snprintf(text, sizeof(text), "%u", turn));
	error = errno;
	close(fd);
	errno = error;
	return n > 0;
}

static bool write_once(const char *what, unsigned number, unsigned turn, int fd)
{
	char name[256], text[32];

	if (strcmp(what, "mkdir") == 0) {
		own_lock(name, sizeof(name), number, "/x");
		return (mkdir(name, 0755) == 0 || errno == EEXIST) && rmdir(name) == 0;
	}
	if (strcmp(what, "chmod") == 0) {
		own_lock(name, sizeof(name), number, "");
		return chmod(name, turn % 2 ? 0755 : 0711) == 0;
	}
	if (strcmp(what, "value") == 0) {
		own_lock(name, sizeof(name), number, "/value");
		return write_value(name, turn);
	}
	if (strcmp(what, "reason") == 0)
		return pwrite(fd, text, (size_t)snprintf(text, sizeof(text), "turn %u", turn), 0) >
		       0;
	if (strcmp(what, "fsync") == 0)
		return fsync(fd) == 0;
	own_lock(name, sizeof(name), number, "/lock");
	fd = open(name, O_RDWR);
	return fd >= 0 && close(fd) == 0;
}

/* Holds its own lock, if that is needed. */
static int hold_own(const char *what, unsigned number)
{
	char name[256];
	int fd;

	if (!is_write(what) || strcmp(what, "cycle") == 0)
		return -1;
	own_lock(name, sizeof(name), number, "/lock");
	fd = open(name, O_RDWR);
	if (fd < 0)
		fail(name);
	return fd;
}

static void *ask(void *arg)
{
	static const char *const kinds[] = {"holder", "pollpri", "stat", "ls"};
	unsigned number = (unsigned)(uintptr_t)arg;
	const char *mine = strcmp(kind, "mix") == 0      ? kinds[number % 4]
	                   : strcmp(kind, "writes") == 0 ? writes[number % WRITES]
	                                                 : kind;
	int fd = hold_own(mine, number);

	for (unsigned turn = 0; !over; turn++) {
		bool ok = is_write(mine) ? write_once(mine, number, turn, fd)
		                         : ask_once(mine, number);

		count(ok);
		served[number] += ok;
	}
	return NULL;
}

/* Every tenth take is by `try`: no other thread wants the lock. */
static void *take(void *arg)
{
	char names[2][256];

	snprintf(names[0], sizeof(names[0]), "%s/lock", path);
	snprintf(names[1], sizeof(names[1]), "%s/try", path);
	for (unsigned i = 0; !over; i++) {
		int64_t begun = now_ns();
		int fd = open(names[i % 10 == 9], O_RDWR);

		count(fd >= 0);
		if (fd >= 0) {
			pthread_mutex_lock(&mutex);
			if (take_count < TAKES_MAX)
				takes[take_count++] = now_ns() - begun;
			pthread_mutex_unlock(&mutex);
			close(fd);
		}
		usleep(TAKE_PAUSE_US);
	}
	return arg;
}

static void *wait_at(void *arg)
{
	int fd = open(path, O_RDWR);

	count(fd >= 0);
	if (fd >= 0)
		close(fd);
	return arg;
}

/* ---- the course ---- */

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static void print_figures(double seconds, int threads)
{
	long least = served[0];

	for (int i = 1; i < threads; i++)
		if (served[i] < least)
			least = served[i];
	printf("{\"done\": %ld, \"seconds\": %.3f, \"least\": %ld, \"failed\": {", (long)done,
	       seconds, least);
	for (int i = 0, n = 0; i < ERRNO_MAX; i++)
		if (failed[i])
			printf("%s\"%s\": %ld", n++ ? ", " : "", strerrorname_np(i),
			       (long)failed[i]);
	printf("}");
	pthread_mutex_lock(&mutex); /* until the end: no take is added any more */
	if (take_count > 0) {
		qsort(takes, take_count, sizeof(takes[0]), compare);
		printf(", \"p50 us\": %.0f, \"p99 us\": %.0f, \"max us\": %.0f",
		       (double)takes[take_count / 2] / 1e3,
		       (double)takes[take_count * 99 / 100] / 1e3,
		       (double)takes[take_count - 1] / 1e3);
	}
	printf("}\n");
	fflush(stdout);
}

static void start_threads(int threads, void *(*function)(void *))
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (int i = 0; i < threads; i++) {
		pthread_t thread;

		errno = pthread_create(&thread, &attr, function, (void *)(uintptr_t)i);
		if (errno)
			fail("pthread_create");
	}
}

static void wait_for_word(void)
{
	printf("ready\n");
	fflush(stdout);
	if (getchar() == EOF)
		exit(1);
}

int main(int argc, char **argv)
{
	uid_t uid = argc >= 5 ? (uid_t)atoi(argv[1]) : 0;
	bool waits = argc == 5;
	int threads = argc >= 5 ? atoi(argv[4]) : 0;
	char name[256];
	int64_t begun;

	if (argc != 5 && argc != 6) {
		fprintf(stderr, "usage: asker UID KIND PATH COUNT [SECONDS]\n");
		return 1;
	}
	kind = argv[2];
	path = argv[3];
	if (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		fail("setresuid");
	served = calloc((size_t)threads + 1, sizeof(*served));
	if (!served)
		fail("calloc");
	for (int i = 0; !waits && is_write(kind) && i < threads; i++) {
		own_lock(name, sizeof(name), (unsigned)i, "");
		if (mkdir(name, 0755) < 0 && errno != EEXIST)
			fail(name);
	}
	if (!waits && !is_write(kind) && strcmp(kind, "take") != 0) {
		/* The asker holds the lock, in front of the waiters. */
		snprintf(name, sizeof(name), "%s/lock", path);
		held = open(name, O_RDWR);
		if (held < 0)
			fail(name);
	}
	wait_for_word();
	begun = now_ns();
	start_threads(threads, waits ? wait_at : strcmp(kind, "take") == 0 ? take : ask);
	if (waits) {
		pause();
		return 0;
	}
	usleep((useconds_t)(atof(argv[5]) * 1e6));
	over = true;
	print_figures((double)(now_ns() - begun) / 1e9, threads);
	_exit(0);
}
