/* SPDX-License-Identifier: MIT
 *
 * scanners.c - children that work for the guardian: how they run, and what becomes of a child that
 * sits at a job for too long.
 */
#include "guard/scanners.h"
#include "unit.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Results of the jobs; shared with the children. */
struct told {
	_Atomic pid_t pid;
	_Atomic int policy, nice; /* as they were when the job saw the policy change */
	_Atomic int done;
};

static struct told *share_told(void)
{
	struct told *told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE,
	                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(told != MAP_FAILED);
	return told;
}

static void tend(struct scanners *scanners)
{
	scanners_tend(scanners);
	usleep(SCANNERS_TEND_US);
}

static void hang(void *ctx, size_t index, pid_t pid)
{
	struct told *told = ctx;

	(void)pid;
	if (index == 0) {
		atomic_store(&told->pid, getpid());
		while (true)
			pause();
	}
	atomic_fetch_add(&told->done, 1);
}

static void sleep_or_tell(void *ctx, size_t index, pid_t pid)
{
	struct told *told = ctx;

	(void)pid;
	if (index == SCANNERS_WORKERS_MAX * 4)
		atomic_store(&told->nice, atomic_load(&told->done));
	usleep(SCANNERS_SHARE_US / 4);
	atomic_fetch_add(&told->done, 1);
}

/* A scanners lives as long as its process: nothing frees it. */
static struct scanners *make_scanners(void *ctx)
{
	static struct scanners *scanners[8];
	static unsigned count;

	assert_true(count < LENGTH(scanners));
	return scanners[count++] = scanners_create(ctx);
}

/* The jobs of a user whose number ends alike are not behind those of another. */
static void a_user_is_who_has_that_number(void **state)
{
	enum { JOBS = SCANNERS_WORKERS_MAX * 4 };
	struct told *told = share_told();
	struct scanners *scanners = make_scanners(told);

	(void)state;
	for (int i = 0; i < JOBS; i++)
		scanners_jobs(scanners)[i] = (struct job){.pid = 1000 + i, .uid = 7};
	scanners_jobs(scanners)[JOBS] = (struct job){.pid = 1000 + JOBS, .uid = 7 + 4096};
	scanners_start(scanners, sleep_or_tell, NULL, JOBS + 1);
	while (!scanners_tend(scanners))
		usleep(SCANNERS_TEND_US);
	assert_true(atomic_load(&told->nice) < JOBS / 2);
}

static void whoever_is_left_alone_is_limited(void **state)
{
	enum { JOBS = 10 };
	struct told *told = share_told();
	struct scanners *scanners = make_scanners(told);
	struct rlimit limit;
	pid_t pid;

	(void)state;
	for (int i = 0; i < JOBS; i++)
		scanners_jobs(scanners)[i] = (struct job){.pid = 1000 + i};
	scanners_start(scanners, hang, NULL, JOBS);
	while (scanners_left(scanners) == 0)
		tend(scanners);
	while (!scanners_tend(scanners))
		usleep(SCANNERS_TEND_US);
	assert_int_equal(atomic_load(&told->done), JOBS - 1);
	pid = atomic_load(&told->pid);
	assert_int_equal(prlimit(pid, RLIMIT_CPU, NULL, &limit), 0);
	assert_int_equal(limit.rlim_cur, SCANNERS_LEFT_CPU_S);
	assert_int_equal(limit.rlim_max, SCANNERS_LEFT_CPU_S);
	assert_true(getpriority(PRIO_PROCESS, (id_t)pid) < 19);
	kill(pid, SIGKILL);
	while (scanners_left(scanners) > 0)
		tend(scanners);
	free(scanners); /* the guardian never frees its scanners */
}

static void only_tell(void *ctx, size_t index, pid_t pid)
{
	struct told *told = ctx;

	(void)index;
	(void)pid;
	atomic_fetch_add(&told->done, 1);
}

/* A child that was left with one kind of work at a process does not do the other kind there. */
static void work_is_done_where_other_work_hangs(void **state)
{
	struct told *told = share_told();
	struct scanners *scanners = make_scanners(told);

	(void)state;
	scanners_jobs(scanners)[0] = (struct job){.pid = 1000};
	scanners_start(scanners, hang, NULL, 1);
	while (scanners_left(scanners) == 0)
		tend(scanners);
	scanners_start(scanners, only_tell, NULL, 1);
	while (!scanners_tend(scanners))
		usleep(SCANNERS_TEND_US);
	assert_int_equal(atomic_load(&told->done), 1);
	scanners_start(scanners, hang, NULL, 1);
	while (!scanners_tend(scanners))
		usleep(SCANNERS_TEND_US);
	assert_int_equal(scanners_left(scanners), 1);
	kill(atomic_load(&told->pid), SIGKILL);
	while (scanners_left(scanners) > 0)
		tend(scanners);
	free(scanners);
}

static void burn(void *ctx, size_t index, pid_t pid)
{
	struct told *told = ctx;

	(void)index;
	(void)pid;
	atomic_store(&told->pid, getpid());
	while (atomic_load(&told->done) == 0)
		;
}

/* A child that burns processor time runs behind others in the end. */
static void much_work_is_put_behind(void **state)
{
	struct told *told = share_told();
	struct scanners *scanners = make_scanners(told);
	pid_t pid;

	(void)state;
	scanners_jobs(scanners)[0] = (struct job){.pid = 1000};
	scanners_start(scanners, burn, NULL, 1);
	while (scanners_left(scanners) == 0)
		tend(scanners);
	pid = atomic_load(&told->pid);
	assert_true(getpriority(PRIO_PROCESS, (id_t)pid) < 19);
	while (getpriority(PRIO_PROCESS, (id_t)pid) < 19)
		tend(scanners);
	atomic_store(&told->done, 1);
	while (scanners_left(scanners) > 0)
		tend(scanners);
	free(scanners);
}

/* Tells its policy and nice value when it is no real-time process any more. */
static void watch_rank(void *ctx, size_t index, pid_t pid)
{
	struct told *told = ctx;
	int usual = getpriority(PRIO_PROCESS, 0);

	(void)index;
	(void)pid;
	while (sched_getscheduler(0) != SCHED_RR)
		;
	atomic_store(&told->pid, getpid());
	while (sched_getscheduler(0) == SCHED_RR)
		;
	while (getpriority(PRIO_PROCESS, 0) == usual)
		;
	atomic_store(&told->policy, sched_getscheduler(0));
	atomic_store(&told->nice, getpriority(PRIO_PROCESS, 0));
	atomic_store(&told->done, 1);
}

static void a_rank_is_of_those_at_work_too(void **state)
{
	struct sched_param param = {.sched_priority = SCANNERS_REALTIME_PRIORITY + 1};
	struct sched_param none = {0};
	struct told *told = share_told();
	struct scanners *scanners = make_scanners(told);

	(void)state;
	if (sched_setscheduler(0, SCHED_RR, &param) < 0)
		skip();
	scanners_rank(scanners, SCANNERS_REALTIME);
	scanners_jobs(scanners)[0] = (struct job){.pid = 1000};
	scanners_start(scanners, watch_rank, NULL, 1);
	while (atomic_load(&told->pid) == 0)
		usleep(100);
	scanners_rank(scanners, SCANNERS_FIRST);
	while (atomic_load(&told->done) == 0)
		usleep(100);
	while (!scanners_tend(scanners))
		usleep(SCANNERS_TEND_US);
	assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none), 0);
	assert_int_equal(atomic_load(&told->policy), SCHED_OTHER);
	assert_int_equal(atomic_load(&told->nice), -20);
	free(scanners);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_is_who_has_that_number),
		cmocka_unit_test(whoever_is_left_alone_is_limited),
		cmocka_unit_test(work_is_done_where_other_work_hangs),
		cmocka_unit_test(much_work_is_put_behind),
		cmocka_unit_test(a_rank_is_of_those_at_work_too),
	};

	alarm(600);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
