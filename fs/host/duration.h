/* SPDX-License-Identifier: MIT
 *
 * duration.h - "30s", "500ms", "5m", "2h": a whole number and one unit, as in the names of
 * lock files and options. Pure.
 */
#ifndef FS_DURATION_H
#define FS_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/* Microseconds. False: malformed, or more than 63 bits of them. */
bool duration_parse(const char *text, int64_t *ret_us);

#endif
