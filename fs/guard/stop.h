/* SPDX-License-Identifier: MIT
 *
 * stop.h - a signal to a process that has lost a lock, and what is told of it: a mark at the slot
 * for the daemon's history, a count, and a line in the log. Called in the guardian's children,
 * which meet the same process again and again until it is gone; each signal is told once.
 */
#ifndef FS_STOP_H
#define FS_STOP_H

#include "guard/slots.h"
#include "host/process.h"
#include "host/row.h"

/* Why the lock is lost. */
enum stop_cause {
	STOP_LEASE, /* the lease is not renewed; the guardian itself has seen it */
	STOP_OVERDUE,
	STOP_TOLD, /* the daemon has said it, and has logged why */
};

/* The cause of a loss that is seen now; `until_us`: of its slot. */
enum stop_cause stop_cause_of(const struct page *page, enum on_lost on_lost, int64_t until_us);

struct stop {
	int slot;
	unsigned word; /* the slot's, of the loss */
	pid_t opener;  /* the slot's */
	enum stop_cause cause;
	const struct process *process;
};

struct stops;

/* NULL: no memory. Shared with all children. */
struct stops *stops_create(struct page *page);
/* No lock is lost any more. */
void stops_forget(struct stops *stops);
/* Whether the process was dealt with in this loss. To be noted after the signal: whoever sends it
 * may be killed before. */
bool stop_is_noted(struct stops *stops, const struct stop *stop);
void stop_note(struct stops *stops, const struct stop *stop);

/* What the log says of a process and its lock. */
struct stop_names {
	bool wanted; /* a line is to be written */
	uid_t taker;
	char lock[ROW_WORD_MAX(SLOT_LOCK_MAX) + 1];
	/* "pid 42 (make) uid 0", and by whose lock if that is another process's */
	char text[ROW_WORD_MAX(LC_COMMAND_MAX) + 128];
};

/* Before the signal: afterwards both may be gone. This reads /proc, which may take its time. */
void stop_name(struct stops *stops, const struct stop *stop, int signal,
               struct stop_names *ret_names);
/* At once. */
void stop_send(struct stops *stops, const struct stop *stop, int signal,
               const struct stop_names *names);
/* The process has the lock's file open, and its user may not be signalled for the taker. */
void stop_spare(struct stops *stops, const struct stop *stop);
/* All processes were looked at, but for so many that may not be; the slot is lost still. */
void stop_note_unseen(struct stops *stops, int slot, unsigned word, unsigned unseen);

#endif
