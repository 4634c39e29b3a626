/* SPDX-License-Identifier: MIT */
#include "daemon/mount.h"

#include "daemon/supervisor.h"
#include "files/file.h"
#include "files/ops.h"
#include "guard/guardian.h"
#include "guard/scan.h"
#include "hold/hold.h"
#include "host/log.h"
#include "request/parked.h"
#include "setup/mountpoint.h"
#include "setup/ready.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ANOTHER_UID ((uid_t)-1)

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

/* How long loop_ask() may take to find out whether a lock file is open. */
#define LOOK_US 2000000

struct open_look {
	struct loop *loop;
	bool open; /* a process has a lock file of the mount open */
};

/* A lock file is known by its inode number, since containers get lock files under other names, by
 * bind mounts. Each open lock file has a node, and this child process has a copy of it. */
static bool found_open(void *ctx, const struct seen_file *file)
{
	struct open_look *look = ctx;
	const struct mount_records *at = &look->loop->mount_records;
	const struct node *node = node_by_ino(look->loop->front->nodes, file->ino);

	look->open |= node && node->kind == NODE_LOCK_FILE &&
	              scan_is_on_mount(file, at->mount_id, at->device);
	return !look->open;
}

/* A look through /proc may have to wait for other processes: so a child does it. */
static int look_for_open(void *ctx)
{
	struct open_look look = {.loop = ctx};
	const char *device = look.loop->mount_records.device;

	if (mountpoint_lists(device))
		return 1;
	if (mountpoint_is_gone(device))
		return 0;
	scan_all(device, found_open, &look);
	return look.open;
}

/* Whether a lock file is open. The end of the kernel's connection proves nothing: `umount -f` and
 * an abort end it while programs may still be at work. 1, 0, or -1: it is not known. */
static int ask_for_open(struct loop *loop)
{
	if (!loop->gone)
		return -1;
	if (!loop->front->holds->held && !loop->front->holds->waiting)
		return 0;
	return loop_ask(loop, look_for_open, loop, LOOK_US);
}

/* An unmount by force ends within this time, if it ends. */
#define FORCE_MS 1000
#define FORCE_LOOK_US 10000000

static int look_for_dead(void *ctx)
{
	const struct loop *loop = ctx;

	return mountpoint_stays_dead(loop->mount_records.mountpoint, FORCE_MS);
}

/* The kernel's connection has ended while the mount served. If nobody had a lock file open, and the
 * mount is off the tree, then it was unmounted. Otherwise somebody has used force, and nobody has
 * any use of what is left. */
static bool ended_by_force(struct loop *loop, int is_open)
{
	struct lc_status status;
	bool dead = loop_ask(loop, look_for_dead, loop, FORCE_LOOK_US) == 1;

	if (!dead && is_open != 1)
		return false;
	lc_status(loop->front->lc, &status);
	log_line(
		LC_ERROR,
		"the kernel's connection was ended by force (umount -f, or an abort): the mount is "
		"lost, with %u lock%s held%s",
		status.holders, status.holders == 1 ? "" : "s",
		store_head(loop->front->records.store)->elsewhere ? ", " STORE_ELSEWHERE : "");
	return true;
}

/* libfuse has opened the device; from now on it is ours. */
static bool take_device(struct frontend *front)
{
	int fd = fuse_session_fd(front->pending.fuse), end = requests_begin(front);
	int device = end < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	bool taken = device >= 0 && dup3(end, fd, O_CLOEXEC) == fd;

	front->answers.fd = device;
	if (end >= 0)
		close(end);
	return taken;
}

/* A pipe without a reader polls POLLERR, as the device of an unmounted filesystem. So libfuse
 * unmounts nothing: it would take whatever is topmost at the path. */
static bool make_libfuse_see_the_end(struct fuse_session *fuse)
{
	int fds[2];
	bool sees;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return false;
	close(fds[0]);
	sees = dup3(fds[1], fuse_session_fd(fuse), O_CLOEXEC) >= 0;
	close(fds[1]);
	return sees;
}

static void close_device(struct frontend *front)
{
	if (make_libfuse_see_the_end(front->pending.fuse))
		fuse_session_unmount(front->pending.fuse);
	close(front->pending.libfuse);
	front->pending.libfuse = -1;
	answers_end(front);
}

static bool end_mount(struct frontend *front, const char *mountpoint)
{
	close_device(front);
	mountpoint_detach_now(mountpoint, NULL);
	return false;
}

/* Mounts unless a zklockfs is there: of two that start at the same time only one mounts. */
static bool mount_alone(struct fuse_session *fuse, const char *mountpoint)
{
	int lock = mountpoint_lock(mountpoint);
	bool taken = mountpoint_is_zklockfs(mountpoint);
	/* If it fails, libfuse or fusermount3 says why, in one line. */
	bool mounted = !taken && fuse_session_mount(fuse, mountpoint) == 0;

	if (lock >= 0)
		close(lock);
	if (taken)
		log_line(LC_ERROR, "%s: zklockfs is mounted there already", mountpoint);
	return mounted;
}

bool mount_begin(struct options *options, struct loop *loop)
{
	struct mount_records *at = &loop->mount_records;
	struct frontend *front = loop->front;
	const char *aborted = mountpoint_aborted(/* is_mounted = */ false);

	if (aborted) {
		log_line(LC_ERROR, "cannot start: %s", aborted);
		return false;
	}
	front->pending.fuse = fuse_session_new(&options->fuse_args, &ops, sizeof(ops), front);
	if (!front->pending.fuse) {
		log_line(LC_ERROR, "cannot begin a FUSE session");
		return false;
	}
	if (!mount_alone(front->pending.fuse, options->mountpoint))
		return false;
	if (front->serving) {
		log_line(LC_ERROR,
		         "libfuse %s has answered the kernel's first request by itself, and no "
		         "program could take over from this one",
		         fuse_pkgversion());
		return end_mount(front, options->mountpoint);
	}
	if (!take_device(front) || set_nonblocking(front->answers.fd) < 0) {
		log_line(LC_ERROR, "cannot take over the kernel's requests: %s", strerror(errno));
		return end_mount(front, options->mountpoint);
	}
	if (!mountpoint_identify(options->mountpoint, &at->mount_id, at->device, NULL)) {
		log_line(LC_ERROR, "%s: the mount cannot be found", options->mountpoint);
		return end_mount(front, options->mountpoint);
	}
	ready_leave_session();
	guardian_mounted(front->guardian, at->mount_id, at->device);
	if (options->all_users && !guardian_reaches(front->guardian, ANOTHER_UID))
		log_line(LC_WARNING, "on_lost cannot stop the processes of other users: they may "
		                     "be at work when the next one holds");
	supervisor_give(SUPERVISOR_GUARDIAN, guardian_fd(front->guardian));
	supervisor_give(SUPERVISOR_GUARDIAN_PAGE, guardian_page(front->guardian));
	supervisor_give(SUPERVISOR_DEVICE, front->answers.fd);
	return true;
}

void mount_adopt(struct options *options, struct loop *loop, const struct codec *codec)
{
	bool crashed = loop->reload.crash.signal != 0;
	struct frontend *front = loop->front;
	char end[32];

	front->pending.fuse = fuse_session_new(&options->fuse_args, &ops, sizeof(ops), front);
	snprintf(end, sizeof(end), "/dev/fd/%d", requests_begin(front));
	if (!front->pending.fuse || fuse_session_mount(front->pending.fuse, end) < 0)
		codec->give_up("no FUSE session can begin");
	if (!requests_serve_init(front))
		codec->give_up("libfuse does not answer");
	if (crashed)
		answers_emit_again(front);
	requests_replay(front, crashed, inbox_keep_in_doubt);
	if (!requests_replay_read(front, inbox_keep_in_doubt))
		codec->give_up("there was no memory for a request");
	lc_claimed(front->lc);
}

int mount_serve(struct loop *loop)
{
	const struct mount_records *at = &loop->mount_records;
	struct frontend *front = loop->front;
	bool served;
	int status, is_open;

	loop->fuse = front->pending.fuse;
	served = loop_serve(loop);
	status = served && loop->error == 0 ? 0 : EXIT_MOUNT;
	is_open = ask_for_open(loop);
	if (loop->stage == LOOP_SERVES && loop->gone && ended_by_force(loop, is_open))
		status = store_head(front->records.store)->elsewhere ? EXIT_USAGE : EXIT_MOUNT;
	else
		log_line(LC_INFO,
		         loop->terms > 1 || loop->stage == LOOP_OVER ? "leaving" : "unmounted");
	if (is_open == 0)
		files_end(front);
	if (loop->stage == LOOP_SERVES) {
		supervisor_leaves();
		mountpoint_detach_now(at->mountpoint, loop->gone ? NULL : at->device);
	}
	close_device(front);
	holds_drop_all(front);
	lc_drain(front->lc);
	return status;
}
