/* SPDX-License-Identifier: MIT */
#include "files/viewer.h"

#include "files/lists.h"
#include "host/clock.h"
#include "host/proc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Room for the lines before the groups, and for VIEWER_GROUPS_MAX groups. */
#define STATUS_BYTES 16384
/* The kernel writes out all groups of a process before it gives any: for 65536, as a user can
 * have in a container, that takes some 20 ms. A look that costs more than the first of these is
 * followed by a rest of this user. So many users can rest at a time; while they do, no others that
 * need a look have one. Together they cost the loop one part in 20, however many users one
 * container has. */
#define EXPENSIVE_NS 2000000
#define REST (20 * VIEWERS_RESTING_MAX)

/* From /proc/PID/status, which does not wait. The more is read at a time, the less often the kernel
 * writes all of it. */
static size_t read_groups(pid_t thread, gid_t groups[VIEWER_GROUPS_MAX])
{
	static char text[STATUS_BYTES + 1];
	const char *line;
	size_t count = 0;
	char *end;

	(void)proc_read_of(thread, "status", text, sizeof(text));
	line = strstr(text, "\nGroups:");
	if (!line)
		return 0;
	/* Behind each stands a space, if it is there as a whole. */
	for (line += strlen("\nGroups:"); count < VIEWER_GROUPS_MAX; line = end) {
		unsigned long group = strtoul(line, &end, 10);

		if (end == line || *end != ' ')
			break;
		groups[count++] = (gid_t)group;
	}
	return count;
}

/* Where the user's next rest is written down. NULL: the user has to wait for the end of one. */
static struct viewer_rest *find_rest(struct frontend *front, uid_t uid)
{
	struct viewer_rest *over = NULL;
	int64_t now = front->clock_us();

	for (size_t i = 0; i < VIEWERS_RESTING_MAX; i++) {
		struct viewer_rest *rest = &front->lists->viewers_rest[i];

		if (rest->until_us <= now)
			over = rest;
		else if (rest->uid == uid)
			return NULL;
	}
	return over;
}

struct viewer *viewer_of(struct frontend *front, struct request *req)
{
	const struct fuse_in_header *in = &req->in;
	gid_t groups[VIEWER_GROUPS_MAX];
	struct viewer *viewer;
	size_t count = 0;

	if (in->uid != 0) { /* root needs none */
		int64_t began = clock_read_ns(CLOCK_THREAD_CPUTIME_ID), took;
		struct viewer_rest *rest = find_rest(front, in->uid);

		if (!rest) {
			errno = EBUSY;
			return NULL;
		}
		count = read_groups((pid_t)in->pid, groups);
		took = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - began;
		if (took > EXPENSIVE_NS)
			*rest = (struct viewer_rest){
				.uid = in->uid,
				.until_us = front->clock_us() + took / 1000 * REST,
			};
	}
	viewer = budget_alloc(&front->files, in->uid, sizeof(*viewer) + count * sizeof(groups[0]));
	if (!viewer)
		return NULL;
	viewer->uid = in->uid;
	viewer->gid = in->gid;
	viewer->count = count;
	memcpy(viewer->groups, groups, count * sizeof(groups[0]));
	return viewer;
}

static bool is_in_group(const struct viewer *viewer, gid_t gid)
{
	if (viewer->gid == gid)
		return true;
	for (size_t i = 0; i < viewer->count; i++)
		if (viewer->groups[i] == gid)
			return true;
	return false;
}

/* `bits`: of one class, as 5 for r-x. */
static bool may_do(const struct viewer *viewer, const struct lc_attributes *lock, mode_t bits)
{
	mode_t mode = lock->mode;

	if (viewer->uid == 0)
		return true;
	if (viewer->uid == lock->uid)
		mode >>= 6;
	else if (is_in_group(viewer, lock->gid))
		mode >>= 3;
	return (mode & bits) == bits;
}

bool viewer_enters(const struct viewer *viewer, const struct lc_attributes *lock)
{
	return may_do(viewer, lock, 1);
}

bool viewer_lists(const struct viewer *viewer, const struct lc_attributes *lock)
{
	return may_do(viewer, lock, 5);
}
