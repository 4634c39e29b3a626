/* SPDX-License-Identifier: MIT
 *
 * actor.c - the commands of actor.h; knows nothing of any peer.
 */
#include "actor.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Enough for the client libraries; ten thousand of them are no burden. */
#define STACK_BYTES (96 * 1024)
#define LOCK_NAME_MAX 64

static const struct peer *peer;
static pthread_attr_t thread_attributes;
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

uint64_t actor_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void say(const char *format, va_list args)
{
	pthread_mutex_lock(&output);
	vprintf(format, args);
	putchar('\n');
	fflush(stdout);
	pthread_mutex_unlock(&output);
}

void actor_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

void actor_fail(const char *format, ...)
{
	char reason[512];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	actor_say("failed %s", reason);
	_exit(1);
}

void *actor_alloc(size_t size)
{
	void *memory = calloc(1, size);

	if (!memory)
		actor_fail("no memory");
	return memory;
}

static void thread_start(pthread_t *thread, void *(*run)(void *), void *argument)
{
	int err = pthread_create(thread, &thread_attributes, run, argument);

	if (err)
		actor_fail("pthread_create: %s", strerror(err));
}

/* ---- slots: one lock taken, held until told ---- */

struct slot {
	unsigned number;
	char lock[LOCK_NAME_MAX];
	bool shared, told;
	pthread_mutex_t mutex;
	pthread_cond_t change;
};

static struct slot **slots;
static unsigned slots_length;

/* Waits for a second at most. */
static bool slot_told(struct slot *slot)
{
	struct timespec until;
	bool told;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	pthread_mutex_lock(&slot->mutex);
	if (!slot->told)
		pthread_cond_timedwait(&slot->change, &slot->mutex, &until);
	told = slot->told;
	pthread_mutex_unlock(&slot->mutex);
	return told;
}

static void *slot_run(void *argument)
{
	struct slot *slot = argument;
	void *session = peer->session_create(slot->lock, slot->shared);
	uint64_t before = actor_now(), after;

	peer->take(session);
	after = actor_now();
	actor_say("held %u %llu %llu", slot->number, (unsigned long long)before,
	          (unsigned long long)after);
	while (!slot_told(slot))
		if (peer->idle)
			peer->idle(session);
	before = actor_now();
	peer->drop(session);
	after = actor_now();
	actor_say("dropped %u %llu %llu", slot->number, (unsigned long long)before,
	          (unsigned long long)after);
	peer->session_destroy(session);
	free(slot);
	return NULL;
}

static void slot_take(unsigned number, const char *lock, bool shared, bool visit)
{
	struct slot *slot = actor_alloc(sizeof(*slot));
	pthread_t thread;

	if (number >= slots_length) {
		slots = realloc(slots, (number + 1) * sizeof(struct slot *));
		if (!slots)
			actor_fail("no memory");
		slots_length = number + 1;
	}
	slot->number = number;
	slot->shared = shared;
	slot->told = visit;
	snprintf(slot->lock, sizeof(slot->lock), "%s", lock);
	pthread_mutex_init(&slot->mutex, NULL);
	pthread_cond_init(&slot->change, NULL);
	/* A visitor's thread frees it at any time. */
	slots[number] = visit ? NULL : slot;
	thread_start(&thread, slot_run, slot);
	pthread_detach(thread);
}

static void slot_drop(unsigned number)
{
	struct slot *slot = number < slots_length ? slots[number] : NULL;

	if (!slot)
		actor_fail("no slot %u", number);
	/* Its thread frees it. */
	slots[number] = NULL;
	pthread_mutex_lock(&slot->mutex);
	slot->told = true;
	pthread_cond_signal(&slot->change);
	pthread_mutex_unlock(&slot->mutex);
}

/* ---- cycles: as fast as it goes ---- */

struct cycler {
	void *session;
	pthread_t thread;
	const uint64_t *window; /* when the run begins, when it ends */
	pthread_barrier_t *barrier;
	useconds_t pause_us;
	uint64_t *takes, *drops; /* durations */
	size_t length, room;
};

static void cycler_note(struct cycler *cycler, uint64_t take, uint64_t drop)
{
	if (cycler->length == cycler->room) {
		cycler->room = cycler->room ? 2 * cycler->room : 4096;
		cycler->takes = realloc(cycler->takes, cycler->room * sizeof(uint64_t));
		cycler->drops = realloc(cycler->drops, cycler->room * sizeof(uint64_t));
		if (!cycler->takes || !cycler->drops)
			actor_fail("no memory");
	}
	cycler->takes[cycler->length] = take;
	cycler->drops[cycler->length++] = drop;
}

static void *cycler_run(void *argument)
{
	struct cycler *cycler = argument;
	uint64_t began, held, leaving, gone;

	pthread_barrier_wait(cycler->barrier);
	do {
		began = actor_now();
		peer->take(cycler->session);
		held = leaving = actor_now();
		peer->drop(cycler->session);
		gone = actor_now();
		if (began >= cycler->window[0] && gone <= cycler->window[1])
			cycler_note(cycler, held - began, gone - leaving);
		if (cycler->pause_us)
			usleep(cycler->pause_us);
	} while (gone < cycler->window[1]);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t part(const uint64_t *sorted, size_t length, double p)
{
	return length ? sorted[(size_t)(p * (double)(length - 1))] : 0;
}

static void cycles_report(struct cycler *cyclers, unsigned threads, double seconds)
{
	size_t total = 0, at = 0, least = SIZE_MAX, most = 0;
	uint64_t *takes, *drops;

	for (unsigned i = 0; i < threads; i++) {
		total += cyclers[i].length;
		least = cyclers[i].length < least ? cyclers[i].length : least;
		most = cyclers[i].length > most ? cyclers[i].length : most;
	}
	takes = actor_alloc((total + 1) * sizeof(uint64_t));
	drops = actor_alloc((total + 1) * sizeof(uint64_t));
	for (unsigned i = 0; i < threads; i++) {
		if (cyclers[i].length) {
			memcpy(takes + at, cyclers[i].takes, cyclers[i].length * sizeof(uint64_t));
			memcpy(drops + at, cyclers[i].drops, cyclers[i].length * sizeof(uint64_t));
		}
		at += cyclers[i].length;
	}
	qsort(takes, total, sizeof(uint64_t), compare);
	qsort(drops, total, sizeof(uint64_t), compare);
	actor_say("cycles {\"cycles\": %zu, \"seconds\": %.6f, \"p50\": %llu, \"p90\": %llu, "
	          "\"p99\": %llu, "
	          "\"max\": %llu, \"drop_p50\": %llu, \"least\": %zu, \"most\": %zu}",
	          total, seconds, (unsigned long long)part(takes, total, 0.5),
	          (unsigned long long)part(takes, total, 0.9),
	          (unsigned long long)part(takes, total, 0.99),
	          (unsigned long long)part(takes, total, 1),
	          (unsigned long long)part(drops, total, 0.5), least, most);
	free(takes);
	free(drops);
}

static void cycles(unsigned threads, unsigned locks, bool shared, unsigned warm_ms, unsigned run_ms,
                   unsigned pause_us)
{
	struct cycler *cyclers = actor_alloc(threads * sizeof(*cyclers));
	pthread_barrier_t barrier;
	uint64_t window[2];
	char lock[LOCK_NAME_MAX];

	pthread_barrier_init(&barrier, NULL, threads + 1);
	for (unsigned i = 0; i < threads; i++) {
		snprintf(lock, sizeof(lock), "bench%u", i % locks);
		cyclers[i] = (struct cycler){.session = peer->session_create(lock, shared),
		                             .window = window,
		                             .barrier = &barrier,
		                             .pause_us = pause_us};
	}
	window[0] = actor_now() + (uint64_t)warm_ms * 1000000u;
	window[1] = window[0] + (uint64_t)run_ms * 1000000u;
	for (unsigned i = 0; i < threads; i++)
		thread_start(&cyclers[i].thread, cycler_run, &cyclers[i]);
	pthread_barrier_wait(&barrier);
	for (unsigned i = 0; i < threads; i++)
		pthread_join(cyclers[i].thread, NULL);
	cycles_report(cyclers, threads, run_ms / 1e3);
	for (unsigned i = 0; i < threads; i++) {
		peer->session_destroy(cyclers[i].session);
		free(cyclers[i].takes);
		free(cyclers[i].drops);
	}
	pthread_barrier_destroy(&barrier);
	free(cyclers);
}

/* ---- commands ---- */

static void obey(const char *line)
{
	char lock[LOCK_NAME_MAX], mode[16];
	unsigned number, threads, locks, warm_ms, run_ms, pause_us;

	if (sscanf(line, "make %63s", lock) == 1) {
		peer->make(lock);
		actor_say("made");
	} else if (sscanf(line, "take %u %63s %15s", &number, lock, mode) == 3) {
		slot_take(number, lock, !strcmp(mode, "shared"), false);
	} else if (sscanf(line, "visit %u %63s %15s", &number, lock, mode) == 3) {
		slot_take(number, lock, !strcmp(mode, "shared"), true);
	} else if (sscanf(line, "drop %u", &number) == 1) {
		slot_drop(number);
	} else if (sscanf(line, "cycles %u %u %15s %u %u %u", &threads, &locks, mode, &warm_ms,
	                  &run_ms, &pause_us) == 6) {
		cycles(threads, locks, !strcmp(mode, "shared"), warm_ms, run_ms, pause_us);
	} else if (!strcmp(line, "count\n") && peer->count) {
		actor_say("count %lu", peer->count());
	} else {
		actor_fail("what is %s", line);
	}
}

int actor_main(const struct peer *the_peer, int argc, char **argv)
{
	struct rlimit files;
	char line[256];

	peer = the_peer;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	pthread_attr_init(&thread_attributes);
	pthread_attr_setstacksize(&thread_attributes, STACK_BYTES);
	if (argc < 2) {
		fprintf(stderr, "usage: %s\n", peer->usage);
		return 2;
	}
	peer->start(argc, argv);
	actor_say("ready");
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "quit\n") != 0)
		obey(line);
	/* Held locks are given back by the end of the process. */
	_exit(0);
}
