/* SPDX-License-Identifier: MIT
 *
 * fixed.h - the files that each directory of a kind has under fixed names: in a lock beside its
 * lock files (lock_file.h) and the locks below, and all of .zklockfs. Pure.
 */
#ifndef FS_FIXED_H
#define FS_FIXED_H

#include "tree/facts.h"
#include "tree/node.h"

struct fixed_file {
	enum node_kind in; /* directories of this kind */
	const char *name;  /* NULL ends them */
	enum node_kind kind;
	mode_t mode;   /* for stat(2) */
	off_t size;    /*   the same */
	view_fn *view; /* its text is made from facts of the mount; or NULL */
};

extern const struct fixed_file fixed_files[];

/* NULL: no such file. */
const struct fixed_file *fixed_find(enum node_kind in, const char *name);
/* NULL: files of this kind have no fixed name. */
const struct fixed_file *fixed_of(enum node_kind kind);
/* Why no lock can have this name, as lc_config.reserved. */
const char *fixed_reserved(const char *name);

#endif
