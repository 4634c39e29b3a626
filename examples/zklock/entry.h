/* SPDX-License-Identifier: MIT
 *
 * entry.h - the entries in the queue of a lock, read from its files.
 */
#ifndef ZKLOCK_ENTRY_H
#define ZKLOCK_ENTRY_H

#include "clean.h"
#include "mount.h"

#include <stdint.h>

/* The texts are "-" where nothing is known, and may hold anything: see clean.h. */
struct entry {
	char name[300]; /* of its file in queue/ */
	bool shared;
	bool held;
	bool foreign; /* of a client that is no zklockfs */
	bool kept;    /* it was released, and its least time has not passed */
	bool covered; /* by another filesystem: whether it holds is not known */
	char *text;   /* the file; NULL if the entry has gone meanwhile */
	const char *host, *pid, *uid, *command, *queued_since, *held_since, *token, *session,
		*renewed_ago, *reason;
};

struct health;

/* In the order of the queue; to be freed by entries_free(). false and errno. The time that it takes
 * depends on how many hold, and hardly on how many wait. */
bool entries_list(const struct mount *mount, const char *lock, struct entry **ret_entries,
                  size_t *ret_count);
/* Reads what the entry's file says, once. */
void entry_read(const struct mount *mount, const char *lock, struct entry *entry);
/* How long it has held, or waited; -1: not known. */
int64_t entry_age(const struct entry *entry, const struct health *health);
/* Writes `process 4242 (deploy.sh) on web1`, fit to be shown. A blank in the name of the program is
 * `_`, as in `holder`: nobody can write more into a line than that. */
#define ENTRY_WHO_MAX 200
const char *entry_who(const struct entry *entry, char buffer[ENTRY_WHO_MAX]);
/* Writes `: nightly backup`; "" if there is no reason, or only the name of the program, which
 * zklock gives without -r and entry_who() has already. */
const char *entry_why(const struct entry *entry, char buffer[CLEAN_MAX]);
/* Whether the entry is of a process that has started this one: who waits for it waits for ever. */
bool entry_is_own(const struct entry *entry, const struct health *health);
/* The part of its name behind number and mode: `PID-HOST`, or `foreign`. */
const char *entry_owner(const struct entry *entry);
/* The process in its name; 0 if there is none. */
pid_t entry_pid(const struct entry *entry);
void entries_free(struct entry *entries, size_t count);

#endif
