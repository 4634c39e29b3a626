/* SPDX-License-Identifier: MIT
 *
 * args.h - the arguments of a command line as bytes, each with a 0 behind it, as in
 * /proc/PID/cmdline: argz_create(3) makes them.
 */
#ifndef FS_ARGS_H
#define FS_ARGS_H

#include <stddef.h>

/* More is no command line of ours. */
#define ARGS_BYTES_MAX 65536

/* A whole argv, with a copy of the bytes, for one free(3); the program's name stays the caller's.
 * NULL: no memory, or the bytes are none. */
char **args_split(const char *program, const char *bytes, size_t len);
/* How many there are in argv. */
int args_count(char *const argv[]);

#endif
