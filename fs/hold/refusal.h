/* SPDX-License-Identifier: MIT
 *
 * refusal.h - why a lock is not to be had, in words for the log. Pure.
 */
#ifndef FS_REFUSAL_H
#define FS_REFUSAL_H

/* `error`: negative, as of lc_taken_fn and of open(2) of a lock file. A phrase without a capital
 * letter or a full stop. */
const char *refusal_text(int error);

#endif
