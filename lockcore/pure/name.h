/* SPDX-License-Identifier: MIT
 *
 * name.h - names, made and parsed: those of a mount's entries, those of other clients' entries, and
 * those that a lock can have. Pure.
 *
 *   _c_<uuid>-<host>.<pid>-lock-<seq>      exclusive
 *   _c_<uuid>-<host>.<pid>-rlock-<seq>     shared
 *
 * The shape is Curator's, so that its InterProcessMutex, go-zookeeper and both
 * recipes of ZooKeeper wait for our entries: 36 characters of UUID after `_c_`,
 * `lock-` right before the digits. For other clients it is another one: clients.h.
 * The first half of the UUID is the session's,
 * the second the taker's: an entry with our first half is ours, whatever else is
 * in the name (two containers may both be host `app`, pid 7).
 */
#ifndef LOCKCORE_NAME_H
#define LOCKCORE_NAME_H

#include "pure/clients.h"

/* From here on the server may repeat numbers instead of counting on (3.6+ sticks at
 * 2^31-1, older ones turn negative): entries are then ordered by czxid. */
#define NAME_NUMBER_ZONE (INT64_C(2147483648) - 65536)

struct entry_name {
	int64_t number;     /* the sequence number, negative once it wrapped */
	enum lc_mode mode;  /* shared only for the spellings known to mean it */
	const char *client; /* whose names have that form: a phrase, as "kazoo"; "-": unknown */
	unsigned home;      /* in whose locks it waits for all others: bits of struct clients */
	bool of_mount;      /* any mount's, by its form; then the fields below are set */
	uint64_t session_half, taker_half;
	char host[LC_HOST_MAX + 1];
	pid_t pid;
};

/* False: no entry, the name does not end in a sequence number. */
bool name_parse(const char *name, struct entry_name *ret_name);

/* The name a sequential create is sent with, digits still missing. */
#define NAME_PREFIX_MAX (3 + 36 + 1 + LC_HOST_MAX + 1 + 10 + 9 + 1)
/* With the digits, and a minus sign. */
#define NAME_MAX_WHOLE (NAME_PREFIX_MAX + 11)
void name_format(char ret_prefix[NAME_PREFIX_MAX], const struct clients *clients,
                 uint64_t session_half, uint64_t taker_half, const char *host, pid_t pid,
                 enum lc_mode mode);

/* Host names as they go into entries: cut to the first label and LC_HOST_MAX,
 * anything but letters, digits, '-' and '_' replaced; never empty. */
void name_host(char ret_host[LC_HOST_MAX + 1], const char *host);

/* Can a lock have this name? 0, -EINVAL, -ENAMETOOLONG. `ret_why`: the reason, a sentence. */
int name_check(const char *name, const char **ret_why);

/* ZooKeeper takes each of its characters. */
bool name_has_good_characters(const char *name);

/* Ends in ten digits: would be taken for an entry. */
bool name_is_numbered(const char *name);

#endif
