/* SPDX-License-Identifier: MIT
 *
 * Preloaded into a daemon with a supervisor: the daemon is killed before or after its n-th call of
 * a function that does input or output. No other process can tell at which instruction between two
 * of these points a daemon died. $KILL_POINTS is a file that the test and all daemons of the mount
 * share.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* kill_points.py knows this layout. */
struct plan {
	_Atomic int64_t left;   /* points until the daemon is killed; 0: it is not killed */
	_Atomic int64_t next;   /* the same for the daemon after it */
	_Atomic int64_t kills;  /* kills until now */
	_Atomic int64_t passed; /* points until now */
	_Atomic int64_t poison; /* 1: a daemon that answers statfs(2) is killed */
	_Atomic int64_t start;  /* enum start: of a daemon that is started again */
	_Atomic int64_t starts; /* daemons that were started again */
	char where[64];         /* the point of the last kill */
};

enum start { START_GOES_ON, START_WAITS, START_ENDS };

#define START_STATUS 3
#define START_LOOK_US 1000

static struct plan *plan;
/* The supervisor forks the first daemon, and executes the others. Children of a daemon do not
 * count. */
static int forks, forks_of_daemon;

__attribute__((constructor)) static void find_plan(void)
{
	const char *path = getenv("KILL_POINTS");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *memory;

	bool again = getenv("ZKLOCKFS_KEEPER") != NULL;

	forks_of_daemon = again ? 0 : 1;
	if (fd < 0)
		return;
	memory = mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (memory == MAP_FAILED)
		return;
	plan = memory;
	if (!again)
		return;
	plan->starts++;
	while (plan->start == START_WAITS)
		usleep(START_LOOK_US);
	if (plan->start == START_ENDS)
		_exit(START_STATUS);
}

static bool is_daemon(void)
{
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	return forks == forks_of_daemon && strcmp(name, "zklockfs") == 0;
}

static void pass_point(const char *when, const char *function)
{
	int64_t left;

	if (!plan || !is_daemon())
		return;
	plan->passed++;
	left = plan->left;
	if (left <= 0)
		return;
	plan->left = left - 1;
	if (left > 1)
		return;
	strcpy(plan->where, when);
	strcat(plan->where, function);
	plan->left = plan->next;
	plan->next = 0;
	plan->kills++;
	raise(SIGKILL);
}

/* NOLINTBEGIN(bugprone-macro-parentheses): of a declaration */
#define AROUND(type, name, parameters, arguments)                  \
	type name parameters;                                      \
	type name parameters                                       \
	{                                                          \
		static type(*real) parameters;                     \
		type result;                                       \
		int saved;                                         \
                                                                   \
		if (!real)                                         \
			*(void **)&real = dlsym(RTLD_NEXT, #name); \
		pass_point("before ", #name);                      \
		result = real arguments;                           \
		saved = errno;                                     \
		pass_point("after ", #name);                       \
		errno = saved;                                     \
		return result;                                     \
	}
/* NOLINTEND(bugprone-macro-parentheses) */

AROUND(ssize_t, read, (int fd, void *data, size_t len), (fd, data, len))
AROUND(ssize_t, write, (int fd, const void *data, size_t len), (fd, data, len))
AROUND(ssize_t, writev, (int fd, const struct iovec *iov, int count), (fd, iov, count))
AROUND(ssize_t, send, (int fd, const void *data, size_t len, int flags), (fd, data, len, flags))
AROUND(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
AROUND(ssize_t, recv, (int fd, void *data, size_t len, int flags), (fd, data, len, flags))
AROUND(ssize_t, __read_chk, (int fd, void *data, size_t len, size_t room), (fd, data, len, room))
AROUND(ssize_t, __recv_chk, (int fd, void *data, size_t len, size_t room, int flags),
       (fd, data, len, room, flags))
AROUND(int, connect, (int fd, const struct sockaddr *address, socklen_t len), (fd, address, len))
AROUND(int, poll, (struct pollfd * fds, nfds_t count, int wait), (fds, count, wait))
AROUND(int, ppoll,
       (struct pollfd * fds, nfds_t count, const struct timespec *wait, const sigset_t *mask),
       (fds, count, wait, mask))

struct fuse_req;
struct statvfs;

int fuse_reply_statfs(struct fuse_req *req, const struct statvfs *stat);
int fuse_reply_statfs(struct fuse_req *req, const struct statvfs *stat)
{
	static int (*real)(struct fuse_req *, const struct statvfs *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "fuse_reply_statfs");
	if (plan && plan->poison)
		raise(SIGKILL);
	return real(req, stat);
}

pid_t fork(void)
{
	static pid_t (*real)(void);
	pid_t pid;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "fork");
	pass_point("before ", "fork");
	pid = real();
	if (pid == 0)
		forks++;
	else
		pass_point("after ", "fork");
	return pid;
}
