/* SPDX-License-Identifier: MIT */
#include "start.h"

#include "clean.h"
#include "tell.h"
#include "wait.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#define HIGH_FD 64 /* the low numbers are for the locks */

/* ---- signals ---- */

/* A standard error that is closed, or a limit of file sizes, must not end the one that watches; and
 * an ignored SIGCHLD would take the status of COMMAND. */
static const struct {
	int number;
	void (*handler)(int);
} own[] = {{SIGPIPE, SIG_IGN}, {SIGXFSZ, SIG_IGN}, {SIGCHLD, SIG_DFL}};
static struct sigaction before[sizeof(own) / sizeof(own[0])];

/* In a process that is not the first the raised signal acts at once, by its default. */
static void end_by(int number)
{
	raise(number);
	_exit(128 + number);
}

void start_as_first(void)
{
	static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
	struct sigaction action = {.sa_handler = end_by,
	                           .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)},
			 old;

	for (size_t i = 0; getpid() == 1 && i < sizeof(ends) / sizeof(ends[0]); i++)
		if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			sigaction(ends[i], &action, NULL);
}

void start_prepare(void)
{
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigaction(own[i].number, &(struct sigaction){.sa_handler = own[i].handler},
		          &before[i]);
}

static void restore_signals(void)
{
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigaction(own[i].number, &before[i], NULL);
}

/* ---- the environment ---- */

static void forget_outer_locks(void)
{
	extern char **environ;
	char **kept = environ;

	/* Not by unsetenv(3): what has no `=` is no variable. */
	for (char **variable = environ; *variable; variable++)
		if (strncmp(*variable, "ZKLOCK_", 7) != 0)
			*kept++ = *variable;
	*kept = NULL;
}

static void set_numbered(const char *name, int number, const char *value)
{
	char variable[40];

	snprintf(variable, sizeof(variable), "ZKLOCK_%s_%d", name, number);
	if (setenv(variable, value, 1) < 0)
		err(EX_OSERR, NULL);
}

/* systemd names the process that is to use its sockets, or to tell that it lives: zklock, but meant
 * is COMMAND, this process. What names it in yet another way is optional. */
static void take_names_over(void)
{
	static const char *const names[] = {"LISTEN_PID", "WATCHDOG_PID"};
	char zklock[16], command[16];

	snprintf(zklock, sizeof(zklock), "%d", (int)getppid());
	snprintf(command, sizeof(command), "%d", (int)getpid());
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *named = getenv(names[i]);

		if (!named || strcmp(named, zklock) != 0)
			continue;
		if (setenv(names[i], command, 1) < 0)
			err(EX_OSERR, NULL);
		if (i == 0)
			unsetenv("LISTEN_PIDFDID");
	}
}

/* Numbers and not names: a name may hold whatever its maker liked. */
static void set_environment(const struct run *run)
{
	char text[16];

	forget_outer_locks();
	take_names_over();
	for (size_t i = 0; i < run->take->count; i++) {
		const struct lock *lock = &run->take->locks[i];

		set_numbered("NAME", lock->place, lock->name);
		set_numbered("TOKEN", lock->place, lock->token);
		snprintf(text, sizeof(text), "%d", lock->fd);
		if (!run->close)
			set_numbered("FD", lock->place, text);
	}
	if (run->take->count == 1 && setenv("ZKLOCK_TOKEN", run->take->locks[0].token, 1) < 0)
		err(EX_OSERR, NULL);
}

/* ---- the process ---- */

static void die_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) {
		warn("prctl");
		_exit(EX_OSERR);
	}
	if (getppid() != parent)
		_exit(EX_OSERR);
}

/* With -o it stays to die with zklock: without the descriptors it must not outlive the process that
 * has them. */
static _Noreturn void become_command(const struct run *run, const sigset_t *mask)
{
	char shown[CLEAN_MAX];
	int error;

	set_environment(run);
	for (size_t i = 0; !run->close && i < run->take->count; i++)
		fcntl(run->take->locks[i].fd, F_SETFD, 0);
	restore_signals();
	sigprocmask(SIG_SETMASK, mask, NULL);
	if (!run->close)
		prctl(PR_SET_PDEATHSIG, 0);
	execvp(run->command[0], run->command);
	error = errno;
	signal(SIGPIPE, SIG_IGN);
	tell(run->take, "%s: %s%s", clean(shown, sizeof(shown), run->command[0]), strerror(error),
	     error == ENOENT && strchr(run->command[0], ' ')
	             ? "; for a line of the shell: sh -c 'LINE'"
	             : "");
	_exit(error == ENOENT ? 127 : 126);
}

/* One message for each lock, in their order: its token, and its descriptor. */
static bool hand_over(int fd, const struct lock *lock)
{
	union {
		char buffer[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {.buffer = {0}};
	char token[TOKEN_MAX];
	struct iovec iov = {.iov_base = token, .iov_len = sizeof(token)};
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buffer,
		.msg_controllen = sizeof(control.buffer),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	memcpy(token, lock->token, sizeof(token));
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &lock->fd, sizeof(int));
	return sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(token);
}

static bool receive(int fd, struct lock *lock)
{
	union {
		char buffer[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = lock->token, .iov_len = sizeof(lock->token)};
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buffer,
		.msg_controllen = sizeof(control.buffer),
	};
	struct cmsghdr *header;
	ssize_t n;

	do
		n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	header = n == (ssize_t)sizeof(lock->token) ? CMSG_FIRSTHDR(&message) : NULL;
	if (!header || header->cmsg_type != SCM_RIGHTS)
		return false;
	memcpy(&lock->fd, CMSG_DATA(header), sizeof(int));
	lock->held = true;
	return true;
}

static bool receive_all(int fd, struct take *take)
{
	for (size_t i = 0; i < take->count; i++)
		if (!receive(fd, &take->locks[i]))
			return false;
	return true;
}

/* Until zklock has all that it needs. */
static bool may_go(int fd)
{
	char byte;
	ssize_t n;

	do
		n = read(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

static _Noreturn void take_and_become(struct run *run, int fd, pid_t parent)
{
	struct take *take = run->take;
	sigset_t mask;
	int status;

	die_with(parent);
	if (!take_all(take, &status))
		_exit(status);
	for (size_t i = 0; i < take->count; i++)
		if (!hand_over(fd, &take->locks[i])) {
			warn("cannot hand the locks over");
			_exit(EX_OSERR);
		}
	if (!may_go(fd))
		_exit(EX_OSERR);
	sigprocmask(SIG_BLOCK, NULL, &mask);
	become_command(run, &mask);
}

/* ---- zklock ---- */

static void await_end(pid_t pid, int *ret_status, int *ret_signal)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	*ret_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	*ret_status = WEXITSTATUS(status);
}

static int lift(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);

	if (high < 0)
		return fd;
	close(fd);
	return high;
}

/* The zklock above this one names its locks to what it runs. One of another mount may have the
 * name, too: then a line more is said. */
static bool is_of_zklock_above(const struct lock *lock)
{
	char variable[32];
	const char *name;

	for (int place = 1;; place++) {
		snprintf(variable, sizeof(variable), "ZKLOCK_NAME_%d", place);
		name = getenv(variable);
		if (!name || strcmp(name, lock->name) == 0)
			return name;
	}
}

/* Nobody reads the mail of cron for that, but who waits for a lock of its own waits for ever. */
static struct child begin_telling(const struct wait *wait)
{
	static const struct child nobody = {.pid = -1, .end = -1};
	const struct take *take = wait->take;
	bool told = isatty(STDERR_FILENO);

	if (take->limit_ms == 0 || take->quiet)
		return nobody;
	for (size_t i = 0; i < take->count && !told; i++)
		told = is_of_zklock_above(&take->locks[i]);
	return told ? tell_start(take, wait_tell, wait) : nobody;
}

bool start_take(struct start *start, struct run *run, int *ret_status, int *ret_signal)
{
	struct take *take = run->take;
	pid_t parent = getpid();
	int ends[2];

	struct wait wait = {.take = take, .taker = parent};
	struct child teller;
	bool taken;

	*start = (struct start){.run = run, .fd = -1};
	*ret_signal = 0;
	take_sort(take);
	if (run->close) {
		teller = begin_telling(&wait);
		taken = take_all(take, ret_status);
		tell_stop(&teller);
		return taken;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		err(EX_OSERR, "socketpair");
	start->fd = lift(ends[0]);
	ends[1] = lift(ends[1]);
	fflush(NULL);
	start->pid = fork();
	if (start->pid < 0)
		err(EX_OSERR, "fork");
	if (start->pid == 0) {
		close(start->fd);
		take_and_become(run, ends[1], parent);
	}
	close(ends[1]);
	wait.taker = start->pid;
	teller = begin_telling(&wait);
	taken = receive_all(start->fd, take);
	tell_stop(&teller);
	if (!taken) {
		close(start->fd); /* its word will not come */
		await_end(start->pid, ret_status, ret_signal);
	}
	return taken;
}

void start_command(struct start *start, const sigset_t *mask)
{
	pid_t parent = getpid();

	if (start->pid) {
		if (send(start->fd, "", 1, MSG_NOSIGNAL) < 0 && errno != EPIPE)
			warn("cannot start the command: send"); /* EPIPE: SIGCHLD tells */
		close(start->fd);
		return;
	}
	fflush(NULL);
	start->pid = fork();
	if (start->pid < 0)
		err(EX_OSERR, "fork");
	if (start->pid == 0) {
		die_with(parent);
		become_command(start->run, mask);
	}
}
