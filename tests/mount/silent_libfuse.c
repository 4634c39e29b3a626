/* SPDX-License-Identifier: MIT
 *
 * silent_libfuse.c - preloaded into a daemon, it is a libfuse that writes its answers in a way that
 * the daemon does not know: it names a descriptor to which it does not write.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>

struct fuse_session;

int fuse_session_fd(struct fuse_session *session);

/* Only at first, when the daemon takes the device, is it true. */
int fuse_session_fd(struct fuse_session *session)
{
	static int (*true_fd)(struct fuse_session *);

	if (true_fd)
		return INT_MAX;
	*(void **)&true_fd = dlsym(RTLD_NEXT, "fuse_session_fd");
	return true_fd(session);
}
