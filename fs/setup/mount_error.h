/* SPDX-License-Identifier: MIT
 *
 * mount_error.h - the line in the log that says why there is no mount, or no longer.
 */
#ifndef FS_MOUNT_ERROR_H
#define FS_MOUNT_ERROR_H

#include "setup/options.h"
#include "setup/servers.h"

/* `error`: of start_find(), start_connect(), or lc_status' why. */
void mount_error_log(const struct options *options, const struct servers *servers, int error);
/* A server has given a session, and said what is in the way: lc_status' met. */
void mount_error_log_obstacle(const struct options *options, const char *obstacle);

#endif
