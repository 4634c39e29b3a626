/* SPDX-License-Identifier: MIT
 *
 * silent_libfuse.c - preloaded into a daemon, it is a libfuse that writes its answers in a way that
 * the daemon does not know: it names a descriptor to which it does not write.
 */
#include <dlfcn.h>
#include <limits.h>
#include <sys/stat.h>

struct fuse_session;

int fuse_session_fd(struct fuse_session *session);

/* The daemon is told the device, to take it, but not what libfuse has instead. */
int fuse_session_fd(struct fuse_session *session)
{
	int (*true_fd)(struct fuse_session *);
	struct stat st;
	int fd;

	*(void **)&true_fd = dlsym(RTLD_NEXT, "fuse_session_fd");
	fd = true_fd(session);
	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) ? fd : INT_MAX;
}
