/* SPDX-License-Identifier: MIT
 *
 * scanners.h - work that may hang, done by children of which any may be given up. They take jobs
 * from one list. A child that needs too long for a job, since it hangs or is much work, is left
 * alone with it, and another child goes on with the rest.
 *
 *   scanners_start() ─► scanners_tend(), again and again ─► true: all done but what was left
 *
 * Time is shared among users: the jobs of one user must not delay those of another. When the
 * jobs of a user have taken SCANNERS_SHARE_US, the rest of them come behind those of all others.
 * When such jobs alone are left, they go on with a larger share.
 */
#ifndef FS_SCANNERS_H
#define FS_SCANNERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SCANNERS_TEND_US 2000
/* A job of this length is left to the child that does it. If that only waits, for the processor
 * too, it goes on beside others; once it has used so much more CPU time, it runs behind them. */
#define SCANNERS_JOB_US 20000
#define SCANNERS_LEFT_BESIDE_US 100000
#define SCANNERS_SHARE_US 50000
/* A child that was left is killed when it has used so much CPU time in all. */
#define SCANNERS_LEFT_CPU_S 10
/* So many children may be left alone with a job at a time. Beyond that the child that was left
 * first is killed, and its job is not done. */
#define SCANNERS_LEFT_MAX 64
/* At work at one time. */
#define SCANNERS_WORKERS_MAX 8
#define SCANNERS_JOBS_MAX (1 << 18)

struct job {
	pid_t pid; /* the process to look at; only one child at a time looks at it */
	uid_t uid; /* the user whose time it takes */
};

/* Both are called in a child, which forked from the caller at scanners_start() or later. */
typedef void scanners_do_fn(void *ctx, size_t index, pid_t pid);
/* Must not wait. */
typedef uid_t scanners_whose_fn(void *ctx, pid_t pid);

struct scanners;

/* NULL: no memory. All of it ends with its process. */
struct scanners *scanners_create(void *ctx);
/* Of SCANNERS_JOBS_MAX, to be filled in before scanners_start(), after scanners_stop(). */
struct job *scanners_jobs(struct scanners *scanners);
/* How children run, those at work and those to come; not those that are left alone with a job. */
enum scanners_rank {
	SCANNERS_ORDINARY, /* as everybody; at first */
	SCANNERS_FIRST,    /* with a larger part of the time than others, which go on, too */
	/* before all others but those of a higher real-time priority: the caller */
	SCANNERS_REALTIME,
};
#define SCANNERS_REALTIME_PRIORITY 1
void scanners_rank(struct scanners *scanners, enum scanners_rank rank);
/* `whose` gives the jobs' users; NULL if they are set already. */
void scanners_start(struct scanners *scanners, scanners_do_fn *work, scanners_whose_fn *whose,
                    size_t count);
/* True: no child is at work any more, except for those that were left. */
bool scanners_tend(struct scanners *scanners);
/* The children that are at work stop. Children that were left go on. */
void scanners_stop(struct scanners *scanners);
/* How many children were left alone with a job. */
int scanners_left(const struct scanners *scanners);
/* How many children were ended by a signal of others, or since they had used too much time. */
unsigned long scanners_ended(const struct scanners *scanners);

#endif
