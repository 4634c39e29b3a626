/* SPDX-License-Identifier: MIT
 *
 * clock.h - the clock that leases are measured by.
 *
 * It must not run slower than the servers' by more than lease.h allows, and must go on
 * while the machine sleeps, as the session does. No clock of the kernel does both: NTP
 * daemons slew CLOCK_MONOTONIC and CLOCK_BOOTTIME (chrony by up to 8 %), and
 * CLOCK_MONOTONIC_RAW stands still during suspend. So it is
 *
 *   CLOCK_MONOTONIC_RAW + (CLOCK_BOOTTIME - CLOCK_MONOTONIC)
 *
 * where the difference is the time that was slept, since those two are slewed alike.
 *
 * Its seconds differ from those of the clocks that timers run by: a wait for a moment of this clock
 * may end early or late. After a wait read the clock again.
 */
#ifndef FS_CLOCK_H
#define FS_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Microseconds; of no meaning but their differences. The same for every process of the
 * machine that is in the same time namespace, but for CLOCK_BRACKET_NS. Never goes back. */
int64_t clock_now_us(void);

/* The time slept is known to this; usually to less than a microsecond. */
#define CLOCK_BRACKET_NS 20000

/* One of the kernel's clocks, in nanoseconds. */
int64_t clock_read_ns(clockid_t id);

/* poll(2) of one descriptor, until this moment of clock_now_us(). A signal ends no wait. */
int clock_poll(int fd, short events, int64_t until_us);

#endif
