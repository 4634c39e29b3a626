/* SPDX-License-Identifier: MIT
 *
 * covers.h - other filesystems that are mounted below the mount: they hide locks from all, and a
 * user may have put them there (fusermount3). A child reads mountinfo, which may be long, when the
 * kernel says that it has changed, and not more often than every few seconds.
 */
#ifndef FS_COVERS_H
#define FS_COVERS_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#define COVERS_MAX 512 /* bytes of the text */

struct covers {
	int tree;              /* mountinfo; -1: it cannot be watched */
	int reader;            /* the child's answer; -1: none is at work */
	bool changed;          /* since the last look */
	int64_t next_us;       /* no look before that */
	char text[COVERS_MAX]; /* what is mounted where, for people; "": nothing */
};

void covers_init(struct covers *covers);
void covers_finish(struct covers *covers);

/* The loop calls both, like lc_prepare() and lc_process(), once the mount serves. `device`: of the
 * mount. */
enum { COVERS_TREE, COVERS_READER, COVERS_POLLED };
int64_t covers_prepare(const struct covers *covers, int64_t now_us,
                       struct pollfd ret_fds[COVERS_POLLED]);
void covers_process(struct covers *covers, const char *mountpoint, const char *device,
                    int64_t now_us, const struct pollfd fds[COVERS_POLLED]);

#endif
