/* SPDX-License-Identifier: MIT
 *
 * why.h - the one line that says why there is no mount, or not any longer.
 */
#ifndef FS_WHY_H
#define FS_WHY_H

#include "options.h"

/* How long the start goes on trying. */
int64_t why_patience_us(const struct options *options);

/* `error`: of loop_find(), loop_connect(), or lc_status' why. `problem`: with a server's
 * name, or NULL. */
void why_log(const struct options *options, const char *problem, int error);

#endif
