/* SPDX-License-Identifier: MIT
 *
 * guard.h - the guardian's own half: the process that watches the deadline. It waits for
 * nothing but its time and the daemon. Its children look at other processes (search.h).
 */
#ifndef FS_GUARD_H
#define FS_GUARD_H

#include "guard/slots.h"

/* The life of a process that was just forked. `fd`: to the daemon; all others are closed. */
_Noreturn void guard_run(struct page *page, int fd, enum on_lost on_lost);

#endif
