/* SPDX-License-Identifier: MIT
 *
 * trace.h - `-d`: one line in the log for each request of the kernel, when it is answered:
 *
 *   flock LOCK_EX|LOCK_NB build/flock by pid 4242, uid 1000: EAGAIN after 1.204 ms
 *
 * It is made of the request's bytes and its answer. So no operation has to tell anything, and none
 * can be forgotten.
 */
#ifndef FS_TRACE_H
#define FS_TRACE_H

#include "request/frontend.h"

/* A request was read from the kernel. NULL: nothing is told of it, or front->traces is false. */
struct traced *trace_begin(struct frontend *front, const struct fuse_in_header *header);
/* The kernel has interrupted it. */
void trace_interrupt(const struct request *request);
/* The request is answered, by 0 or -errno. */
void trace_end(const struct request *request, int error);

#endif
