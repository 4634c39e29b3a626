/* SPDX-License-Identifier: MIT
 *
 * kernel_limit.h - how long the kernel lets a FUSE request wait.
 *
 * Since Linux 6.15 an administrator can set fs.fuse.max_request_timeout. A mount on
 * which one request, a waiting open too, gets older than that is aborted as a whole,
 * holders included, and no server can refuse. So it is read before mounting, and
 * every wait is answered earlier.
 */
#ifndef FS_KERNEL_LIMIT_H
#define FS_KERNEL_LIMIT_H

#include <stdint.h>

/* The limit that both sysctls give together, in seconds; 0: no limit. Pure. */
int64_t kernel_limit_effective(int64_t by_default_s, int64_t max_s);
/* Read from this kernel; 0: no limit. */
int64_t kernel_limit_read(void);
/* How long a wait may last before it is answered; INT64_MAX without a limit. Pure. */
int64_t kernel_limit_wait_us(int64_t limit_s);

#endif
