/* SPDX-License-Identifier: MIT
 *
 * clients.h - the clients of other projects, by the names of their entries, and what our entries
 * are called in a lock that is shared with some of them. Pure.
 *
 * Each client waits only for entries with names that it knows, and no name is known to all. So the
 * locks of a mount are shared with one family of clients: those that wait for the same names, by
 * whose names our entries go. A client of another family would not wait for them.
 */
#ifndef LOCKCORE_CLIENTS_H
#define LOCKCORE_CLIENTS_H

#include "lockcore.h"

/* What an entry of ours has around `_c_<uuid>-<host>.<pid>`. */
struct clients_name {
	const char *head, *tail; /* the tail comes before the number */
	unsigned home; /* in whose locks such an entry is at home: bits of struct clients */
};

/* A family. */
struct clients {
	const char *name; /* as the option says it */
	unsigned bit;
	struct clients_name ours[2]; /* by enum lc_mode */
	/* An entry may come with a number below those of others: a writer that also reads makes a
	 * second one with its own number, but only while its first one is there and holds. */
	bool late_readers;
};

#define CLIENTS_COUNT 5
extern const struct clients clients_all[CLIENTS_COUNT]; /* the first one is the default */

/* NULL: there is none of that name. */
const struct clients *clients_find(const char *name);

/* What clients have before the number, at the end of the text, or as all of it. */
struct clients_form {
	const char *text;
	enum lc_mode mode;
	enum { ENDING, WHOLE } place;
	unsigned home;
	const char *client; /* a phrase */
};

/* The form of a name, up to its number. One that nobody is known to use has "-" for a client, and
 * is at home with the default family. */
const struct clients_form *clients_form(const char *name, size_t len);

#endif
