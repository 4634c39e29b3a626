/* SPDX-License-Identifier: MIT
 *
 * run.c - see run.h.
 *
 * The command stays in the process group and session of zklock. So it reads the terminal,
 * is stopped by ^Z and gets ^C by itself; signals that a process sends to zklock alone are passed
 * on.
 */
#include "run.h"

#include "clean.h"
#include "health.h"
#include "loss.h"
#include "span.h"
#include "start.h"
#include "tell.h"
#include "tree.h"

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#define KILL_AGAIN_MS 100 /* something may have been started meanwhile */
/* A mount with on_lost stops holders so long before the lease ends, and kills who has the lock open
 * after that. */
#define LEASE_ENDS_MS 2500

enum phase { RUNNING, STOPPING, KILLING, DONE };

struct running {
	const struct run *run;
	enum phase phase;
	pid_t pid; /* 0: has ended, with this status */
	int status;
	bool lost;
	bool too_long;
	bool refused;     /* something could not be killed, and was told of */
	int64_t until_ms; /* the phase's time; -1 for ever */
	int signals;
	int alarm;
	struct pollfd *fds; /* the lock files, signals, alarm */
};

static const int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

/* ---- starting ---- */

static void set_alarm(struct running *self, int64_t in_ms)
{
	self->until_ms = in_ms < 0 ? -1 : span_now_ms() + in_ms;
	if (in_ms >= 0 && !span_alarm_at(self->alarm, self->until_ms))
		err(EX_OSERR, "timerfd_settime");
}

static void watch(struct running *self, const sigset_t *signals)
{
	size_t count = self->run->take->count;

	self->fds = calloc(count + 2, sizeof(*self->fds));
	self->signals = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
	self->alarm = span_alarm();
	if (!self->fds || self->signals < 0 || self->alarm < 0)
		err(EX_OSERR, "%s",
		    !self->fds          ? "calloc"
		    : self->signals < 0 ? "signalfd"
		                        : "timerfd_create");
	for (size_t i = 0; i < count; i++)
		self->fds[i].fd = self->run->take->locks[i].fd;
	self->fds[count] = (struct pollfd){.fd = self->signals, .events = POLLIN};
	self->fds[count + 1] = (struct pollfd){.fd = self->alarm, .events = POLLIN};
}

/* ---- stopping ---- */

static void kill_all(struct running *self)
{
	int refused = tree_signal(SIGKILL);

	self->phase = KILLING;
	set_alarm(self, KILL_AGAIN_MS);
	if (refused && !self->refused)
		tell(self->run->take,
		     "%d of its processes run for another user and cannot be stopped", refused);
	if (refused) {
		self->refused = true;
		self->phase = DONE;
	}
}

static void stop_all(struct running *self)
{
	if (self->run->grace_ms == 0) {
		kill_all(self);
		return;
	}
	tree_signal(SIGTERM);
	tree_signal(SIGCONT); /* one that is stopped would not hear of it */
	self->phase = STOPPING;
	set_alarm(self, self->run->grace_ms);
}

/* ---- events ---- */

/* What is lost is of no use here any more, and a mount with on_lost kills who has it open. COMMAND
 * has its own descriptor; but with -o this is the only one, and COMMAND must end before others
 * hold. */
static void close_lost(const struct run *run, struct lock *lock)
{
	if (run->close)
		return;
	close(lock->fd);
	lock->held = false;
	lock->fd = -1;
}

struct loss {
	const struct take *take;
	const struct lock *lock;
	const char *otherwise; /* what is said if the mount does not know; or NULL */
	bool stops;
};

/* By a process of its own: only the mount knows more. */
static void tell_loss(const void *context)
{
	const struct loss *loss = context;
	char shown[CLEAN_MAX], why[LOSS_MAX];
	const char *text = loss_explain(loss->take->mount, loss->lock, why);

	if (!*text && loss->otherwise)
		text = loss->otherwise;
	warnx("%s: the lock is lost%s%s%s", clean(shown, sizeof(shown), loss->lock->name),
	      *text ? ": " : "", text, loss->stops ? "; the command is stopped" : "");
}

static void note_lost(struct running *self, size_t i)
{
	struct loss loss = {.take = self->run->take, .lock = &self->run->take->locks[i]};

	self->fds[i].fd = -1;
	self->lost = true;
	close_lost(self->run, &self->run->take->locks[i]);
	loss.stops = self->phase == RUNNING;
	if (loss.stops)
		stop_all(self);
	tell_by(self->run->take, tell_loss, &loss);
}

static void note_alarm(struct running *self)
{
	char age[SPAN_MAX];

	if (self->until_ms < 0 || span_now_ms() < self->until_ms)
		return;
	if (self->phase != RUNNING) {
		kill_all(self);
		return;
	}
	self->too_long = true;
	stop_all(self);
	tell(self->run->take, "held for %s: the command is stopped",
	     span_format(age, self->run->at_most_ms));
}

static void reap(struct running *self)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != self->pid)
			continue;
		self->pid = 0;
		self->status = status;
		if (self->phase == RUNNING)
			self->phase = DONE;
	}
	if (pid < 0 && errno == ECHILD)
		self->phase = DONE;
}

/* Signals from the terminal have reached the command already, but for the SIGHUP of a session's
 * leader. */
static bool is_for_us_alone(const struct signalfd_siginfo *info)
{
	return info->ssi_code != SI_KERNEL || (info->ssi_signo == SIGHUP && getsid(0) == getpid());
}

static void read_signals(struct running *self)
{
	struct signalfd_siginfo info;

	while (read(self->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap(self);
		else if (self->pid && is_for_us_alone(&info))
			kill(self->pid, (int)info.ssi_signo);
	}
}

static void turn(struct running *self)
{
	size_t count = self->run->take->count;

	if (poll(self->fds, count + 2, -1) < 0) {
		if (errno != EINTR)
			err(EX_OSERR, "poll");
		return;
	}
	if (self->fds[count].revents)
		read_signals(self);
	for (size_t i = 0; i < count && self->phase != DONE; i++)
		if (self->fds[i].fd >= 0 && self->fds[i].revents & (POLLERR | POLLHUP | POLLNVAL))
			note_lost(self, i);
	if (self->fds[count + 1].revents && self->phase != DONE)
		note_alarm(self);
}

static void go_on(struct running *self)
{
	while (self->phase != DONE)
		turn(self);
}

/* ---- the end ---- */

/* The mount has stopped COMMAND, or is about to. */
static bool is_being_stopped(const struct mount *mount)
{
	char on_lost[40], left[40];
	struct health health;

	health_read(mount, &health);
	health_value(&health, "on_lost", on_lost, sizeof(on_lost));
	health_value(&health, "lease_left", left, sizeof(left));
	health_free(&health);
	return strcmp(on_lost, "-") != 0 && strcmp(on_lost, "none") != 0 &&
	       strtol(left, NULL, 10) < LEASE_ENDS_MS;
}

/* fsync(2) by the system call: a library such as libeatmydata makes the function say yes. */
static long ask_ensemble(int fd)
{
	return syscall(SYS_fsync, fd);
}

/* Asks the ensemble. Without contact it is known when the lease ends at the latest; and if this
 * user is not let ask for long, the lease itself has to do. Returns why it was lost, or NULL. */
static const char *find_loss(const struct take *take, const struct lock *lock, bool killed)
{
	int64_t until = span_now_ms() + TAKE_ASK_MS;
	char byte;

	if (killed && is_being_stopped(take->mount)) /* then this process is the next one */
		return "the mount stops those who hold locks";
	while (ask_ensemble(lock->fd) < 0) {
		if (errno == ENOTCONN || errno == ECONNABORTED)
			return "the daemon of the mount is dead";
		if (!take_is_no_answer(errno))
			return errno == EIO ? "lost before the end"
			                    : "fsync is refused, so it counts as lost";
		if (errno == EHOSTUNREACH && is_being_stopped(take->mount))
			return "the ensemble does not answer, and the lease is about to end";
		if (span_now_ms() >= until && pread(lock->fd, &byte, 1, 0) == 1) {
			tell(take, "the ensemble could not be asked whether the locks were held to "
			           "the end; by the lease they were");
			return NULL;
		}
		take_pause();
	}
	return NULL;
}

static bool held_to_the_end(const struct running *self)
{
	const struct take *take = self->run->take;
	bool held = true;

	for (size_t i = 0; i < take->count; i++) {
		const char *loss = find_loss(take, &take->locks[i], WIFSIGNALED(self->status));

		if (loss) {
			close_lost(self->run, &take->locks[i]);
			tell_by(take, tell_loss,
			        &(struct loss){
					.take = take, .lock = &take->locks[i], .otherwise = loss});
			held = false;
		}
	}
	return held;
}

static void end_by_signal(int number)
{
	struct rlimit none = {0, 0};
	sigset_t set;

	setrlimit(RLIMIT_CORE, &none); /* the command's own is enough */
	signal(number, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, number);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static int final_status(const struct running *self)
{
	if (self->lost)
		return STATUS_LOST;
	if (self->too_long)
		return STATUS_AT_MOST;
	if (WIFSIGNALED(self->status)) {
		end_by_signal(WTERMSIG(self->status));
		return 128 + WTERMSIG(self->status);
	}
	return WEXITSTATUS(self->status);
}

int run(struct run *run)
{
	struct running self = {.run = run, .until_ms = -1};
	sigset_t signals, mask;
	struct start start;
	int status, signal;

	start_prepare();
	if (!start_take(&start, run, &status, &signal)) {
		if (signal)
			end_by_signal(signal);
		return signal ? 128 + signal : status;
	}
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		sigaddset(&signals, passed_on[i]);
	sigprocmask(SIG_BLOCK, &signals, &mask);

	watch(&self, &signals);
	if (!tree_adopt())
		err(EX_OSERR, "prctl");
	start_command(&start, &mask);
	self.pid = start.pid;
	set_alarm(&self, run->at_most_ms);
	reap(&self); /* it may have ended before SIGCHLD was blocked */
	go_on(&self);
	/* However it has ended: the mount may have stopped it because the lock was lost. */
	if (!self.lost && !self.too_long && !held_to_the_end(&self)) {
		self.lost = true;
		stop_all(&self); /* what it has left behind */
		reap(&self);
		go_on(&self);
	}
	if (self.too_long || self.lost)
		take_release(run->take); /* even if something of it is left */
	free(self.fds);
	return final_status(&self);
}
