/* SPDX-License-Identifier: MIT
 *
 * env_file.h - the file that EnvironmentFile= of a unit names, as systemd reads it. Pure.
 */
#ifndef FS_ENV_FILE_H
#define FS_ENV_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Reads the assignment at *at, or the first one behind it, and sets *at behind that. Name and value
 * lie in the text, which is overwritten. False: there is none. */
bool env_file_next(char **at, char **ret_name, char **ret_value);
/* Replaces the value by the words that it becomes where a command line of the unit has `$NAME`,
 * each with a 0 behind it: args.h. Returns their length. */
size_t env_file_words(char *value);

#endif
