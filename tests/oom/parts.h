/* SPDX-License-Identifier: MIT
 *
 * parts.h - the parts of fs/ that allocate and know nothing of FUSE.
 */
#ifndef OOM_PARTS_H
#define OOM_PARTS_H

struct part {
	const char *name;
	/* NULL, or what is wrong. */
	const char *(*play)(void);
};

extern const struct part parts[];
extern const int part_count;

#endif
