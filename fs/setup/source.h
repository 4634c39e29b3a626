/* SPDX-License-Identifier: MIT
 *
 * source.h - what is wrong with SERVERS[/ROOT] of the command line, in words for who wrote it.
 */
#ifndef FS_SOURCE_H
#define FS_SOURCE_H

/* Both return what is wrong, NULL: nothing. `source`, `mountpoint`: the arguments as given; the
 * second may be NULL. */
const char *servers_wrong(const char *servers, const char *source, const char *mountpoint);
const char *root_wrong(const char *root);

#endif
