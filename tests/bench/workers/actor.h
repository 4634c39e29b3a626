/* SPDX-License-Identifier: MIT
 *
 * actor.h - a process that takes and gives back locks on command.
 *
 * Every peer of the benchmark is such a process; peers differ in how they take a
 * lock. The commands come on stdin, one line each, and the answers go to stdout:
 *
 *     make LOCK                             made
 *     take SLOT LOCK MODE                   held SLOT BEFORE AFTER
 *     drop SLOT                             dropped SLOT BEFORE AFTER
 *     visit SLOT LOCK MODE                  both answers; dropped as soon as it is held
 *     cycles THREADS LOCKS MODE WARM RUN PAUSE
 *                                           cycles {...}
 *     count                                 count N
 *     quit
 *
 * MODE is exclusive or shared. A take waits in a thread of its own, so that answers
 * come in any order. Times are nanoseconds of CLOCK_MONOTONIC, which all processes of
 * a host share; WARM and RUN are milliseconds, PAUSE microseconds. An error is answered
 * with `failed REASON` and ends the process.
 *
 * cycles: each of THREADS threads takes and gives back one lock, the thread's number
 * modulo LOCKS, as fast as it can, with a pause after each; it counts the cycles that
 * began and ended in RUN. Actors in other languages may lack visit and count.
 */
#ifndef BENCH_ACTOR_H
#define BENCH_ACTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A session has all that one thread needs to take one lock. */
struct peer {
	const char *usage;
	void (*start)(int argc, char **argv);
	void (*make)(const char *lock);
	void *(*session_create)(const char *lock, bool shared);
	void (*session_destroy)(void *session);
	void (*take)(void *session);
	void (*drop)(void *session);
	/* Called now and then while a lock is held, or NULL. */
	void (*idle)(void *session);
	/* Notifications so far, or NULL. */
	unsigned long (*count)(void);
};

int actor_main(const struct peer *peer, int argc, char **argv);

uint64_t actor_now(void);
/* One line of answer; the newline is added. */
void actor_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void actor_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *actor_alloc(size_t size);

#endif
