/* SPDX-License-Identifier: MIT
 *
 * lock_dir.h - the files in the directory of every lock, beside the locks below: its doors (door.h)
 * and these files. Pure.
 */
#ifndef FS_LOCK_DIR_H
#define FS_LOCK_DIR_H

#include "tree/node.h"

struct lock_file {
	const char *name; /* NULL ends them */
	enum node_kind kind;
};

extern const struct lock_file lock_files[];

/* NULL: no such file. */
const struct lock_file *lock_file_find(const char *name);
/* Why no lock can have this name, as lc_config.reserved. */
const char *lock_dir_reserved(const char *name);

#endif
