/* SPDX-License-Identifier: MIT
 *
 * mount_error.h - the line in the log that says why there is no mount, or no longer.
 */
#ifndef FS_MOUNT_ERROR_H
#define FS_MOUNT_ERROR_H

#include "setup/options.h"
#include "setup/servers.h"

/* `error`: of start_find(), start_connect(), or lc_status' why. `obstacle`: what a server has said
 * that has given a session; NULL. */
void mount_error_log(const struct options *options, const struct servers *servers, int error,
                     const char *obstacle);

#endif
