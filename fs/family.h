/* SPDX-License-Identifier: MIT
 *
 * family.h - who a process is. FUSE tells the thread that asks, 0 when it is not
 * visible here; what is read of /proc is bounded and never waits.
 */
#ifndef FS_FAMILY_H
#define FS_FAMILY_H

#include "lockcore.h"

struct person {
	pid_t pid;                          /* 0: not visible */
	uint64_t start;                     /* as of ancestry; 0 then */
	char command[LC_COMMAND_MAX + 1];   /* "-" then */
};

/* Only while the request is pending: afterwards the number may be another's. The command may
 * be that of 10 ms ago. */
void family_identify(pid_t thread, struct person *ret_person);

struct ancestry {
	pid_t parent;
	uint64_t start;       /* in clock ticks since boot: with the pid, the process itself */
	bool ended;           /* a zombie */
};

bool family_ancestry(pid_t pid, struct ancestry *ret_ancestry);

struct process {
	pid_t pid;
	uint64_t start;
};

/* A process and those it descends from, nearest first; without init, which is
 * everybody's. All of them lived when this was read. */
struct lineage {
	size_t count;
	struct process of[];
};

/* Only while its request is pending. Malloced; NULL: it is not visible, or no memory. */
struct lineage *family_lineage(const struct person *person);
/* How far up that process stands, 0 for itself; -1: it is none of them. */
int lineage_find(const struct lineage *lineage, pid_t pid, uint64_t start);
#endif
