/* SPDX-License-Identifier: MIT
 *
 * unmounted.h - the mount point as it is while nothing is mounted. Whoever can make files there
 * then gets local files that look like locks. So an empty directory of root's is made unusable, for
 * root too: mode 000, and immutable as by chattr(1) +i. Mounting over it works.
 */
#ifndef FS_UNMOUNTED_H
#define FS_UNMOUNTED_H

enum unmounted_state {
	UNMOUNTED_PROTECTED, /* it is immutable, and empty */
	UNMOUNTED_OPEN,      /* it is empty */
	UNMOUNTED_USED,      /* something is in it */
	UNMOUNTED_FOREIGN,   /* it is another user's */
	UNMOUNTED_OTHER,     /* another filesystem is mounted there */
	UNMOUNTED_UNKNOWN,   /* it cannot be read */
};

/* Changes nothing. */
enum unmounted_state unmounted_look(const char *mountpoint);
/* The same of what a mount at this absolute path hides. For root alone: others get
 * UNMOUNTED_UNKNOWN. */
enum unmounted_state unmounted_look_below(const char *mountpoint);
/* Makes it unusable if it is UNMOUNTED_OPEN, and logs what was done, or why it was not. */
void unmounted_protect(const char *mountpoint);

#endif
