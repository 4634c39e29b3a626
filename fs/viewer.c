/* SPDX-License-Identifier: MIT
 *
 * viewer.c - see viewer.h.
 */
#include "viewer.h"

#include <string.h>

struct viewer *viewer_of(struct face *face, fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	gid_t groups[VIEWER_GROUPS_MAX];
	/* From /proc/PID/status, which does not wait; root needs none. */
	int found = ctx->uid == 0 ? 0 : fuse_req_getgroups(req, VIEWER_GROUPS_MAX, groups);
	size_t count = found < 0                   ? 0
	               : found < VIEWER_GROUPS_MAX ? (size_t)found
	                                           : VIEWER_GROUPS_MAX;
	struct viewer *viewer =
		budget_alloc(&face->files, ctx->uid, sizeof(*viewer) + count * sizeof(groups[0]));

	if (!viewer)
		return NULL;
	viewer->uid = ctx->uid;
	viewer->gid = ctx->gid;
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
