/* SPDX-License-Identifier: MIT
 *
 * guardian.c - the guardian alone, with real processes: many lose at once; is each of them
 * signalled when the lease ends? At that time the guardian is stopped: each loser that still ends
 * was signalled in time. Then the guardian goes on, to show how late the others are. Exit status
 * 0: all losers were in time, except those of the first user, who may delay losers of that user.
 *
 *   guardian DIRECTORY LOSERS ORPHANS USERS
 *
 * DIRECTORY stands for the mount. Each loser is a process that has a file in it open; an orphan is
 * a loser whose parent opened the file and has ended. They belong to so many users, from 2000 on;
 * 1: to root. Says "ready" when all are there, and begins at the next line of stdin.
 */
#include "guard/guardian.h"
#include "host/clock.h"
#include "host/log.h"
#include "host/process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_USER 2000
#define UNTIL_LEAD_US 1000000
/* If no loser has ended for so long, all losers that were signalled have ended. */
#define PATIENCE_MS 3000
#define LATE_MS 30000

struct loser {
	pid_t opener, last; /* the process that opened it, and the one that has it open */
	uint64_t start, ino;
	uid_t uid;
	int pidfd;
	int64_t ended_us;
	bool late; /* it ended after the guardian had gone on */
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Opens the file, maybe hands it down to a child, and stays. */
static void lose(const char *directory, int number, uid_t uid, bool orphan, int to)
{
	struct stat st;
	struct process ancestry;
	char path[4096];
	int fd;

	prctl(PR_SET_PDEATHSIG, 0);
	snprintf(path, sizeof(path), "%s/%d", directory, number);
	fd = open(path, O_RDWR | O_CREAT, 0666);
	if (fd < 0 || fstat(fd, &st) < 0 || setgid(uid) < 0 || setuid(uid) < 0)
		die(path);
	struct loser self = {.opener = getpid(), .last = getpid(), .ino = st.st_ino, .uid = uid};

	if (!process_read(getpid(), &ancestry))
		die("its start");
	self.start = ancestry.start;
	if (orphan) {
		self.last = fork();
		if (self.last < 0)
			die("fork");
	}
	if (self.last != 0 && write(to, &self, sizeof(self)) != sizeof(self))
		die("write");
	close(to);
	if (orphan && self.last != 0) {
		(void)!getchar(); /* until it has been noted */
		_exit(0);
	}
	while (1)
		pause();
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* The losers from..to, either those of the first user, who is the attackers' user, or those of all
 * others. `stood_us`: for so long the guardian stood still before it signalled late losers. Returns
 * how many losers were late. */
static int report(const char *what, const struct loser *losers, int from, int to, bool first,
                  int64_t deadline, int64_t stood_us)
{
	int64_t *times = calloc((size_t)(to - from) + 1, sizeof(*times));
	int count = 0, late = 0, all = 0;
	int64_t last_us = 0;

	for (int i = from; i < to; i++) {
		if ((losers[i].uid == FIRST_USER) != first)
			continue;
		all++;
		if (losers[i].late) {
			late++;
			if (losers[i].ended_us - stood_us - deadline > last_us)
				last_us = losers[i].ended_us - stood_us - deadline;
		} else if (losers[i].ended_us) {
			times[count++] = losers[i].ended_us - deadline;
		}
	}
	qsort(times, (size_t)count, sizeof(times[0]), compare);
	if (all > 0)
		printf("%s%s: %d of %d were signalled in time", what,
		       first ? " of the attackers' user" : "", count, all);
	if (count)
		printf("; the first ended at %+.3f s of the lease's end, half at %+.3f, the last "
		       "at %+.3f",
		       (double)times[0] / 1e6, (double)times[count / 2] / 1e6,
		       (double)times[count - 1] / 1e6);
	if (late)
		printf("; %d too late, the last at %+.3f", late, (double)last_us / 1e6);
	if (count + late < all)
		printf("; %d never", all - count - late);
	if (all > 0)
		puts("");
	free(times);
	return all - count;
}

static int wait_for_all(struct loser *losers, int count)
{
	int poll = epoll_create1(EPOLL_CLOEXEC), left = count;

	for (int i = 0; i < count; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};

		losers[i].pidfd = (int)syscall(SYS_pidfd_open, losers[i].last, 0);
		if (losers[i].pidfd < 0 ||
		    epoll_ctl(poll, EPOLL_CTL_ADD, losers[i].pidfd, &event) < 0)
			die("pidfd");
	}
	puts("ready");
	fflush(stdout);
	return left > 0 ? poll : -1;
}

/* Starts the guardian in a process group of its own, which is returned. */
static pid_t start_guardian(struct guardian **ret_guardian)
{
	pid_t other = fork();

	if (other < 0)
		die("fork");
	if (other == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (1)
			pause();
	}
	if (setpgid(other, 0) < 0 || setpgid(0, 0) < 0 ||
	    !guardian_start(ON_LOST_KILL, ret_guardian) || setpgid(0, other) < 0)
		die("the guardian");
	return getpid();
}

/* Notes the losers that have ended. False: none has for a while. */
static bool note_ends(int poll, struct loser *losers, bool late, int timeout_ms, int *left)
{
	struct epoll_event events[1024];
	int n = epoll_wait(poll, events, 1024, timeout_ms);
	int64_t now = clock_now_us();

	for (int i = 0; i < n; i++) {
		struct loser *loser = &losers[events[i].data.u32];

		loser->ended_us = now;
		loser->late = late;
		epoll_ctl(poll, EPOLL_CTL_DEL, loser->pidfd, NULL);
		(*left)--;
	}
	return n > 0;
}

int main(int argc, char **argv)
{
	int lost = argc > 4 ? atoi(argv[2]) : 0, orphans = argc > 4 ? atoi(argv[3]) : 0,
	    count = lost + orphans, poll;
	int users = argc > 4 ? atoi(argv[4]) : 1, to[2], end[2], left = count;
	struct loser *losers = calloc((size_t)count + 1, sizeof(*losers));
	struct guardian *guardian;
	struct statx st;
	char device[32], line[16];
	int64_t deadline, stood;
	pid_t group;
	int late;

	if (!losers || argc != 5 || count > GUARDIAN_SLOTS)
		return 2;
	log_level(LC_ERROR);
	group = start_guardian(&guardian);
	if (pipe(to) < 0 || pipe(end) < 0 || statx(AT_FDCWD, argv[1], 0, STATX_MNT_ID, &st) < 0)
		die(argv[1]);
	snprintf(device, sizeof(device), "%u:%u", st.stx_dev_major, st.stx_dev_minor);
	guardian_mounted(guardian, (int)st.stx_mnt_id, device);
	guardian_deadline(guardian, clock_now_us() + 3600000000);
	for (int i = 0; i < count; i++) {
		uid_t uid = users == 1 ? 0 : FIRST_USER + (uid_t)(i % users);
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (pid == 0) {
			dup2(end[0], STDIN_FILENO);
			close(end[0]);
			close(end[1]);
			close(to[0]);
			lose(argv[1], i, uid, i >= lost, to[1]);
		}
		if (read(to[0], &losers[i], sizeof(losers[i])) != sizeof(losers[i]))
			die("read");
		if (guardian_hold(guardian, &(struct guarded){
						    .uid = uid,
						    .process = {.pid = losers[i].opener,
		                                                .start = losers[i].start},
						    .lock = "build",
						    .ino = losers[i].ino,
						    .until_us = INT64_MAX,
					    }) < 0)
			die("guardian_hold");
	}
	close(end[0]);
	close(end[1]);
	for (int i = lost; i < count; i++)
		waitpid(losers[i].opener, NULL, 0);
	poll = wait_for_all(losers, count);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	/* This process has to look at the clock in time. */
	(void)sched_setscheduler(0, SCHED_RR, &(struct sched_param){.sched_priority = 3});
	deadline = clock_now_us() + UNTIL_LEAD_US + GUARDIAN_KILL_LEAD_US;
	guardian_deadline(guardian, deadline);
	for (int64_t now; left > 0 && (now = clock_now_us()) < deadline;)
		note_ends(poll, losers, false, (int)((deadline - now) / 1000) + 1, &left);
	stood = clock_now_us();
	kill(-group, SIGSTOP);
	while (left > 0 && note_ends(poll, losers, false, PATIENCE_MS, &left))
		;
	kill(-group, SIGCONT);
	stood = clock_now_us() - stood;
	while (left > 0 && note_ends(poll, losers, true, LATE_MS, &left))
		;
	late = report("openers", losers, 0, lost, false, deadline, stood) +
	       report("orphans", losers, lost, count, false, deadline, stood);
	report("openers", losers, 0, lost, true, deadline, stood);
	report("orphans", losers, lost, count, true, deadline, stood);
	kill(-group, SIGKILL);
	for (int i = 0; i < count; i++)
		(void)syscall(SYS_pidfd_send_signal, losers[i].pidfd, SIGKILL, NULL, 0);
	return late == 0 ? 0 : 1;
}
