/* SPDX-License-Identifier: MIT
 *
 * family.h - which process sends a request, and its ancestors. FUSE gives the number of the thread,
 * 0 when that is not visible here.
 *
 * The loop reads nothing of another process that can wait. exec closes close-on-exec files while it
 * holds its process's exec_update_lock, and a FUSE file of this mount, or of a filesystem that
 * hangs, gets a FLUSH then. A process that waits for that lock waits as long, and for ever if it is
 * this daemon, which has to answer the FLUSH. In /proc/PID (Linux 6.18, tried one by one)
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
#include "pure/codec.h"

/* Both together tell a process from a later one of its number. */
struct process_id {
	pid_t pid;      /* 0: not visible */
	uint64_t start; /* as of ancestry; 0: not known */
};

static inline bool process_id_is(const struct process_id *a, const struct process_id *b)
{
	return a->pid > 0 && a->pid == b->pid && a->start == b->start;
}

/* The process that sends a request. */
struct caller {
	struct process_id process;
	char command[LC_COMMAND_MAX + 1]; /* "-": not known */
};

/* The next three are for requests that the thread itself waits for: otherwise its number may be
 * another thread's by now. The command may be 10 ms old. */

/* Its process; 0: not visible. */
pid_t family_process(pid_t thread);
/* Its process and command, without `start`. */
void family_see(pid_t thread, struct caller *ret_caller);
/* With `start`, which is read from stat: only while the thread is in an open(2), flock(2) or
 * fcntl(2) that we have not answered. Then its process is not in exec, which ends all other threads
 * before it takes the lock, and can end none that waits for us. Not so in a FLUSH, which exec
 * itself may send, nor in a READ or WRITE, which need not be waited for. */
void family_identify(pid_t thread, struct caller *ret_caller);

struct ancestry {
	pid_t parent;
	uint64_t start; /* in clock ticks since boot: with the pid, the process itself */
	bool ended;     /* a zombie */
	char command[LC_COMMAND_MAX + 1];
};

/* By stat, which may wait: not for the loop. */
bool family_ancestry(pid_t pid, struct ancestry *ret_ancestry);

/* A process and its ancestors, nearest first, without init. These are numbers: only a pidfd of
 * family_watch() tells whether one of them is still the process that had it before. */
struct lineage {
	size_t count;
	pid_t of[];
};

/* Only while a request of it is pending. Malloced; NULL: it is not visible, or no memory. */
struct lineage *family_lineage(pid_t pid);
/* How many generations above that process is, 0 for itself; -1: it is none of them. */
int lineage_find(const struct lineage *lineage, pid_t pid);

/* A pidfd, which tells a process from a later one of its number. To be called while the process is
 * known to live. -1 and errno: it is not visible, or gone, or descriptors are scarce (EMFILE).
 * FAMILY_FDS_RESERVED of the `most` that the daemon may have are for what it cannot do without. */
#define FAMILY_FDS_RESERVED 128
int family_watch(pid_t pid);
/* It is not wanted any more; -1: nothing. The next family_watch() of that process may give it
 * again: a program that takes a lock in a loop is watched each time. */
void family_unwatch(pid_t pid, int pidfd);
void family_limit(uint64_t most);
/* False for -1. A zombie does not live. */
bool family_lives(int pidfd);

void caller_save_load(struct codec *codec, struct caller *caller);
/* A lineage that was read is malloced. */
struct lineage *lineage_save_load(struct codec *codec, struct lineage *lineage);

#endif
