/* SPDX-License-Identifier: MIT
 *
 * dir.h - an open directory: opendir, readdir.
 */
#ifndef FS_DIR_H
#define FS_DIR_H

#include "request/frontend.h"

void dir_open(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi);
/* Frees the listings of names that are remembered. No other call comes after it. */
void dir_lists_finish(struct lists *lists);
record_save_load_fn dir_record_save_load; /* of struct frontend */

#endif
