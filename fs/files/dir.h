/* SPDX-License-Identifier: MIT
 *
 * dir.h - an open directory: opendir, readdir.
 */
#ifndef FS_DIR_H
#define FS_DIR_H

#include "request/face.h"

void dir_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void dir_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void dir_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
/* False: it is not an open directory. */
bool dir_close(struct face *face, uint64_t fh);
void dirs_end(struct face *face);
/* An open directory. */
void dir_stored_carry(struct carry *carry, struct face *face, struct stored *stored);

#endif
