/* SPDX-License-Identifier: MIT */
#include "guard/scanners.h"

#include "host/clock.h"
#include "host/memory.h"
#include "pure/per_user.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN_MAX (SCANNERS_LEFT_MAX + SCANNERS_WORKERS_MAX)
#define USERS 4096 /* any more share a time with another */
#define SHARE_GROWS 4
#define FIRST_NICE (-20)
#define BESIDE_NICE 0
#define BEHIND_NICE 19

/* A child tells this of itself. */
struct desk {
	_Atomic int64_t since_us; /* at this job; 0: at none */
	_Atomic int job;
	_Atomic bool left; /* told: go when it is done */
};

/* Shared by all. A list that is given up in the middle may have children at it for a moment
 * more: which list it is stands beside the next job's place in it. */
struct scanners_table {
	_Atomic uint64_t next;
	uint32_t count;
	int64_t share_us;
	_Atomic uint64_t users[USERS]; /* uid + 1; 0: nobody yet */
	_Atomic int64_t used_us[USERS];
	_Atomic uint32_t deferred; /* how many of the list are for a later turn */
	struct desk desks[CHILDREN_MAX];
	struct job jobs[SCANNERS_JOBS_MAX];
	uint32_t order[SCANNERS_JOBS_MAX]; /* of this turn */
	uint32_t later[SCANNERS_JOBS_MAX]; /* of the next */
};

struct child {
	enum { CHILD_NONE, CHILD_WORKS, CHILD_LEFT, CHILD_KILLED } state;
	pid_t pid;
	pid_t at;                /* left with a job there, */
	scanners_do_fn *at_work; /*   and with this work */
	int64_t since_us;
	int64_t beside_us; /* by its CPU time: runs beside others until then */
};

struct scanners {
	struct scanners_table *table;
	void *ctx;
	scanners_do_fn *work;
	scanners_whose_fn *whose;
	uint32_t list;
	enum scanners_rank rank;
	int workers, at_work, left;
	unsigned long ended;
	struct child children[CHILDREN_MAX];
};

struct scanners *scanners_create(void *ctx)
{
	struct scanners *scanners = calloc(1, sizeof(*scanners));
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	if (!scanners)
		return NULL;
	scanners->table = memory_share(sizeof(*scanners->table));
	if (!scanners->table) {
		free(scanners);
		return NULL;
	}
	scanners->ctx = ctx;
	scanners->workers = processors < 2                      ? 2
	                    : processors > SCANNERS_WORKERS_MAX ? SCANNERS_WORKERS_MAX
	                                                        : (int)processors;
	return scanners;
}

struct job *scanners_jobs(struct scanners *scanners)
{
	return scanners->table->jobs;
}

/* ---- a child ---- */

/* Somebody does the same work there. Whoever was left at other work does not do this one. */
static bool somebody_left_there(const struct scanners *scanners, pid_t pid)
{
	for (int i = 0; scanners->left > 0 && i < CHILDREN_MAX; i++)
		if (scanners->children[i].state == CHILD_LEFT && scanners->children[i].at == pid &&
		    scanners->children[i].at_work == scanners->work)
			return true;
	return false;
}

/* The time of the user's jobs in this list. */
static _Atomic int64_t *used_by(struct scanners_table *table, uid_t job_uid)
{
	/* By the ranges of uids that were there when the guardian began. */
	uid_t uid = per_user_share(job_uid);

	for (uint32_t i = 0; i < USERS; i++) {
		uint32_t place = (uid + i) % USERS;
		uint64_t is = 0, user = (uint64_t)uid + 1;

		if (atomic_compare_exchange_strong(&table->users[place], &is, user) || is == user)
			return &table->used_us[place];
	}
	return &table->used_us[uid % USERS];
}

static void do_job(const struct scanners *scanners, struct desk *desk, uint32_t index)
{
	struct scanners_table *table = scanners->table;
	struct job *job = &table->jobs[index];
	int64_t began = clock_now_us();

	if (somebody_left_there(scanners, job->pid))
		return;
	if (scanners->whose)
		job->uid = scanners->whose(scanners->ctx, job->pid);
	if (atomic_load(used_by(table, job->uid)) > table->share_us) {
		table->later[atomic_fetch_add(&table->deferred, 1) % SCANNERS_JOBS_MAX] = index;
		return;
	}
	atomic_store(&desk->job, (int)index);
	atomic_store(&desk->since_us, began);
	scanners->work(scanners->ctx, index, job->pid);
	atomic_store(&desk->since_us, 0);
	atomic_fetch_add(used_by(table, job->uid), clock_now_us() - began);
}

static bool next_job(const struct scanners *scanners, uint32_t *ret_index)
{
	struct scanners_table *table = scanners->table;
	uint64_t next = atomic_load(&table->next);

	do {
		if (next >> 32 != scanners->list || (uint32_t)next >= table->count)
			return false;
	} while (!atomic_compare_exchange_weak(&table->next, &next, next + 1));
	*ret_index = table->order[(uint32_t)next];
	return true;
}

/* If it may. */
static void set_ordinary(pid_t pid, int nice)
{
	(void)sched_setscheduler(pid, SCHED_OTHER, &(struct sched_param){0});
	(void)setpriority(PRIO_PROCESS, (id_t)pid, nice);
}

static void set_rank(pid_t pid, enum scanners_rank rank)
{
	struct sched_param param = {.sched_priority = SCANNERS_REALTIME_PRIORITY};

	switch (rank) {
	case SCANNERS_ORDINARY:
		set_ordinary(pid, 0);
		break;
	case SCANNERS_FIRST:
		set_ordinary(pid, FIRST_NICE);
		break;
	case SCANNERS_REALTIME:
		(void)sched_setscheduler(pid, SCHED_RR, &param);
		break;
	}
}

static _Noreturn void be_a_child(const struct scanners *scanners, int number, pid_t parent)
{
	struct desk *desk = &scanners->table->desks[number];
	uint32_t index;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		while (!atomic_load(&desk->left) && next_job(scanners, &index))
			do_job(scanners, desk, index);
	_exit(0);
}

/* ---- the caller ---- */

static bool more_jobs(const struct scanners *scanners)
{
	return (uint32_t)atomic_load(&scanners->table->next) < scanners->table->count;
}

static void add_child(struct scanners *scanners, int number)
{
	pid_t parent = getpid(), pid;
	uint32_t index;

	memset(&scanners->table->desks[number], 0, sizeof(scanners->table->desks[number]));
	pid = fork();
	if (pid == 0)
		be_a_child(scanners, number, parent);
	if (pid > 0) {
		set_rank(pid, scanners->rank);
		scanners->children[number] = (struct child){.state = CHILD_WORKS, .pid = pid};
		scanners->at_work++;
		return;
	}
	/* Late is better than never. */
	while (scanners->at_work == 0 && next_job(scanners, &index))
		do_job(scanners, &scanners->table->desks[number], index);
}

static void add_children(struct scanners *scanners)
{
	for (int i = 0;
	     i < CHILDREN_MAX && scanners->at_work < scanners->workers && more_jobs(scanners); i++)
		if (scanners->children[i].state == CHILD_NONE)
			add_child(scanners, i);
}

static void count_out(struct scanners *scanners, const struct child *child)
{
	scanners->left -= child->state == CHILD_LEFT;
	scanners->at_work -= child->state == CHILD_WORKS;
}

/* Not waited for: it may be where nothing can be killed. */
static void kill_child(struct scanners *scanners, struct child *child)
{
	kill(child->pid, SIGKILL);
	count_out(scanners, child);
	child->state = CHILD_KILLED;
}

static void kill_oldest(struct scanners *scanners)
{
	struct child *oldest = NULL;

	for (int i = 0; i < CHILDREN_MAX; i++) {
		struct child *child = &scanners->children[i];

		if (child->state == CHILD_LEFT && (!oldest || child->since_us < oldest->since_us))
			oldest = child;
	}
	if (oldest)
		kill_child(scanners, oldest);
}

static int64_t cpu_us_of(pid_t pid)
{
	clockid_t id;

	return clock_getcpuclockid(pid, &id) == 0 ? clock_read_ns(id) / 1000 : 0;
}

/* Alone with its job, and its user is charged for what it has cost. */
static void leave_child(struct scanners *scanners, int number, int64_t now)
{
	struct scanners_table *table = scanners->table;
	struct desk *desk = &table->desks[number];
	const struct job *job = &table->jobs[atomic_load(&desk->job)];
	struct rlimit limit = {.rlim_cur = SCANNERS_LEFT_CPU_S, .rlim_max = SCANNERS_LEFT_CPU_S};

	atomic_store(&desk->left, true);
	set_ordinary(scanners->children[number].pid, BESIDE_NICE);
	(void)prlimit(scanners->children[number].pid, RLIMIT_CPU, &limit, NULL);
	atomic_fetch_add(used_by(table, job->uid), now - atomic_load(&desk->since_us));
	if (scanners->left >= SCANNERS_LEFT_MAX)
		kill_oldest(scanners);
	scanners->at_work--;
	scanners->left++;
	scanners->children[number].state = CHILD_LEFT;
	scanners->children[number].at = job->pid;
	scanners->children[number].at_work = scanners->work;
	scanners->children[number].since_us = now;
	scanners->children[number].beside_us =
		cpu_us_of(scanners->children[number].pid) + SCANNERS_LEFT_BESIDE_US;
}

/* It is much work, and does not only wait. */
static void put_behind(struct child *child)
{
	if (cpu_us_of(child->pid) < child->beside_us)
		return;
	set_ordinary(child->pid, BEHIND_NICE);
	child->beside_us = INT64_MAX;
}

/* Somebody has killed the child. Its job is done in the list's next turn; that of a child which was
 * left alone is not. */
static void do_again(struct scanners *scanners, int number)
{
	struct scanners_table *table = scanners->table;
	const struct desk *desk = &table->desks[number];

	scanners->ended++;
	if (scanners->children[number].state == CHILD_WORKS && atomic_load(&desk->since_us) != 0)
		table->later[atomic_fetch_add(&table->deferred, 1) % SCANNERS_JOBS_MAX] =
			(uint32_t)atomic_load(&desk->job);
}

static void tend_child(struct scanners *scanners, int number, int64_t now)
{
	struct child *child = &scanners->children[number];
	int64_t since;
	int status;

	if (child->state == CHILD_NONE)
		return;
	if (waitpid(child->pid, &status, WNOHANG) == child->pid) {
		if (WIFSIGNALED(status) && child->state != CHILD_KILLED)
			do_again(scanners, number);
		count_out(scanners, child);
		*child = (struct child){0};
		return;
	}
	since = atomic_load(&scanners->table->desks[number].since_us);
	if (child->state == CHILD_WORKS && since != 0 && now - since > SCANNERS_JOB_US)
		leave_child(scanners, number, now);
	else if (child->state == CHILD_LEFT && child->beside_us != INT64_MAX)
		put_behind(child);
}

static void begin_list(struct scanners *scanners, uint32_t count)
{
	scanners->table->count = count;
	atomic_store(&scanners->table->deferred, 0);
	atomic_store(&scanners->table->next, (uint64_t)++scanners->list << 32);
}

/* The deferred jobs, with a larger share. */
static bool next_turn(struct scanners *scanners)
{
	struct scanners_table *table = scanners->table;
	uint32_t count = atomic_load(&table->deferred);

	if (count == 0)
		return false;
	memcpy(table->order, table->later, count * sizeof(table->order[0]));
	table->share_us *= SHARE_GROWS;
	begin_list(scanners, count);
	return true;
}

void scanners_rank(struct scanners *scanners, enum scanners_rank rank)
{
	if (rank == scanners->rank)
		return;
	scanners->rank = rank;
	for (int i = 0; i < CHILDREN_MAX; i++)
		if (scanners->children[i].state == CHILD_WORKS)
			set_rank(scanners->children[i].pid, rank);
}

void scanners_start(struct scanners *scanners, scanners_do_fn *work, scanners_whose_fn *whose,
                    size_t count)
{
	struct scanners_table *table = scanners->table;

	scanners_stop(scanners);
	scanners->work = work;
	scanners->whose = whose;
	for (size_t i = 0; i < count; i++)
		table->order[i] = (uint32_t)i;
	memset(table->users, 0, sizeof(table->users));
	memset(table->used_us, 0, sizeof(table->used_us));
	table->share_us = SCANNERS_SHARE_US;
	begin_list(scanners, (uint32_t)count);
	add_children(scanners);
}

bool scanners_tend(struct scanners *scanners)
{
	int64_t now = clock_now_us();

	for (int i = 0; i < CHILDREN_MAX; i++)
		tend_child(scanners, i, now);
	if (scanners->at_work == 0 && !more_jobs(scanners) && !next_turn(scanners))
		return true;
	add_children(scanners);
	return false;
}

void scanners_stop(struct scanners *scanners)
{
	for (int i = 0; i < CHILDREN_MAX; i++)
		if (scanners->children[i].state == CHILD_WORKS)
			kill_child(scanners, &scanners->children[i]);
	begin_list(scanners, 0);
}

int scanners_left(const struct scanners *scanners)
{
	return scanners->left;
}

unsigned long scanners_ended(const struct scanners *scanners)
{
	return scanners->ended;
}
