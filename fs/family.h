/* SPDX-License-Identifier: MIT
 *
 * family.h - who a process is. FUSE tells the thread that asks, 0 when it is not
 * visible here.
 *
 * The loop asks nothing of another process that can wait. exec closes what is
 * close-on-exec while it holds its process's exec_update_lock, and a FUSE file gets a
 * FLUSH then, from us or from a filesystem that hangs; whoever waits for that lock waits
 * as long, and if it is we who owe the answer, for ever. In /proc/PID (Linux 6.18, tried one
 * by one)
 *
 *   wait        stat, environ, maps, smaps, auxv, wchan, stack, syscall, io, personality,
 *               attr/, map_files/; fd/N, exe, cwd, root, ns/ when they are followed or read;
 *               and pidfd_getfd(2), ptrace(2), process_vm_readv(2)
 *   do not      status, comm, statm, limits, cgroup, mountinfo, sched, fdinfo/N, the names in
 *               fd/ and task/; and pidfd_open(2), poll(2) of a pidfd, kill(2)
 *
 * where stat does so on kernels with the fixes around CVE-2026-64375 (5.10.261, 5.15.212,
 * 6.1.178, 6.6.145, 6.12.97, 6.18.40). cmdline, environ and maps also want the mmap lock, which a
 * page fault on such a filesystem holds.
 */
#ifndef FS_FAMILY_H
#define FS_FAMILY_H

#include "lockcore.h"

struct person {
	pid_t pid;                        /* 0: not visible */
	uint64_t start;                   /* as of ancestry; 0: not known */
	char command[LC_COMMAND_MAX + 1]; /* "-": not known */
};

/* All three are for requests that the thread itself waits for, or its number may be another's by
 * now. What they tell may be of 10 ms ago. */

/* Its process; 0: not visible. */
pid_t family_process(pid_t thread);
/* Its process and command, without `start`. */
void family_see(pid_t thread, struct person *ret_person);
/* With `start`, which stands in stat: only while the thread is in an open(2), flock(2) or
 * fcntl(2) that we have not answered. Then its process is not in exec, which ends all other
 * threads before it takes the lock, and can end none that waits for us. Not so in a FLUSH,
 * which exec itself may send, nor in a READ or WRITE, which need not be waited for. */
void family_identify(pid_t thread, struct person *ret_person);

struct ancestry {
	pid_t parent;
	uint64_t start; /* in clock ticks since boot: with the pid, the process itself */
	bool ended;     /* a zombie */
};

/* By stat, which may wait: not for the loop. */
bool family_ancestry(pid_t pid, struct ancestry *ret_ancestry);

/* A process and those it descends from, nearest first; without init, which is
 * everybody's. They are numbers: whether one of them is a process that was known before,
 * that one's life tells. */
struct lineage {
	size_t count;
	pid_t of[];
};

/* Only while a request of it is pending. Malloced; NULL: it is not visible, or no memory. */
struct lineage *family_lineage(pid_t pid);
/* How far up that process stands, 0 for itself; -1: it is none of them. */
int lineage_find(const struct lineage *lineage, pid_t pid);

/* A pidfd, by which a process can be told from a later one of its number; while it is known to be
 * there. -1: it is not visible, or gone, or descriptors are scarce: of `most` that the daemon
 * may have FAMILY_FDS_RESERVED are kept for what it cannot do without. */
#define FAMILY_FDS_RESERVED 128
int family_watch(pid_t pid);
void family_limit(uint64_t most);
/* False for -1. A zombie does not live. */
bool family_lives(int pidfd);

#endif
