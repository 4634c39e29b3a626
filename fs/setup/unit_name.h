/* SPDX-License-Identifier: MIT
 *
 * unit_name.h - what systemd calls a mount point: /mnt/zk-locks is the instance mnt-zk\x2dlocks;
 * and the command line by which its unit mounts it.
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

/* The file of its settings, with its path. Returns `file`. */
#define UNIT_FILE_MAX (UNIT_NAME_MAX + 32)
const char *unit_settings(const char *path, char file[UNIT_FILE_MAX]);
/* Its text, malloced; NULL: it cannot be read. */
char *unit_settings_read(const char *path, char file[UNIT_FILE_MAX]);
/* A name in it that systemd takes and nobody reads, such as SERVER or `export SERVERS`: writes
 * which one is meant. Returns `text`; "": nothing is wrong. */
#define UNIT_SLIP_MAX 128
const char *unit_slip(const char *name, char text[UNIT_SLIP_MAX]);
/* The command line of the unit that mounts at the path: its OPTIONS and its SERVERS stand before
 * the arguments. `slip`: the first one in the file. For one free(3); NULL: errno, the file cannot
 * be read, or there is no memory. */
char **unit_words(const char *path, int argc, char **argv, char file[UNIT_FILE_MAX],
                  char slip[UNIT_SLIP_MAX]);
/* Somebody may name a unit, `zklockfs@mnt-locks` or only `mnt-locks`: writes its mount point, if
 * that is a directory. Returns `path`, or NULL. */
const char *unit_meant(const char *word, char path[PATH_MAX]);
/* Writes what ends a line that says that nothing is mounted there: the unit that mounts there, or
 * the mount point that was meant. Returns `text`; "": nothing. */
#define UNIT_ADVICE_MAX (UNIT_NAME_MAX + 64)
const char *unit_advice(const char *word, char text[UNIT_ADVICE_MAX]);

#endif
