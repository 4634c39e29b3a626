/* SPDX-License-Identifier: MIT
 *
 * contact.h - what is told of the contact with the ensemble: lines of the log, sparingly, and the
 * line that `systemctl status` shows. The engine itself logs which server it lost and found.
 */
#ifndef FS_CONTACT_H
#define FS_CONTACT_H

#include "request/frontend.h"
#include "setup/options.h"
#include "setup/servers.h"

#define CONTACT_MAX 256 /* bytes of the line */

struct contact {
	bool is;          /* as the log has said it last */
	int64_t since_ms; /* wall clock; 0: never */
	int64_t away_us;  /* since when there is none; -1: there is, or it is not known */
	bool told_over;   /* that the lease is over */
	unsigned long sessions, losses; /* their counts at the last contact */
	int64_t looked_us;
	unsigned waiters;       /* the most at a look: memory_tend() */
	char told[CONTACT_MAX]; /* to systemd */
};

/* In every turn once the mount serves. */
void contact_tend(struct contact *contact, struct frontend *front, const struct options *options);
/* The mount leaves: tells systemd for which holders it waits. */
void contact_leaves(struct frontend *front);
/* Logs why there is no mount, or no longer. `error`: of start_find(), start_connect(), or `why` of
 * lc_status. */
void contact_log_error(const struct options *options, const struct servers *servers, int error);
/* A server has given a session, and said what is in the way: lc_status' met. */
void contact_log_obstacle(const struct options *options, const char *obstacle);
/* Saves or loads which numbers the log has told last. */
void contact_save_load(struct codec *codec, struct contact *contact);

#endif
