/* SPDX-License-Identifier: MIT
 *
 * look.h - whether one process has lost a lock, and the signal that it gets; guardian.h says who is
 * stopped. A look at another process may hang, so children of the guardian do it. The guardian
 * itself calls only look_prepare() and look_stop_late().
 */
#ifndef FS_LOOK_H
#define FS_LOOK_H

#include "guard/scan.h"
#include "guard/slots.h"
#include "guard/stop.h"

/* A slot, as the guardian knows it. */
struct loss {
	unsigned word;    /* the slot's */
	int64_t since_us; /* when the guardian saw the loss first */
	enum stop_cause cause;
	bool searched; /* a search for all who have the file open has ended since */
};

struct opener {
	pid_t pid;
	int slot;
};

/* The numbers of lost slots, sorted, each once. */
struct numbers {
	size_t count;
	uint64_t of[GUARDIAN_SLOTS];
};

/* What all children write. */
struct look_shared {
	/* Some process was to be stopped, and may not be gone yet; or, for want of descriptors or
	 * memory, nobody knows whether one is to be stopped. */
	_Atomic bool found;
	_Atomic unsigned unseen; /* processes that could not be looked into */
	/* By slot: of which loss the opener was dealt with last, and with which signal; or who is
	 * about to send one has claimed that. */
	_Atomic uint64_t dealt[GUARDIAN_SLOTS];
	/* By slot: the word of a loss whose opener lives, and has closed the file. */
	_Atomic unsigned closed[GUARDIAN_SLOTS];
};

#define GENERATIONS_MAX 128

/* The process that is looked at. */
struct subject {
	struct process process;
	bool asked, termed, killed;       /* asked: process_ask() */
	unsigned scarce;                  /* proc_scarce() when the look at its file began */
	size_t generations;               /* 0: not known yet */
	pid_t ancestors[GENERATIONS_MAX]; /* the process itself first */
};

/* A child has this as it was when the child was forked. */
struct look {
	struct page *page;
	enum on_lost on_lost;
	struct stops *stops;
	struct look_shared *shared;
	int used;
	struct loss losses[GUARDIAN_SLOTS];
	int opener_count;
	struct opener openers[GUARDIAN_SLOTS]; /* of lost slots, by pid */
	struct numbers inos, uids;             /* of the lock files, and of those who took them */
	bool any_held;                         /* some slot was held */
	unsigned filled;                       /* page->filled then */
	struct subject subject;
};

/* When the opener of the slot is due for SIGKILL. INT64_MAX: it was dealt with, or has lost
 * nothing. */
int64_t look_kill_us(const struct look *look, int slot);
/* The openers of lost slots, and what else is searched for. */
void look_prepare(struct look *look);
/* A child that may have claimed a signal has died: whoever is due for one is due still. */
void look_unclaim(struct look *look);
/* The slot is lost, and its opener is due for a signal. */
bool look_is_due(const struct look *look, int slot);
/* The opener of openers[first] and of those behind it that have its pid: the opener is stopped if
 * it has the file open, or if that cannot be seen in a moment. */
void look_at_opener(struct look *look, int first);
/* The opener of the slot is due for so long that it is stopped without a look. This never waits. */
void look_stop_late(struct look *look, int slot, int64_t now);
/* A part of the process's descriptors, from that place on, for so much processor time. */
void look_at_process(struct look *look, pid_t pid, struct scan_place *place, int64_t cpu_us);

#endif
