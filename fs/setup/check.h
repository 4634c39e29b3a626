/* SPDX-License-Identifier: MIT
 *
 * check.h - `zklockfs --check`: would a mount with these options work, and be safe? A line for each
 * thing that zklockfs-running(7) asks for, with ok or with what to do. It changes nothing, and may
 * wait: it is no daemon.
 */
#ifndef FS_CHECK_H
#define FS_CHECK_H

#include "setup/options.h"

struct ensemble;

/* Makes the port to the servers at these addresses. 0 or -errno. */
typedef int check_port_fn(const struct options *options, const char *addresses,
                          struct ensemble **ret_ensemble);
typedef void check_port_end_fn(struct ensemble *ensemble);

/* The status to exit with: 0, or EXIT_MOUNT if something is wrong. */
int check_all(const struct options *options, check_port_fn *port, check_port_end_fn *port_end);

#endif
