/* SPDX-License-Identifier: MIT
 *
 * trace.h - `-d`: one line in the log for each request of the kernel, when it is answered:
 *
 *   flock LOCK_EX|LOCK_NB build/flock by pid 4242, uid 1000: EAGAIN after 1.204 ms
 *
 * It is read off the bytes that come from the kernel and go to it. So no operation has to
 * tell anything, and none can be forgotten.
 */
#ifndef FS_TRACE_H
#define FS_TRACE_H

#include "request/frontend.h"

/* A request was read from the kernel. Without front->traces nothing happens. */
void trace_request(struct frontend *front, const void *request, size_t len);
/* The request of that number is answered: 0, or -errno. */
void trace_answer(struct frontend *front, uint64_t unique, int error);
void trace_finish(struct frontend *front);

#endif
