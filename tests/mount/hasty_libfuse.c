/* SPDX-License-Identifier: MIT
 *
 * hasty_libfuse.c - preloaded into a daemon, it is a libfuse that answers INIT in
 * fuse_session_mount(), as 3.19 may.
 */
#define FUSE_USE_VERSION 312
#include <dlfcn.h>
#include <fuse3/fuse_lowlevel.h>
#include <stdlib.h>

int fuse_session_mount(struct fuse_session *session, const char *mountpoint)
{
	int (*true_mount)(struct fuse_session *, const char *);
	struct fuse_buf buffer = {.mem = NULL};
	int r;

	*(void **)&true_mount = dlsym(RTLD_NEXT, "fuse_session_mount");
	r = true_mount(session, mountpoint);
	if (r == 0 && fuse_session_receive_buf(session, &buffer) > 0)
		fuse_session_process_buf(session, &buffer);
	free(buffer.mem);
	return r;
}
