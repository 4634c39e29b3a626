/* SPDX-License-Identifier: MIT
 *
 * crew.h - work that may hang, done by children of which any may be given up. They take jobs
 * from one list; whoever sits at one for too long, since it hangs or is much work, is left
 * alone with it, and another one goes on with the rest.
 *
 *   crew_start() ─► crew_tend(), every CREW_TEND_US ─► ... ─► true: all done but what was left
 *
 * Time is shared among users: what one causes must not delay what another one does. Once
 * the jobs of a user have taken CREW_SHARE_US they come behind all others'; what is left of
 * all then goes on with a larger share.
 */
#ifndef FS_CREW_H
#define FS_CREW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CREW_TEND_US 2000
/* A job of this length is left to the child that does it. If that only waits, for the processor
 * too, it goes on beside others; once it has used so much more CPU time, it runs behind them. */
#define CREW_PATIENCE_US 20000
#define CREW_LEFT_BESIDE_US 100000
#define CREW_SHARE_US 50000
/* A child that was left is killed when it has used so much CPU time in all. */
#define CREW_LEFT_CPU_S 10
/* Left alone with a job, at one time: beyond that the one that sits there for longest is killed,
 * and its job is not done. */
#define CREW_LEFT_MAX 64
/* At work at one time. */
#define CREW_WORKERS_MAX 8
#define CREW_JOBS_MAX (1 << 18)

struct job {
	pid_t pid; /* what it looks at; no second child is sent there while one is left with it */
	uid_t uid; /* whose time it takes */
};

/* Both are called in a child, which forked from the caller at crew_start() or later. */
typedef void crew_do_fn(void *ctx, size_t index, pid_t pid);
/* Must not wait. */
typedef uid_t crew_whose_fn(void *ctx, pid_t pid);

struct crew;

/* NULL: no memory. All of it ends with its process. */
struct crew *crew_create(void *ctx);
/* Of CREW_JOBS_MAX, to be filled in before crew_start(), after crew_stop(). */
struct job *crew_jobs(struct crew *crew);
/* How children run, those at work and those to come; not those that are left alone with a job. */
enum crew_rank {
	CREW_ORDINARY, /* as everybody; at first */
	CREW_FIRST,    /* with a larger part of the time than others, who go on, too */
	CREW_REALTIME, /* before all others but those of a higher real-time priority: the caller */
};
#define CREW_REALTIME_PRIORITY 1
void crew_rank(struct crew *crew, enum crew_rank rank);
/* `whose` tells the jobs' users, unless they stand there already: NULL. */
void crew_start(struct crew *crew, crew_do_fn *work, crew_whose_fn *whose, size_t count);
/* True: nobody is at work any more but who was left. */
bool crew_tend(struct crew *crew);
/* Whoever is at work stops. Those who were left go on. */
void crew_stop(struct crew *crew);
/* How many sit alone with a job. */
int crew_left(const struct crew *crew);

#endif
