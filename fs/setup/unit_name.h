/* SPDX-License-Identifier: MIT
 *
 * unit_name.h - what systemd calls a mount point: /mnt/zk-locks is the instance mnt-zk\x2dlocks.
 */
#ifndef FS_UNIT_NAME_H
#define FS_UNIT_NAME_H

#include <limits.h>

/* Each byte may need four, and a NUL follows. */
#define UNIT_NAME_MAX (4 * PATH_MAX)

/* Writes what `systemd-escape --path` prints. The path is absolute, and not / itself. Returns
 * `name`. */
const char *unit_name(const char *path, char name[UNIT_NAME_MAX]);
/* The file of its settings has the same name without backslashes: EnvironmentFile= in the unit
 * takes them away. Returns `name`. */
const char *unit_file(const char *path, char name[UNIT_NAME_MAX]);

#endif
