/* SPDX-License-Identifier: MIT
 *
 * crew.h - work that may hang, done by children of which any may be given up. They take jobs
 * from one list. A child that needs too long for a job, since it hangs or is much work, is left
 * alone with it, and another child goes on with the rest.
 *
 *   crew_start() ─► crew_tend(), every CREW_TEND_US ─► ... ─► true: all done but what was left
 *
 * Time is shared among users: the jobs of one user must not delay those of another. When the
 * jobs of a user have taken CREW_SHARE_US, the rest of them come behind those of all others.
 * When such jobs alone are left, they go on with a larger share.
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
#define CREW_JOB_US 20000
#define CREW_LEFT_BESIDE_US 100000
#define CREW_SHARE_US 50000
/* A child that was left is killed when it has used so much CPU time in all. */
#define CREW_LEFT_CPU_S 10
/* So many children may be left alone with a job at a time. Beyond that the child that was left
 * first is killed, and its job is not done. */
#define CREW_LEFT_MAX 64
/* At work at one time. */
#define CREW_WORKERS_MAX 8
#define CREW_JOBS_MAX (1 << 18)

struct job {
	pid_t pid; /* the process to look at; only one child at a time looks at it */
	uid_t uid; /* the user whose time it takes */
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
	CREW_FIRST,    /* with a larger part of the time than others, which go on, too */
	CREW_REALTIME, /* before all others but those of a higher real-time priority: the caller */
};
#define CREW_REALTIME_PRIORITY 1
void crew_rank(struct crew *crew, enum crew_rank rank);
/* `whose` gives the jobs' users; NULL if they are set already. */
void crew_start(struct crew *crew, crew_do_fn *work, crew_whose_fn *whose, size_t count);
/* True: no child is at work any more, except for those that were left. */
bool crew_tend(struct crew *crew);
/* The children that are at work stop. Children that were left go on. */
void crew_stop(struct crew *crew);
/* How many children were left alone with a job. */
int crew_left(const struct crew *crew);
/* How many children were ended by a signal of others, or since they had used too much time. */
unsigned long crew_ended(const struct crew *crew);

#endif
