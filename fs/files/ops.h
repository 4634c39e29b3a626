/* SPDX-License-Identifier: MIT
 *
 * ops.h - the table of all operations of FUSE; lookup, mkdir, rmdir.
 */
#ifndef FS_OPS_H
#define FS_OPS_H

#include "request/frontend.h"

extern const struct fuse_lowlevel_ops ops;

#endif
