/* SPDX-License-Identifier: MIT
 *
 * credentials.h - the `user:password` of -o credentials=FILE, and where it stays: one
 * page of memory that is in no core dump and in no process forked later.
 */
#ifndef FS_CREDENTIALS_H
#define FS_CREDENTIALS_H

#define CREDENTIALS_MAX 1023 /* bytes of the line */

/* The file's line, or NULL: *ret_why is a sentence. The file must be a regular one that
 * group and others can neither read nor write. */
char *credentials_read(const char *path, const char **ret_why);
/* From now on forked processes find it empty. To be called by the daemon, which is one
 * itself. */
void credentials_confine(char *credentials);
/* Overwrites and frees; NULL is nothing. */
void credentials_wipe(char *credentials);

#endif
