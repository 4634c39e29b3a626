/* SPDX-License-Identifier: MIT
 *
 * about.h - the facts of the mount, learnt when a file of .zklockfs is opened.
 */
#ifndef FS_ABOUT_H
#define FS_ABOUT_H

#include "request/frontend.h"

/* Fills the facts, and has `view` write its text from them. 0 or -errno: those of `view`. */
int about_text(struct frontend *front, uid_t reader, view_fn *view, struct text *ret_text);

#endif
