/* SPDX-License-Identifier: MIT
 *
 * file.h - open, read, write ... of all kinds of files.
 */
#ifndef FS_FILE_H
#define FS_FILE_H

#include "request/frontend.h"

void file_open(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi);
void file_read(fuse_req_t fuse, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void file_readdir(fuse_req_t fuse, fuse_ino_t ino, size_t size, off_t off,
                  struct fuse_file_info *fi);
void file_write(fuse_req_t fuse, fuse_ino_t ino, const char *data, size_t size, off_t off,
                struct fuse_file_info *fi);
void file_fsync(fuse_req_t fuse, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void file_poll(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi,
               struct fuse_pollhandle *ph);
void file_flush(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi);
void file_release(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi);
void file_flock(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi, int op);
void file_getlk(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock);
void file_setlk(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock,
                int sleep);

/* No RELEASE will come any more: locks are given back; once the engine is gone all files end. */
void files_end(struct frontend *front);

#endif
