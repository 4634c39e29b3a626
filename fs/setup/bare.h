/* SPDX-License-Identifier: MIT
 *
 * bare.h - the mount point as it is while nothing is mounted. Whoever can make files there then
 * gets local files that look like locks. So an empty directory of root's is made unusable, for root
 * too: mode 000, and immutable as by chattr(1) +i. Mounting over it works.
 */
#ifndef FS_BARE_H
#define FS_BARE_H

enum bare_state {
	BARE_PROTECTED, /* it is immutable, and empty */
	BARE_OPEN,      /* it is empty */
	BARE_USED,      /* something is in it */
	BARE_FOREIGN,   /* it is another user's */
	BARE_OTHER,     /* another filesystem is mounted there */
	BARE_UNKNOWN,   /* it cannot be read */
};

/* Changes nothing. */
enum bare_state bare_look(const char *mountpoint);
/* Makes it unusable if it is BARE_OPEN, and logs what was done, or why it was not. */
void bare_protect(const char *mountpoint);

#endif
