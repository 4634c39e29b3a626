/* SPDX-License-Identifier: MIT
 *
 * report.h - what zklocktop shows, as text that one process writes after it has read the
 * mount, and another one parses. A report is lines of fields between tabs; no field holds a
 * tab or a newline. The first line is what is said of the mount, or of the lock.
 */
#ifndef ZKLOCK_REPORT_H
#define ZKLOCK_REPORT_H

#include "mount.h"
#include "table.h"

#include <stdio.h>

struct place_in_queue {
	const char *name; /* of the entry's file */
	bool held, shared;
	int64_t since_ms; /* how long it holds or waits; -1: not known */
	const char *host, *pid, *command, *token, *reason;
};

struct report {
	char *text;
	const char *headline;
	const char *trouble; /* what could not be read, and why; or NULL */
	struct table table;  /* of a report of all locks; its text is not used */
	struct place_in_queue *places;
	size_t count;
};

/* Says which lock's queue is meant, and which of its entries are to be read in full. */
struct question {
	const struct mount *mount;
	char lock[LOCK_NAME_MAX + 1];
	size_t first, count;
};

struct eviction {
	const struct mount *mount;
	char lock[LOCK_NAME_MAX + 1];
	char entry[300];
	char who[300]; /* its process, for a question */
	bool held;
};

/* Each reads or writes the mount, and may take as long as that does. */
void report_locks(FILE *out, const void *question);
void report_queue(FILE *out, const void *question);
void report_eviction(FILE *out, const void *eviction);

/* Both take the text. false: no memory. */
bool report_parse_locks(char *text, struct report *ret_report);
bool report_parse_queue(char *text, struct report *ret_report);
void report_free(struct report *report);

#endif
