/* SPDX-License-Identifier: MIT
 *
 * watchdog.h - for test builds (-DZKLOCKFS_WATCHDOG=milliseconds): says so when one turn of the
 * loop took longer, whether it waited or computed. The time in which the machine did not
 * let it run does not count, nor a turn in which the process was stopped (SIGSTOP). On a
 * busy machine it may wait for longer, but not compute.
 */
#ifndef FS_WATCHDOG_H
#define FS_WATCHDOG_H

#ifdef ZKLOCKFS_WATCHDOG
void watchdog_begin(void);
void watchdog_end(void);
#else
static inline void watchdog_begin(void) {}
static inline void watchdog_end(void) {}
#endif

#endif
