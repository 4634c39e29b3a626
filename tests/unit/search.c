/* SPDX-License-Identifier: MIT
 *
 * search.c - the children by which the guardian stops the processes that lost a lock: here the
 * processes are real, and the lost lock's file is any file.
 */
#include "guard/search.h"

#include "host/clock.h"
#include "host/log.h"
#include "host/memory.h"
#include "host/process.h"
#include "unit.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEASE_US 3600000000
#define LATE_TOLD_US 2000000 /* as in look.c */

/* A lost lock: its file, its opener, and a child of the opener that has inherited the file. */
struct scene {
	struct page *page;
	struct searches *search;
	pid_t opener, child;
	int life;                   /* the child lives until this is closed */
	int guardian, daemon;       /* a socket between them */
	int64_t tended_us, away_us; /* the longest time between two calls of search_tend() */
};

/* Faults: no process can be started; each child dies when it is about to send a signal; so many
 * children, shared by all, die or stop then. */
static bool no_forks;
static pid_t only_sender;
static _Atomic int *dying, *stopping;
static _Atomic pid_t *stopped; /* the one that has stopped last */
static pid_t guardian;         /* the test itself, which these two leave alone */
static int forks, directories; /* so far */

pid_t fork(void)
{
	pid_t (*real)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");

	errno = EAGAIN;
	forks += !no_forks;
	return no_forks ? -1 : real();
}

DIR *opendir(const char *name)
{
	DIR *(*real)(const char *) = (DIR * (*)(const char *)) dlsym(RTLD_NEXT, "opendir");

	directories++;
	return real(name);
}

static bool is_hit(_Atomic int *count)
{
	return getpid() != guardian && atomic_load(count) > 0 && atomic_fetch_sub(count, 1) > 0;
}

long syscall(long number, ...)
{
	long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	long a[4];
	va_list args;

	if (number == SYS_pidfd_send_signal && only_sender && only_sender != getpid())
		raise(SIGKILL);
	if (number == SYS_pidfd_send_signal && is_hit(dying))
		raise(SIGKILL);
	if (number == SYS_pidfd_send_signal && is_hit(stopping)) {
		atomic_store(stopped, getpid());
		raise(SIGSTOP);
	}
	va_start(args, number);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	return real(number, a[0], a[1], a[2], a[3]);
}

static int life_of_child;

static void tell_sigterm(int signal)
{
	(void)signal;
	(void)!write(life_of_child, "T", 1);
}

static bool ignores_sigterm; /* the opener of the next scene */

static void be_the_opener(const char *path, int life, bool keeps)
{
	int file = open(path, O_RDWR);
	pid_t child = fork();
	char byte;

	if (ignores_sigterm)
		signal(SIGTERM, SIG_IGN);
	if (child == 0) {
		life_of_child = life;
		signal(SIGTERM, tell_sigterm);
		while (read(life, &byte, 1) < 0)
			;
		_exit(0);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!keeps)
		close(file);
	(void)!write(life, &child, sizeof(child));
	close(life);
	while (1)
		pause();
}

/* `keeps`: the opener, too, has the file open, and not only its child. No other process has. */
static void begin(struct scene *scene, enum on_lost on_lost, bool keeps)
{
	char path[] = "/dev/shm/zklockfs-search-XXXXXX";
	struct process process, read_of;
	struct stat st;
	int fds[2], file = mkstemp(path);

	assert_int_equal(fstat(file, &st), 0);
	close(file);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	scene->opener = fork();
	if (scene->opener == 0) {
		close(fds[0]);
		be_the_opener(path, fds[1], keeps);
	}
	close(fds[1]);
	scene->life = fds[0];
	assert_int_equal(read(fds[0], &scene->child, sizeof(scene->child)), sizeof(scene->child));
	unlink(path);
	scene->page = memory_share(sizeof(*scene->page));
	assert_non_null(scene->page);
	assert_true(process_read(scene->opener, &read_of));
	assert_int_equal(process_open(scene->opener, &process), 0);
	scene->page->slots[0] = (struct slot){
		.word = SLOT_LOST,
		.pid = scene->opener,
		.start = read_of.start,
		.number = process_number(&process),
		.ino = st.st_ino,
		.until_us = INT64_MAX,
	};
	process_close(&process);
	scene->page->used = 1;
	scene->page->mount_id = -1;
	snprintf(scene->page->device, sizeof(scene->page->device), "%u:%u", major(st.st_dev),
	         minor(st.st_dev));
	scene->page->deadline_us = clock_now_us() + LEASE_US;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	scene->guardian = fds[0];
	scene->daemon = fds[1];
	scene->search = search_create(scene->page, on_lost, scene->guardian);
	scene->away_us = 0;
	scene->tended_us = clock_now_us();
	assert_non_null(scene->search);
}

static void end(struct scene *scene)
{
	close(scene->life);
	close(scene->guardian);
	close(scene->daemon);
	kill(scene->opener, SIGKILL);
	waitpid(scene->opener, NULL, 0);
	free(scene->search);
}

static bool has_ended(pid_t pid)
{
	struct process process;

	if (process_open(pid, &process) < 0)
		return true;
	process_close(&process);
	return false;
}

/* The child that the search has started last, which may not have begun. */
static pid_t last_child(void)
{
	char path[64], pids[4096] = "", *last;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	file = fopen(path, "re");
	assert_non_null(file);
	(void)!fread(pids, 1, sizeof(pids) - 1, file);
	fclose(file);
	for (last = pids + strlen(pids); last > pids && last[-1] == ' ';)
		*--last = '\0';
	last = strrchr(pids, ' ');
	return (pid_t)strtol(last ? last + 1 : pids, NULL, 10);
}

static bool tend(struct scene *scene)
{
	bool over;

	(void)search_note(scene->search);
	over = search_tend(scene->search);
	if (clock_now_us() - scene->tended_us > scene->away_us)
		scene->away_us = clock_now_us() - scene->tended_us;
	scene->tended_us = clock_now_us();
	usleep(SEARCH_TEND_US);
	return over;
}

static void search_all(struct scene *scene)
{
	search_begin(scene->search);
	while (!tend(scene))
		;
}

static void opener_and_heir_are_stopped(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene, ON_LOST_KILL, true);
	assert_true(search_note(scene.search).due);
	while (!has_ended(scene.opener))
		tend(&scene);
	assert_false(has_ended(scene.child));
	search_all(&scene);
	assert_true(search_found(scene.search));
	while (!has_ended(scene.child))
		usleep(1000);
	search_all(&scene);
	assert_false(search_found(scene.search));
	while (scene.page->kills < 2) /* counted after the signal */
		usleep(1000);
	assert_int_equal(scene.page->kills, 2);
	end(&scene);
}

/* The opener has lost another lock, too, whose file has a lower number and is open nowhere. */
static void an_heir_of_the_second_file_is_stopped(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene, ON_LOST_KILL, true);
	scene.page->slots[1] = scene.page->slots[0];
	scene.page->slots[1].ino = 1;
	scene.page->used = 2;
	assert_true(search_note(scene.search).due);
	while (!has_ended(scene.opener))
		tend(&scene);
	search_all(&scene);
	assert_true(search_found(scene.search));
	end(&scene);
}

/* The heir holds another lock itself, by a file that is not lost. */
static void an_heir_that_holds_another_file_is_stopped(void **state)
{
	struct process process, read_of;
	struct scene scene;

	(void)state;
	begin(&scene, ON_LOST_KILL, true);
	assert_true(process_read(scene.child, &read_of));
	assert_int_equal(process_open(scene.child, &process), 0);
	scene.page->slots[1] = scene.page->slots[0];
	scene.page->slots[1].word = SLOT_HELD;
	scene.page->slots[1].pid = scene.child;
	scene.page->slots[1].start = read_of.start;
	scene.page->slots[1].number = process_number(&process);
	scene.page->slots[1].ino = 1;
	scene.page->used = 2;
	process_close(&process);
	while (!has_ended(scene.opener))
		tend(&scene);
	search_all(&scene);
	assert_true(search_found(scene.search));
	end(&scene);
}

/* It lives on, also when it is looked at no more. Where no child has looked at it for long, it is
 * stopped. */
static void whoever_has_closed_is_left_alone(void **state)
{
	int64_t began = clock_now_us();
	struct scene scene;

	(void)state;
	begin(&scene, ON_LOST_KILL, false);
	while (search_note(scene.search).due)
		tend(&scene);
	if (clock_now_us() - began < LATE_TOLD_US)
		assert_false(has_ended(scene.opener));
	search_all(&scene);
	while (!has_ended(scene.child))
		usleep(1000);
	search_all(&scene);
	assert_true(has_ended(scene.opener) == (scene.page->kills > 1));
	end(&scene);
}

/* As a child that hangs, for all that the guardian can see. */
static pid_t stop_last_child(void)
{
	pid_t child = last_child();

	assert_int_equal(kill(child, SIGSTOP), 0);
	return child;
}

/* The guardian itself stops only openers that it can tell by a number (Linux 6.9). */
static void skip_without_numbers(struct scene *scene)
{
	if (scene->page->slots[0].number)
		return;
	end(scene);
	skip();
}

/* Each child that looks at the opener hangs: the guardian does without, before the lease's end. */
static void a_look_that_hangs_delays_no_opener(void **state)
{
	struct scene scene;
	pid_t child;

	(void)state;
	begin(&scene, ON_LOST_KILL, true);
	skip_without_numbers(&scene);
	scene.page->deadline_us = clock_now_us(); /* the lease is over */
	while (!has_ended(scene.opener)) {
		(void)search_note(scene.search);
		search_tend(scene.search);
		(void)stop_last_child();
		usleep(SEARCH_TEND_US);
	}
	while ((child = last_child()) != scene.opener) {
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, NULL, 0), child);
	}
	end(&scene);
}

/* Nor does one that dies with the signal in its hand. Done again if the child or this process came
 * too late. */
static void a_look_that_dies_delays_no_opener(void **state)
{
	struct scene scene;
	unsigned long ended, kills;

	(void)state;
	do {
		begin(&scene, ON_LOST_TERM, true);
		skip_without_numbers(&scene);
		scene.page->deadline_us = clock_now_us(); /* the lease is over */
		only_sender = getpid();
		while (search_ended(scene.search) == 0 && !has_ended(scene.opener))
			tend(&scene);
		only_sender = 0;
		while (!has_ended(scene.opener))
			tend(&scene);
		ended = search_ended(scene.search);
		kills = scene.page->kills;
		end(&scene);
	} while (ended == 0 || scene.away_us > GUARDIAN_TERM_TO_KILL_US / 2);
	assert_int_equal(kills, 0);
}

/* The guardian then looks itself at openers that have no number. */
static void an_opener_is_stopped_where_no_process_can_be_started(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene, ON_LOST_KILL, true);
	scene.page->slots[0].number = 0; /* it is not stopped without a look */
	no_forks = true;
	while (!has_ended(scene.opener))
		tend(&scene);
	no_forks = false;
	end(&scene);
}

/* The guardian does not look where it could hang itself: the opener is stopped without a look. */
static void without_processes_the_guardian_looks_at_nobody(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene, ON_LOST_KILL, true);
	skip_without_numbers(&scene);
	scene.page->deadline_us = clock_now_us(); /* the lease is over */
	no_forks = true;
	directories = 0;
	while (!has_ended(scene.opener))
		tend(&scene);
	no_forks = false;
	assert_int_equal(directories, 0);
	end(&scene);
}

/* Who cannot open a process knows nothing of it: it is looked at again, until it was seen. */
static void without_descriptors_nobody_is_taken_for_gone(void **state)
{
	struct scene scene;
	struct rlimit files, none;

	(void)state;
	begin(&scene, ON_LOST_KILL, true);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	none = (struct rlimit){.rlim_cur = STDERR_FILENO + 1, .rlim_max = files.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	search_all(&scene);
	/* A child for the openers comes when the one before has ended. */
	for (forks = 0; forks < 3 && search_note(scene.search).due;)
		tend(&scene);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	assert_true(search_note(scene.search).due);
	assert_true(search_found(scene.search)); /* the guardian stays */
	assert_false(has_ended(scene.opener) || has_ended(scene.child));
	while (!has_ended(scene.opener))
		tend(&scene);
	search_all(&scene);
	while (!has_ended(scene.child))
		usleep(1000);
	end(&scene);
}

/* The child that is about to send a signal, and has stopped. */
static pid_t await_stopped(struct scene *scene)
{
	siginfo_t info;

	atomic_store(stopped, 0);
	atomic_store(stopping, 1);
	while (atomic_load(stopped) == 0)
		tend(scene);
	assert_int_equal(waitid(P_PID, (id_t)atomic_load(stopped), &info, WSTOPPED), 0);
	return atomic_load(stopped);
}

/* The daemon hears that the guardian has ended, though a child of it hangs. */
static void a_child_does_not_stand_for_the_guardian(void **state)
{
	struct scene scene;
	pid_t child;
	char byte;

	(void)state;
	begin(&scene, ON_LOST_KILL, true);
	child = await_stopped(&scene);
	close(scene.guardian);
	assert_int_equal(read(scene.daemon, &byte, 1), 0);
	scene.guardian = -1;
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	end(&scene);
}

/* A child that went on when its loss was over sends its signal to nobody, and counts none. */
static void a_signal_is_counted_once_also_when_the_loss_is_over(void **state)
{
	struct scene scene;
	pid_t child;

	(void)state;
	begin(&scene, ON_LOST_KILL, true);
	skip_without_numbers(&scene);
	child = await_stopped(&scene);
	scene.page->deadline_us = clock_now_us(); /* the lease is over */
	while (scene.page->kills == 0)
		tend(&scene);
	scene.page->slots[0].word = NEXT_GENERATION(scene.page->slots[0].word, SLOT_FREE);
	assert_int_equal(search_note(scene.search).count, 0);
	assert_true(search_hangs(scene.search));
	kill(child, SIGCONT);
	while (search_hangs(scene.search))
		tend(&scene);
	assert_int_equal(scene.page->kills, 1);
	end(&scene);
}

/* The process takes the lock anew while a look for its former hold begins: it is left alone. */
static void a_new_hold_of_the_loser_is_seen(void **state)
{
	struct scene scene;
	struct slot *slot;

	(void)state;
	begin(&scene, ON_LOST_KILL, true);
	assert_true(search_note(scene.search).due);
	slot = &scene.page->slots[1];
	*slot = scene.page->slots[0];
	slot->word = SLOT_HELD;
	scene.page->used = 2;
	scene.page->filled = 1;
	do {
		search_tend(scene.search);
		usleep(SEARCH_TEND_US);
	} while (search_note(scene.search).due);
	assert_int_equal(scene.page->kills, 0);
	end(&scene);
}

/* The guardian is told when SIGKILL is due, so that it comes neither late nor never. */
static void sigkill_is_due_two_seconds_after_sigterm(void **state)
{
	int64_t began = clock_now_us(), seen;
	struct search_lost lost;
	struct scene scene;

	(void)state;
	ignores_sigterm = true;
	begin(&scene, ON_LOST_TERM, true);
	ignores_sigterm = false;
	lost = search_note(scene.search);
	seen = clock_now_us();
	while (lost.due && scene.page->kills == 0) {
		tend(&scene);
		lost = search_note(scene.search);
	}
	if (scene.page->kills == 0) { /* this process was not away for so long */
		assert_true(lost.kill_us >= began + GUARDIAN_TERM_TO_KILL_US);
		assert_true(lost.kill_us <= seen + GUARDIAN_TERM_TO_KILL_US);
	}
	while (!has_ended(scene.opener))
		tend(&scene);
	while (search_note(scene.search).due)
		tend(&scene);
	assert_true(search_note(scene.search).kill_us == INT64_MAX);
	end(&scene);
}

/* Another child goes on with the search; the one that hung looks at its own process in the end. */
static void a_search_that_hangs_is_gone_on_with(void **state)
{
	struct scene scene;
	pid_t child;

	(void)state;
	begin(&scene, ON_LOST_KILL, true);
	(void)search_note(scene.search);
	search_begin(scene.search);
	child = stop_last_child();
	while (!tend(&scene))
		;
	kill(child, SIGCONT);
	while (!has_ended(scene.child)) /* the child may have hung at this process */
		tend(&scene);
	while (search_hangs(scene.search))
		tend(&scene);
	assert_int_equal(search_ended(scene.search), 0);
	end(&scene);
}

static void a_search_that_is_killed_is_gone_on_with(void **state)
{
	struct scene scene;
	unsigned long ended;

	(void)state;
	do { /* a child may be so quick that it is done before it is killed */
		begin(&scene, ON_LOST_KILL, true);
		(void)search_note(scene.search);
		search_begin(scene.search);
		kill(last_child(), SIGKILL);
		while (!tend(&scene))
			;
		while (!has_ended(scene.child))
			usleep(1000);
		ended = search_ended(scene.search);
		end(&scene);
	} while (ended == 0);
	assert_int_equal(ended, 1);
}

/* Keeps the processor of that process for itself. */
static pid_t start_hog(pid_t of)
{
	struct sched_param param = {.sched_priority = 1};
	cpu_set_t one;
	pid_t hog;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	assert_int_equal(sched_setaffinity(of, sizeof(one), &one), 0);
	hog = fork();
	if (hog == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(2); /* whoever has one processor may not come to kill it */
		(void)sched_setaffinity(0, sizeof(one), &one);
		(void)sched_setscheduler(0, SCHED_FIFO, &param);
		while (1)
			;
	}
	return hog;
}

/* A child that waits for the processor does not hang: it is not left, and nothing is left out. */
static void a_search_without_a_processor_goes_on(void **state)
{
	struct scene scene;
	int64_t until;
	pid_t hog;

	(void)state;
	begin(&scene, ON_LOST_KILL, true);
	(void)search_note(scene.search);
	search_begin(scene.search);
	hog = start_hog(last_child());
	for (until = clock_now_us() + 300000; clock_now_us() < until;) {
		tend(&scene);
		assert_false(search_hangs(scene.search));
	}
	kill(hog, SIGKILL);
	assert_int_equal(waitpid(hog, NULL, 0), hog);
	while (!tend(&scene))
		;
	while (!has_ended(scene.child))
		usleep(1000);
	end(&scene);
}

/* Many searches find it before SIGKILL is due. */
static void an_heir_gets_sigterm_once(void **state)
{
	struct scene scene;
	char told[16];

	(void)state;
	begin(&scene, ON_LOST_TERM, true);
	while (!has_ended(scene.child)) {
		(void)search_note(scene.search);
		search_all(&scene);
	}
	assert_true(read(scene.life, told, sizeof(told)) <= 1);
	end(&scene);
}

/* Also if the child that has found it dies before it sends the signal. Done again if SIGKILL was
 * due before another one came. */
static void an_heir_gets_sigterm_from_the_next_child(void **state)
{
	struct scene scene;
	int64_t began;
	char told[16];
	ssize_t count;
	bool late;

	(void)state;
	do {
		began = clock_now_us();
		begin(&scene, ON_LOST_TERM, true);
		while (!has_ended(scene.opener))
			tend(&scene);
		atomic_store(dying, 1);
		while (atomic_load(dying) > 0 && !has_ended(scene.child))
			search_all(&scene);
		late = clock_now_us() - began > GUARDIAN_TERM_TO_KILL_US / 2;
		atomic_store(dying, 0);
		while (!has_ended(scene.child))
			search_all(&scene);
		late |= scene.away_us > GUARDIAN_TERM_TO_KILL_US / 4;
		count = read(scene.life, told, sizeof(told));
		end(&scene);
	} while (late && count != 1);
	assert_int_equal(count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opener_and_heir_are_stopped),
		cmocka_unit_test(an_heir_of_the_second_file_is_stopped),
		cmocka_unit_test(an_heir_that_holds_another_file_is_stopped),
		cmocka_unit_test(whoever_has_closed_is_left_alone),
		cmocka_unit_test(a_look_that_hangs_delays_no_opener),
		cmocka_unit_test(a_look_that_dies_delays_no_opener),
		cmocka_unit_test(an_opener_is_stopped_where_no_process_can_be_started),
		cmocka_unit_test(without_processes_the_guardian_looks_at_nobody),
		cmocka_unit_test(without_descriptors_nobody_is_taken_for_gone),
		cmocka_unit_test(a_child_does_not_stand_for_the_guardian),
		cmocka_unit_test(a_signal_is_counted_once_also_when_the_loss_is_over),
		cmocka_unit_test(a_new_hold_of_the_loser_is_seen),
		cmocka_unit_test(sigkill_is_due_two_seconds_after_sigterm),
		cmocka_unit_test(a_search_that_hangs_is_gone_on_with),
		cmocka_unit_test(a_search_that_is_killed_is_gone_on_with),
		cmocka_unit_test(a_search_without_a_processor_goes_on),
		cmocka_unit_test(an_heir_gets_sigterm_once),
		cmocka_unit_test(an_heir_gets_sigterm_from_the_next_child),
	};

	dying = memory_share(sizeof(*dying));
	stopping = memory_share(sizeof(*stopping));
	stopped = memory_share(sizeof(*stopped));
	guardian = getpid();
	log_level(LC_ERROR);
	alarm(300);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
