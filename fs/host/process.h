/* SPDX-License-Identifier: MIT
 *
 * process.h - one process: which it is, what the kernel says of it, whether it runs, its ancestors,
 * and a signal to it alone. FUSE gives the number of the thread that sends a request, 0 when that
 * is not visible here.
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
#ifndef FS_PROCESS_H
#define FS_PROCESS_H

#include "lockcore.h"
#include "pure/codec.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Each call below says which fields it sets. A pidfd tells the process from a later one of its
 * number; where the kernel has none (before 5.3), or a filter refuses it, its start does. */
struct process {
	pid_t pid;                        /* 0: not visible */
	int fd;                           /* its pidfd; -1: none */
	uint64_t start;                   /* in clock ticks since boot; 0: not known */
	pid_t parent;                     /* 0: not visible, or not known */
	uid_t real, saved;                /* its user */
	bool ended;                       /* a zombie, at that time */
	char command[LC_COMMAND_MAX + 1]; /* "-": not known */
};

static inline bool process_same(const struct process *a, const struct process *b)
{
	return a->pid > 0 && a->pid == b->pid && a->start == b->start;
}

/* ---- who asks ---- */

/* The next three are for requests that the thread itself waits for: otherwise its number may be
 * another thread's by now. The command may be 10 ms old. */

/* The process of the thread; 0: not visible. */
pid_t process_of(pid_t thread);
/* Sets pid and command. */
void process_see(pid_t thread, struct process *ret_process);
/* Sets pid, start and command, and reads stat for that: only while the thread is in an open(2),
 * flock(2) or fcntl(2) that we have not answered. Then its process is not in exec, which ends all
 * other threads before it takes the lock, and can end none that waits for us. Not so in a FLUSH,
 * which exec itself may send, nor in a READ or WRITE, which need not be waited for. */
void process_identify(pid_t thread, struct process *ret_process);

/* ---- what it is ---- */

/* Sets pid, parent, start, ended and command, by stat, which may wait: not for the loop. False:
 * there is none of that number. */
bool process_read(pid_t pid, struct process *ret_process);
/* Sets pid, parent, real and saved, by the pidfd, or by a pid, which may be a thread's. It waits
 * for nothing. With a pidfd (6.13) it costs the same for each process; without one the kernel
 * writes out all groups of the process, and for 65536 of them, as a user can have in a container,
 * it takes some 20 ms. False: it is not there. */
bool process_ask(struct process *process);
/* A number that no other process of this boot has, by the pidfd; 0: the kernel tells none (before
 * 6.9). */
uint64_t process_number(const struct process *process);
/* The one of that number and start. `number`: as once told by process_number(). Without a number it
 * reads stat of /proc, which may wait. */
bool process_is(const struct process *process, uint64_t start, uint64_t number);
/* kill(2) would let that user signal the process, whose users process_ask() has set. */
bool process_obeys(const struct process *process, uid_t uid);
/* This process may signal those of all users. */
bool process_may_signal_all(void);

/* ---- holding it ---- */

/* Sets pid and pidfd, of a process that runs or not. 0; or -errno: -ESRCH, there is none; or no
 * pidfd can be had. */
int process_hold(pid_t pid, struct process *ret_process);
/* Sets pid, and pidfd or start, of a process that runs. 0; or -errno: there is none of that number,
 * or it cannot be told from others. */
int process_open(pid_t pid, struct process *ret_process);
void process_close(struct process *process);
/* The process has not ended meanwhile: files that were read by its number were its own. */
bool process_runs(const struct process *process);
/* 0 or -errno; -ESRCH: the process has ended. */
int process_signal(const struct process *process, int signal);

/* ---- watching its life ---- */

/* A pidfd. To be called while the process is known to live. -1: errno; it is not visible, or
 * gone, or descriptors are scarce (EMFILE). PROCESS_FDS_RESERVED of the `most` that the daemon may
 * have are for what it cannot do without. */
#define PROCESS_FDS_RESERVED 128
int process_watch(pid_t pid);
/* The pidfd is not wanted any more; -1: there is none. The next process_watch() of that process may
 * give it again: a program that takes a lock in a loop is watched each time. */
void process_unwatch(pid_t pid, int pidfd);
void process_limit_fds(uint64_t most);
/* False for -1. A zombie does not live. */
bool process_lives(int pidfd);

/* ---- its ancestors ---- */

/* The process and its ancestors, nearest first, without init, `most` at most. The search ends when
 * this thread's processor time is that; INT64_MAX: never. */
size_t process_line(pid_t pid, pid_t *ret_line, size_t most, int64_t end_ns);

/* The same, for keeping. These are numbers: only a pidfd of process_watch() tells whether one of
 * them is still the process that had it before. */
struct lineage {
	size_t count;
	pid_t of[];
};

/* Only while a request of it is pending. Malloced; NULL: it is not visible, or no memory. */
struct lineage *lineage_read(pid_t pid);
/* How many generations above that process is, 0 for itself; -1: it is none of them. */
int lineage_find(const struct lineage *lineage, pid_t pid);

/* ---- over a reload ---- */

/* Saves or loads pid, start and command. */
void process_save_load(struct codec *codec, struct process *process);
/* A descriptor of process_watch(), or -1. After a crash it is opened anew: -1 if the process of
 * that number is another one now, or none. Where the kernel cannot tell, one is taken for the same
 * that the user might signal. */
int process_life_save_load(struct codec *codec, pid_t pid, uid_t uid, int life);
/* A lineage that was read is malloced. */
struct lineage *lineage_save_load(struct codec *codec, struct lineage *lineage);

#endif
