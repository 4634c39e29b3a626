/* SPDX-License-Identifier: MIT */
#include "host/process.h"

#include "host/family.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PIDFS_MAGIC 0x50494446 /* PID_FS_MAGIC of linux/magic.h, since 6.9 */

bool process_hold(pid_t pid, struct process_ref *ret_process)
{
	*ret_process = (struct process_ref){.pid = pid, .fd = -1};
	if (pid > 0)
		ret_process->fd = (int)syscall(SYS_pidfd_open, pid, 0);
	return ret_process->fd >= 0;
}

bool process_open(pid_t pid, struct process_ref *ret_process)
{
	struct ancestry ancestry;

	if (process_hold(pid, ret_process)) {
		if (process_runs(ret_process))
			return true;
		process_close(ret_process);
		return false;
	}
	/* ESRCH alone is said of the process: a filter refuses the call by any other errno. */
	if (pid <= 0 || errno == ESRCH || !family_ancestry(pid, &ancestry) || ancestry.ended)
		return false;
	ret_process->start = ancestry.start;
	return true;
}

void process_close(struct process_ref *process)
{
	if (process->fd >= 0)
		close(process->fd);
	process->fd = -1;
}

bool process_runs(const struct process_ref *process)
{
	struct ancestry ancestry;

	if (process->fd >= 0)
		return family_lives(process->fd);
	return family_ancestry(process->pid, &ancestry) && !ancestry.ended &&
	       ancestry.start == process->start;
}

uint64_t process_number(const struct process_ref *process)
{
	static int has_pidfs = -1;
	struct statfs filesystem;
	struct stat st;

	if (process->fd < 0)
		return 0;
	if (has_pidfs < 0)
		has_pidfs =
			fstatfs(process->fd, &filesystem) == 0 && filesystem.f_type == PIDFS_MAGIC;
	return has_pidfs && fstat(process->fd, &st) == 0 ? st.st_ino : 0;
}

bool process_is(const struct process_ref *process, uint64_t start, uint64_t number)
{
	struct ancestry ancestry;

	if (number)
		return process_number(process) == number;
	return family_ancestry(process->pid, &ancestry) && ancestry.start == start &&
	       process_runs(process);
}

/* EPERM of pidfd_send_signal(2) may be a filter's: kill(2) says whether it is the process's. */
int process_signal(const struct process_ref *process, int signal)
{
	if (process->fd >= 0 && syscall(SYS_pidfd_send_signal, process->fd, signal, NULL, 0) == 0)
		return 0;
	if (!process_runs(process))
		return ESRCH;
	return kill(process->pid, signal) < 0 ? errno : 0;
}

bool process_may_signal_all(void)
{
	static int may = -1;
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	if (may < 0)
		may = syscall(SYS_capget, &header, data) == 0 && data[0].effective & 1U << CAP_KILL;
	return may;
}

bool process_status(const struct process_ref *process, struct who *ret_status)
{
	return who_has(process->fd, ret_status) || who_is(process->pid, ret_status);
}

bool process_obeys(const struct who *status, uid_t uid)
{
	return uid == 0 || status->real == uid || status->saved == uid;
}

/* ---- over a crash ---- */

static bool is_the_same(pid_t pid, uid_t uid, uint64_t number, int life)
{
	struct process_ref process = {.pid = pid, .fd = life};
	struct who status;

	if (number != 0)
		return process_number(&process) == number;
	return process_status(&process, &status) && process_obeys(&status, uid);
}

static int watch_again(pid_t pid, uid_t uid, uint64_t number)
{
	int life = family_watch(pid);

	if (life < 0 || is_the_same(pid, uid, number, life))
		return life;
	close(life);
	return -1;
}

int process_life_save_load(struct codec *codec, pid_t pid, uid_t uid, int life)
{
	struct process_ref process = {.pid = pid, .fd = codec->loads ? -1 : life};
	uint64_t number = codec->gathers ? 0 : process_number(&process);
	bool is = life >= 0;

	CODEC_BOOL(codec, is);
	CODEC_64(codec, number);
	life = codec_fd(codec, life);
	return is && codec->loads && codec->crashed ? watch_again(pid, uid, number) : life;
}
