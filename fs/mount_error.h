/* SPDX-License-Identifier: MIT
 *
 * mount_error.h - the line in the log that says why there is no mount, or no longer.
 */
#ifndef FS_MOUNT_ERROR_H
#define FS_MOUNT_ERROR_H

#include "options.h"

/* `error`: of loop_find(), loop_connect(), or lc_status' why. `problem`: with a server's
 * name, or NULL. */
void mount_error_log(const struct options *options, const char *problem, int error);

#endif
