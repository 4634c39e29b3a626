/* SPDX-License-Identifier: MIT
 *
 * subuid.h - which uids are one user's: the ranges of subordinate uids in /etc/subuid. Without it
 * a user with 65536 of them (rootless containers) has as many shares of every limit.
 *
 * The uids of a range are one user with its owner, if /etc/passwd has the owner or the owner stands
 * there as a number. Otherwise the range is a user of its own. Those of root's ranges (LXD) stay
 * users of their own: they are not root's, and uids of a directory service may be among them.
 * Ranges that overlap are one; if their owners differ it is a user of its own.
 *
 * Neither file is asked for by way of NSS, which may wait for a network. Of each the first
 * SUBUID_BYTES_MAX bytes are read.
 */
#ifndef FS_SUBUID_H
#define FS_SUBUID_H

#include "pure/per_user.h"

#define SUBUID_BYTES_MAX (1024 * 1024)

/* Reads /etc/subuid, if it has changed, and tells per_user_ranges(). It looks once a second at
 * most. */
void subuid_look(void);

/* Pure: the ranges as per_user_ranges() takes them, from the texts of the two files, which it
 * writes into. Returns how many there are. *ret_ranges is to be freed; NULL without memory. */
size_t subuid_parse(char *subuid, char *passwd, struct per_user_range **ret_ranges);

#endif
