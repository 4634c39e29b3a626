/* SPDX-License-Identifier: MIT
 *
 * parts.h - the parts of fs/ that allocate memory and do not depend on FUSE.
 */
#ifndef OOM_PARTS_H
#define OOM_PARTS_H

struct part {
	const char *name;
	/* NULL, or a text that says what is wrong. */
	const char *(*play)(void);
};

extern const struct part parts[];
extern const int part_count;

#endif
