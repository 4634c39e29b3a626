/* SPDX-License-Identifier: MIT
 *
 * told.h - what the options tell libfuse, as libfuse reads it.
 */
#ifndef TESTS_TOLD_H
#define TESTS_TOLD_H

#include "setup/options.h"

#include <stddef.h>
#include <stdlib.h>

struct told {
	char *fsname, *subtype, *context, *others[3];
	int default_permissions, nosuid, nodev, noexec, allow_other, ro, noatime;
	int unknown;
};

static inline int count_unknown(void *data, const char *arg, int key, struct fuse_args *outargs)
{
	(void)arg;
	(void)key;
	(void)outargs;
	((struct told *)data)->unknown++;
	return 0;
}

/* As fuse_opt_parse(). */
static inline int told_read(const struct options *options, struct told *ret_told)
{
	static const struct fuse_opt table[] = {
		{"fsname=%s", offsetof(struct told, fsname), 0},
		{"subtype=%s", offsetof(struct told, subtype), 0},
		{"context=%s", offsetof(struct told, context), 0},
		{"fscontext=%s", offsetof(struct told, others[0]), 0},
		{"defcontext=%s", offsetof(struct told, others[1]), 0},
		{"rootcontext=%s", offsetof(struct told, others[2]), 0},
		{"default_permissions", offsetof(struct told, default_permissions), 1},
		{"nosuid", offsetof(struct told, nosuid), 1},
		{"nodev", offsetof(struct told, nodev), 1},
		{"noexec", offsetof(struct told, noexec), 1},
		{"allow_other", offsetof(struct told, allow_other), 1},
		{"ro", offsetof(struct told, ro), 1},
		{"noatime", offsetof(struct told, noatime), 1},
		FUSE_OPT_END,
	};
	struct fuse_args args = FUSE_ARGS_INIT(options->fuse_args.argc, options->fuse_args.argv);
	int r;

	*ret_told = (struct told){0};
	r = fuse_opt_parse(&args, ret_told, table, count_unknown);
	fuse_opt_free_args(&args);
	return r;
}

static inline void told_free(struct told *told)
{
	free(told->fsname);
	free(told->subtype);
	free(told->context);
	for (int i = 0; i < 3; i++)
		free(told->others[i]);
}

#endif
