/* SPDX-License-Identifier: MIT */
#include "host/process.h"

#include "host/clock.h"
#include "host/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define PIDFS_MAGIC 0x50494446 /* PID_FS_MAGIC of linux/magic.h, since 6.9 */

/* ---- asking by a pidfd, or by status ---- */

/* The kernel's linux/pidfd.h has these; the one here may be older than the kernel. */
#define OF_A_THREAD O_EXCL /* PIDFD_THREAD, since 6.9 */
#define INFO_PID 1         /* PIDFD_INFO_* */
#define INFO_CREDS 2

struct info { /* PIDFD_INFO_SIZE_VER0 */
	uint64_t mask, cgroup;
	uint32_t thread, process, parent;
	uint32_t real_uid, real_gid, effective_uid, effective_gid, saved_uid, saved_gid, fs_uid,
		fs_gid;
	int32_t exit_code;
};

#define GET_INFO _IOWR(0xff, 11, struct info)

/* False: `fd` is -1, the process is gone, or the kernel cannot be asked. */
static bool ask_pidfd(int fd, struct process *process)
{
	struct info info = {.mask = INFO_PID | INFO_CREDS};

	if (fd < 0 || ioctl(fd, GET_INFO, &info) < 0 ||
	    (info.mask & (INFO_PID | INFO_CREDS)) != (INFO_PID | INFO_CREDS))
		return false;
	process->pid = (pid_t)info.process;
	process->parent = (pid_t)info.parent;
	process->real = info.real_uid;
	process->saved = info.saved_uid;
	return true;
}

/* A pidfd, which polls readable when the thread is gone. -1: it is gone, or the kernel has none for
 * a thread that is not the first of its process (before 6.9). */
static int open_thread(pid_t thread)
{
	int fd = (int)syscall(SYS_pidfd_open, thread, OF_A_THREAD);

	return fd >= 0 ? fd : proc_opened((int)syscall(SYS_pidfd_open, thread, 0));
}

static bool ask_thread(pid_t thread, struct process *process)
{
	int fd = open_thread(thread);
	bool is = ask_pidfd(fd, process);

	if (fd >= 0)
		close(fd);
	return is;
}

static const char *value_of(const char *text, const char *key)
{
	const char *line = strstr(text, key);

	return line ? line + strlen(key) : NULL;
}

static bool read_status(pid_t thread, struct process *process)
{
	const char *pid, *parent, *uids;
	char text[1024];
	unsigned real, saved;

	if (!proc_read_of(thread, "status", text, sizeof(text)))
		return false;
	/* The name is in the first line, and newlines in it are escaped. */
	pid = value_of(text, "\nTgid:");
	parent = value_of(text, "\nPPid:");
	uids = value_of(text, "\nUid:");
	if (!pid || !parent || !uids || sscanf(uids, "%u %*u %u", &real, &saved) != 2)
		return false;
	process->pid = (pid_t)strtol(pid, NULL, 10);
	process->parent = (pid_t)strtol(parent, NULL, 10);
	process->real = real;
	process->saved = saved;
	return true;
}

bool process_ask(struct process *process)
{
	return ask_pidfd(process->fd, process) ||
	       (process->pid > 0 &&
	        (ask_thread(process->pid, process) || read_status(process->pid, process)));
}

bool process_read(pid_t pid, struct process *ret_process)
{
	char text[1024], file[32], *command, *rest;
	unsigned long long start;
	char state;
	int parent;

	/* The stat of its first thread is read: for that of the whole process the kernel adds up
	 * what every thread has used, which takes milliseconds where there are thousands. */
	snprintf(file, sizeof(file), "task/%d/stat", (int)pid);
	if (pid <= 0 || !proc_read_of(pid, file, text, sizeof(text)))
		return false;
	/* The name in brackets may itself hold brackets and blanks. */
	command = strchr(text, '(');
	rest = strrchr(text, ')');
	if (!command || !rest ||
	    sscanf(rest + 1,
	           " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
	           "%*d %*d %*d %llu",
	           &state, &parent, &start) != 3)
		return false;
	*ret_process = (struct process){
		.pid = pid,
		.fd = -1,
		.start = start,
		.parent = parent,
		.ended = state == 'Z' || state == 'X',
	};
	snprintf(ret_process->command, sizeof(ret_process->command), "%.*s",
	         (int)(rest - command) - 1, command + 1);
	return true;
}

/* ---- who asks ---- */

/* The names in task/ cost the kernel nothing, and the thread that the process began with comes
 * first. */
static pid_t first_thread(pid_t thread)
{
	char path[64], names[256];
	ssize_t n, at = 0;
	pid_t first = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)thread);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = syscall(SYS_getdents64, fd, names, sizeof(names));
	close(fd);
	while (first == 0 && at < n) { /* behind . and .. */
		unsigned short length;

		memcpy(&length, names + at + offsetof(struct dirent64, d_reclen), sizeof(length));
		first = (pid_t)strtol(names + at + offsetof(struct dirent64, d_name), NULL, 10);
		at += length;
	}
	return first;
}

/* A program that takes a lock in a loop asks thousands of times a second, and to read which process
 * it is costs more than all else that is done here. So it is remembered for a moment, as its
 * command may change, and while the thread lives: where numbers are scarce, or can be chosen
 * (CRIU), another one gets its number at once. */
#define REMEMBERED_NS (10 * 1000000)
#define REMEMBERED_COUNT 64

static struct remembered {
	pid_t thread; /* 0: none */
	int life;     /* its pidfd; -1: it is not remembered */
	int64_t read_ns;
	bool seen; /* the command was read */
	struct process process;
} remembered[REMEMBERED_COUNT];

static uint64_t most_fds = UINT64_MAX;

void process_limit_fds(uint64_t most)
{
	most_fds = most;
}

/* The descriptor; -1 instead of one of the last that there are. */
static int unless_scarce(int fd)
{
	if (fd < 0 || (uint64_t)fd + PROCESS_FDS_RESERVED < most_fds)
		return fd;
	close(fd);
	errno = EMFILE;
	return -1;
}

static struct remembered *remember_thread(pid_t thread)
{
	static struct remembered nobody = {.process = {.fd = -1, .command = "-"}};
	struct remembered *entry = &remembered[(unsigned)thread % REMEMBERED_COUNT];
	int64_t now = clock_read_ns(CLOCK_MONOTONIC_COARSE);

	if (thread <= 0)
		return &nobody;
	if (entry->thread == thread && now - entry->read_ns < REMEMBERED_NS &&
	    process_lives(entry->life))
		return entry;
	if (entry->thread > 0 && entry->life >= 0)
		close(entry->life);
	*entry = (struct remembered){
		.thread = thread,
		.life = unless_scarce(open_thread(thread)),
		.read_ns = now,
		.process = {.fd = -1, .command = "-"},
	};
	if (!ask_pidfd(entry->life, &entry->process) && !ask_thread(thread, &entry->process))
		entry->process.pid = first_thread(thread);
	return entry;
}

pid_t process_of(pid_t thread)
{
	return remember_thread(thread)->process.pid;
}

void process_see(pid_t thread, struct process *ret_process)
{
	struct remembered *entry = remember_thread(thread);
	struct process *process = &entry->process;
	char text[64];

	if (!entry->seen && process->pid > 0 &&
	    proc_read_of(process->pid, "comm", text, sizeof(text)))
		snprintf(process->command, sizeof(process->command), "%.*s", (int)strlen(text) - 1,
		         text); /* without the newline that /proc adds */
	entry->seen = true;
	*ret_process = *process;
	ret_process->start = 0;
}

void process_identify(pid_t thread, struct process *ret_process)
{
	struct remembered *entry = remember_thread(thread);

	if (entry->process.start == 0 && process_read(entry->process.pid, &entry->process))
		entry->seen = true;
	*ret_process = entry->process;
}

/* ---- holding one ---- */

int process_hold(pid_t pid, struct process *ret_process)
{
	*ret_process = (struct process){.pid = pid, .fd = -1};
	if (pid <= 0)
		return -ESRCH;
	ret_process->fd = proc_opened((int)syscall(SYS_pidfd_open, pid, 0));
	return ret_process->fd < 0 ? -errno : 0;
}

int process_open(pid_t pid, struct process *ret_process)
{
	int r = process_hold(pid, ret_process);

	if (r == 0 && !process_runs(ret_process)) {
		process_close(ret_process);
		return -ESRCH;
	}
	/* ESRCH alone is said of the process: a filter refuses the call by any other errno. */
	if (r < 0 && r != -ESRCH && process_read(pid, ret_process) && !ret_process->ended)
		return 0;
	return r;
}

void process_close(struct process *process)
{
	if (process->fd >= 0)
		close(process->fd);
	process->fd = -1;
}

bool process_runs(const struct process *process)
{
	struct process now;

	if (process->fd >= 0)
		return process_lives(process->fd);
	return process_read(process->pid, &now) && !now.ended && now.start == process->start;
}

uint64_t process_number(const struct process *process)
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

bool process_is(const struct process *process, uint64_t start, uint64_t number)
{
	struct process now;

	if (number)
		return process_number(process) == number;
	return process_read(process->pid, &now) && now.start == start && process_runs(process);
}

/* EPERM of pidfd_send_signal(2) may be a filter's: kill(2) says whether it is the process's. */
int process_signal(const struct process *process, int signal)
{
	if (process->fd >= 0 && syscall(SYS_pidfd_send_signal, process->fd, signal, NULL, 0) == 0)
		return 0;
	if (!process_runs(process))
		return -ESRCH;
	return kill(process->pid, signal) < 0 ? -errno : 0;
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

bool process_obeys(const struct process *process, uid_t uid)
{
	return uid == 0 || process->real == uid || process->saved == uid;
}

/* ---- ancestors ---- */

/* Ancestors further up are not looked for, since all this is done in the loop. */
#define GENERATIONS_MAX 64
/* The search also ends after so much processor time of the daemon. On a busy machine a limit of
 * wall time would make it overlook an ancestor. */
#define LOOKED_UP_NS (10 * 1000000)

size_t process_line(pid_t pid, pid_t *ret_line, size_t most, int64_t end_ns)
{
	size_t count = 0;

	while (pid > 0 && count < most && (pid != 1 || count == 0)) {
		struct process process = {.pid = pid, .fd = -1};

		ret_line[count++] = pid;
		pid = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns && process_ask(&process)
		              ? process.parent
		              : 0;
	}
	return count;
}

struct lineage *lineage_read(pid_t pid)
{
	pid_t line[GENERATIONS_MAX];
	int64_t end_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) + LOOKED_UP_NS;
	size_t count = process_line(pid, line, GENERATIONS_MAX, end_ns);
	struct lineage *lineage =
		count > 0 ? malloc(sizeof(*lineage) + count * sizeof(line[0])) : NULL;

	if (!lineage)
		return NULL;
	lineage->count = count;
	memcpy(lineage->of, line, count * sizeof(line[0]));
	return lineage;
}

int lineage_find(const struct lineage *lineage, pid_t pid)
{
	for (size_t i = 0; pid > 0 && i < lineage->count; i++)
		if (lineage->of[i] == pid)
			return (int)i;
	return -1;
}

/* ---- life ---- */

/* Pidfds that were given back, by pid. */
#define SPARES 16

static struct spare {
	pid_t pid; /* 0: none */
	int fd;
} spares[SPARES];

static struct spare *spare_of(pid_t pid)
{
	return &spares[(unsigned)pid % SPARES];
}

/* -1: none, or its process is gone, and another one may have its number. */
static int take_spare(pid_t pid)
{
	struct spare *spare = spare_of(pid);

	if (spare->pid != pid || !process_lives(spare->fd))
		return -1;
	spare->pid = 0;
	return spare->fd;
}

int process_watch(pid_t pid)
{
	int fd = pid > 0 ? take_spare(pid) : -1;

	if (fd < 0 && pid > 0)
		fd = pidfd_open(pid, 0);
	return unless_scarce(fd);
}

void process_unwatch(pid_t pid, int pidfd)
{
	struct spare *spare = spare_of(pid);

	if (pidfd < 0)
		return;
	if (spare->pid > 0)
		close(spare->fd);
	*spare = (struct spare){.pid = pid, .fd = pidfd};
}

bool process_lives(int pidfd)
{
	struct pollfd pollfd = {.fd = pidfd, .events = POLLIN};

	return pidfd >= 0 && poll(&pollfd, 1, 0) == 0;
}

/* ---- over a reload ---- */

void process_save_load(struct codec *codec, struct process *process)
{
	if (codec->loads)
		*process = (struct process){.fd = -1};
	CODEC_PID(codec, process->pid);
	CODEC_64(codec, process->start);
	codec_copy(codec, process->command, sizeof(process->command));
}

static bool is_the_same(pid_t pid, uid_t uid, uint64_t number, int life)
{
	struct process process = {.pid = pid, .fd = life};

	if (number != 0)
		return process_number(&process) == number;
	return process_ask(&process) && process_obeys(&process, uid);
}

static int watch_again(pid_t pid, uid_t uid, uint64_t number)
{
	int life = process_watch(pid);

	if (life < 0 || is_the_same(pid, uid, number, life))
		return life;
	close(life);
	return -1;
}

int process_life_save_load(struct codec *codec, pid_t pid, uid_t uid, int life)
{
	struct process process = {.pid = pid, .fd = codec->loads ? -1 : life};
	uint64_t number = codec->gathers ? 0 : process_number(&process);
	bool is = life >= 0;

	CODEC_BOOL(codec, is);
	CODEC_64(codec, number);
	life = codec_fd(codec, life);
	return is && codec->loads && codec->crashed ? watch_again(pid, uid, number) : life;
}

struct lineage *lineage_save_load(struct codec *codec, struct lineage *lineage)
{
	size_t count = codec_count(codec, lineage ? lineage->count : 0);

	if (codec->loads && count > 0) {
		lineage = count > GENERATIONS_MAX
		                  ? NULL
		                  : malloc(sizeof(*lineage) + count * sizeof(lineage->of[0]));
		if (!lineage)
			codec->give_up("the ancestors of a process cannot be read");
		lineage->count = count;
	}
	for (size_t i = 0; i < count; i++)
		CODEC_PID(codec, lineage->of[i]);
	return count > 0 ? lineage : NULL;
}
