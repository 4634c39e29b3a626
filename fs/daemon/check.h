/* SPDX-License-Identifier: MIT
 *
 * check.h - `zklockfs --check`: would a mount with these options work, and be safe? It is the start
 * without its last steps: nothing goes to the background, the engine only examines the ensemble
 * (lc_examine()), and nothing is mounted. What the start refuses is refused here in the same words.
 * Each line is a verdict (log_verdicts()), with ok or with what to do. Nothing is changed.
 */
#ifndef FS_CHECK_H
#define FS_CHECK_H

#include "daemon/loop.h"

/* Once the processes beside the daemon have begun. The status to exit with: 0, or EXIT_MOUNT if
 * something is wrong. */
int check_all(struct options *options, struct loop *loop);

#endif
