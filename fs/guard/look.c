/* SPDX-License-Identifier: MIT */
#include "guard/look.h"

#include "host/clock.h"
#include "host/proc.h"
#include "host/process.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* An opener may have many descriptors and threads: the guardian looks at them for so long. */
#define OPENER_CPU_US 10000
/* A child that hangs, or many openers, delay an opener no longer than this: before the lease's end;
 * and after other losses, where the next holder waits until the file is closed. */
#define LATE_US 200000
#define LATE_TOLD_US 2000000

static bool is_lost(const struct look *look, int slot, const struct slot_now *now)
{
	return slot < look->used && STATE_OF(now->word) == SLOT_LOST &&
	       look->losses[slot].word == now->word;
}

/* False: for want of descriptors or memory nobody knows whose the process is, or whose file. The
 * process is looked at again. */
static bool is_sure(const struct look *look)
{
	return proc_scarce() == look->subject.scarce;
}

static void begin_subject(struct look *look, pid_t pid)
{
	look->subject =
		(struct subject){.process = {.pid = pid, .fd = -1}, .scarce = proc_scarce()};
}

/* ---- a signal ---- */

static bool may_stop(struct subject *subject, uid_t taker)
{
	if (taker == 0)
		return true;
	if (!subject->asked)
		subject->asked = process_ask(&subject->process);
	return subject->asked && process_obeys(&subject->process, taker);
}

static int64_t kill_us(const struct look *look, int slot)
{
	return look->losses[slot].since_us +
	       (look->on_lost == ON_LOST_KILL ? 0 : GUARDIAN_TERM_TO_KILL_US);
}

static int signal_now(const struct look *look, int slot)
{
	return clock_now_us() >= kill_us(look, slot) ? SIGKILL : SIGTERM;
}

static uint64_t dealing(const struct look *look, int slot, int signal)
{
	return (uint64_t)look->losses[slot].word << 8 | (unsigned)signal;
}

/* Somebody is about to send that signal. */
static uint64_t claimed(uint64_t dealing)
{
	return dealing | 0x80;
}

/* After the signal: if its sender hangs or dies before, the opener stays due. A child that hung may
 * come too late, when the slot is another hold's. */
static void deal(struct look *look, int slot, int signal)
{
	if (atomic_load(&look->page->slots[slot].word) == look->losses[slot].word)
		atomic_store(&look->shared->dealt[slot], dealing(look, slot, signal));
}

/* False: somebody else sends the signal, or has sent it. */
static bool claim(struct look *look, int slot, int signal)
{
	uint64_t done = dealing(look, slot, signal), is = atomic_load(&look->shared->dealt[slot]);

	return is != done && is != claimed(done) &&
	       atomic_compare_exchange_strong(&look->shared->dealt[slot], &is, claimed(done));
}

void look_unclaim(struct look *look)
{
	for (int i = 0; i < look->used; i++) {
		uint64_t term = claimed(dealing(look, i, SIGTERM));

		atomic_compare_exchange_strong(&look->shared->dealt[i], &term, 0);
	}
}

bool look_is_due(const struct look *look, int slot)
{
	uint64_t dealt = atomic_load(&look->shared->dealt[slot]);

	if (STATE_OF(look->losses[slot].word) != SLOT_LOST)
		return false;
	return dealt != dealing(look, slot, SIGKILL) &&
	       (dealt != dealing(look, slot, SIGTERM) || signal_now(look, slot) == SIGKILL);
}

int64_t look_kill_us(const struct look *look, int slot)
{
	uint64_t dealt = atomic_load(&look->shared->dealt[slot]);

	return STATE_OF(look->losses[slot].word) != SLOT_LOST ||
	                       dealt == dealing(look, slot, SIGKILL)
	               ? INT64_MAX
	               : kill_us(look, slot);
}

/* To some programs a second SIGTERM says more than the first one. False: somebody else sends it to
 * the opener, or nobody knows whether this process is to be stopped. */
static bool stop(struct look *look, int slot, uid_t taker, int signal)
{
	struct subject *subject = &look->subject;
	const struct stop stop = {
		.slot = slot,
		.word = look->losses[slot].word,
		.opener = slots_look(look->page, slot).pid,
		.cause = look->losses[slot].cause,
		.process = &subject->process,
	};
	bool opener = stop.opener == subject->process.pid;
	bool may = may_stop(subject, taker);
	struct stop_names names;

	if (!is_sure(look))
		return false;
	if (!may) {
		if (opener)
			stop_spare(look->stops, &stop);
		return true;
	}
	atomic_store(&look->shared->found, true);
	stop_name(look->stops, &stop, signal, &names);
	if (signal == SIGTERM &&
	    !(opener ? claim(look, slot, SIGTERM) : !stop_is_noted(look->stops, &stop)))
		return false;
	if (signal == SIGKILL || !subject->termed)
		stop_send(look->stops, &stop, signal, &names);
	subject->termed = true;
	subject->killed |= signal == SIGKILL;
	if (opener)
		deal(look, slot, signal);
	else
		stop_note(look->stops, &stop);
	return true;
}

/* ---- the opener ---- */

/* The process has the same lock file open by another hold. */
static bool holds_too(const struct look *look, const struct process *process, uint64_t ino)
{
	int used = atomic_load(&look->page->used);

	if (!look->any_held && atomic_load(&look->page->filled) == look->filled)
		return false;
	for (int i = 0; i < used; i++) {
		struct slot_now now = slots_look(look->page, i);

		if (STATE_OF(now.word) == SLOT_HELD && now.pid == process->pid && now.ino == ino &&
		    process_is(process, now.start, now.number))
			return true;
	}
	return false;
}

/* Whether each of its lost files was seen. */
struct own {
	const struct look *look;
	int first, count;
	bool all;
	bool seen[GUARDIAN_SLOTS];
};

static bool is_on_mount(const struct look *look, const struct seen_file *file)
{
	return scan_is_on_mount(file, look->page->mount_id, look->page->device);
}

static bool see_own(void *ctx, const struct seen_file *file)
{
	struct own *own = ctx;
	const struct look *look = own->look;
	int on_mount = -1;

	own->all = true;
	for (int i = 0; i < own->count; i++) {
		if (look->page->slots[look->openers[own->first + i].slot].ino == file->ino) {
			on_mount = on_mount < 0 ? is_on_mount(look, file) : on_mount;
			own->seen[i] |= on_mount;
		}
		own->all &= own->seen[i];
	}
	return !own->all;
}

/* True: of all its files was seen whether they are open. */
static bool look_for_own(struct own *own, pid_t pid)
{
	const char *device = own->look->page->device;
	struct scan_place place = {0}, threads = {0};

	if (scan_process(pid, device, &place, OPENER_CPU_US, see_own, own) < 0)
		return false;
	if (!own->all && !place.more)
		scan_threads(pid, device, &threads, OPENER_CPU_US, see_own, own);
	return own->all || (!place.more && !threads.more);
}

/* False: somebody else sends the signal, or nobody knows yet whether it is to be sent. */
static bool stop_opener(struct look *look, int slot, int signal)
{
	struct slot_now now = slots_look(look->page, slot);

	if (is_lost(look, slot, &now) &&
	    process_is(&look->subject.process, now.start, now.number) &&
	    !holds_too(look, &look->subject.process, now.ino))
		return stop(look, slot, now.uid, signal);
	return is_sure(look);
}

/* The processes that have the file open are to be stopped now. A search may have passed them by. */
static void note_closed(struct look *look, int slot)
{
	atomic_store(&look->shared->closed[slot], look->losses[slot].word);
	atomic_store(&look->shared->found, true);
}

void look_at_opener(struct look *look, int first)
{
	static struct own own;
	pid_t pid = look->openers[first].pid;
	bool runs, looked;
	struct process ref;

	begin_subject(look, pid);
	runs = process_open(pid, &ref) == 0;
	if (!runs && !is_sure(look))
		return;
	own = (struct own){.look = look, .first = first};
	while (first + own.count < look->opener_count &&
	       look->openers[first + own.count].pid == pid)
		own.count++;
	looked = runs && look_for_own(&own, pid) && is_sure(look);
	begin_subject(look, pid);
	look->subject.process = ref;
	for (int i = 0; i < own.count; i++) {
		int slot = look->openers[first + i].slot, signal = signal_now(look, slot);
		bool closed = looked && !own.seen[i];

		if (!look_is_due(look, slot))
			continue;
		if (closed)
			note_closed(look, slot);
		if (!runs || closed || stop_opener(look, slot, signal))
			deal(look, slot, signal);
	}
	if (runs)
		process_close(&ref);
}

/* Whoever has claimed a signal needs nothing but a processor to send it. */
static int64_t late_us(const struct look *look, int slot, int signal)
{
	bool is_claimed =
		atomic_load(&look->shared->dealt[slot]) == claimed(dealing(look, slot, signal));

	return look->losses[slot].cause == STOP_LEASE && !is_claimed ? LATE_US : LATE_TOLD_US;
}

void look_stop_late(struct look *look, int slot, int64_t now_us)
{
	const struct loss *loss = &look->losses[slot];
	int64_t due_us = now_us >= kill_us(look, slot) ? kill_us(look, slot) : loss->since_us;
	int signal = signal_now(look, slot);
	struct slot_now now;

	if (now_us < due_us + late_us(look, slot, signal))
		return;
	now = slots_look(look->page, slot);
	/* Without a number another process may have that pid, and only stat could tell. */
	if (now.number == 0)
		return;
	begin_subject(look, now.pid);
	if (process_hold(now.pid, &look->subject.process) == 0) {
		atomic_store(&look->shared->dealt[slot], 0); /* whoever has claimed it was ended */
		(void)stop_opener(look, slot, signal);
		process_close(&look->subject.process);
	}
	if (is_sure(look))
		deal(look, slot, signal);
}

/* ---- to whom a descriptor belongs ---- */

static void find_ancestors(struct subject *subject)
{
	pid_t pid = subject->process.pid;

	if (pid > 1)
		subject->generations =
			process_line(pid, subject->ancestors, GENERATIONS_MAX, INT64_MAX);
}

/* The slot was filled for this ancestor, and not for another process of its pid. */
static bool is_of(const struct look *look, const struct slot_now *now, int generation)
{
	const struct subject *subject = &look->subject;
	struct process process;
	bool is;

	if (generation == 0)
		return process_is(&subject->process, now->start, now->number);
	if (process_open(now->pid, &process) < 0)
		return false;
	is = process_is(&process, now->start, now->number);
	process_close(&process);
	return is;
}

static int generation_of(const struct subject *subject, pid_t pid)
{
	for (size_t i = 0; pid > 0 && i < subject->generations; i++)
		if (subject->ancestors[i] == pid)
			return (int)i;
	return GENERATIONS_MAX;
}

enum { UNKNOWN = -1, BYSTANDER = -2 };

/* The slot by which the process, or its nearest ancestor that is known, opened the lock file.
 * UNKNOWN: none of them did. BYSTANDER: one of them opened it, and holds nothing. A slot that holds
 * is preferred to a lost one of the same process. */
static int nearest_opener(struct look *look, uint64_t ino, struct slot_now *ret_now)
{
	int used = atomic_load(&look->page->used), found = UNKNOWN, nearest = GENERATIONS_MAX;

	if (look->subject.generations == 0)
		find_ancestors(&look->subject);
	for (int i = 0; i < used; i++) {
		struct slot_now now = slots_look(look->page, i);
		enum slot_state state = STATE_OF(now.word);
		int generation;

		if (state == SLOT_FREE || now.ino != ino)
			continue;
		generation = generation_of(&look->subject, now.pid);
		if (generation == GENERATIONS_MAX || generation > nearest ||
		    (generation == nearest && state != SLOT_HELD) || !is_of(look, &now, generation))
			continue;
		if (state == SLOT_OPEN) {
			found = found == UNKNOWN ? BYSTANDER : found;
			continue;
		}
		nearest = generation;
		found = i;
		*ret_now = now;
	}
	return found;
}

static bool opener_lives(const struct slot_now *now)
{
	struct process process;
	bool lives;

	if (now->pid == 0)
		return true; /* cannot be told */
	if (process_open(now->pid, &process) < 0)
		return false; /* or stop() finds that nobody is sure */
	lives = process_is(&process, now->start, now->number);
	process_close(&process);
	return lives;
}

/* Whoever has inherited the file is younger than its opener. zklock is older, and is passed it. */
static bool is_younger(const struct process *process, pid_t opener_pid)
{
	struct process opener, now;

	if (!process_read(opener_pid, &opener) || !process_read(process->pid, &now))
		return false;
	return now.start != opener.start ? now.start > opener.start : now.pid > opener.pid;
}

/* The process may keep the lock of the slot, after the end of the process in between. */
static bool may_be_heir(const struct look *look, int slot, const struct slot_now *now)
{
	if (!opener_lives(now))
		return true;
	return atomic_load(&look->shared->closed[slot]) == now->word &&
	       is_younger(&look->subject.process, now->pid);
}

/* The process descends from no known opener. While the opener has the file open, somebody may have
 * passed the descriptor to the process, perhaps unasked. While another process holds by this lock
 * file, the descriptor may be of that one. */
static void look_at_orphan(struct look *look, uint64_t ino)
{
	int used = atomic_load(&look->page->used);

	for (int i = 0; i < used; i++) {
		struct slot_now now = slots_look(look->page, i);

		if (STATE_OF(now.word) == SLOT_HELD && now.ino == ino)
			return;
	}
	for (int i = 0; i < used; i++) {
		struct slot_now now = slots_look(look->page, i);

		if (now.ino == ino && is_lost(look, i, &now) && may_be_heir(look, i, &now))
			(void)stop(look, i, now.uid, signal_now(look, i));
	}
}

/* ---- any process ---- */

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void sort_numbers(struct numbers *numbers)
{
	size_t left = 0;

	qsort(numbers->of, numbers->count, sizeof(numbers->of[0]), compare_numbers);
	for (size_t i = 0; i < numbers->count; i++)
		if (left == 0 || numbers->of[left - 1] != numbers->of[i])
			numbers->of[left++] = numbers->of[i];
	numbers->count = left;
}

static bool has_number(const struct numbers *numbers, uint64_t number)
{
	return bsearch(&number, numbers->of, numbers->count, sizeof(number), compare_numbers);
}

/* False: the process has been killed. */
static bool look_at_file(void *ctx, const struct seen_file *file)
{
	struct look *look = ctx;
	struct slot_now now = {0};
	int slot;

	/* A file of another filesystem may have the same number. */
	if (!has_number(&look->inos, file->ino) || !is_on_mount(look, file))
		return true;
	if (!is_sure(look)) {
		look->subject.generations = 0; /* some of these may have been missed */
		look->subject.scarce = proc_scarce();
	}
	slot = nearest_opener(look, file->ino, &now);
	if (slot >= 0 && is_lost(look, slot, &now))
		(void)stop(look, slot, now.uid, signal_now(look, slot));
	else if (slot == UNKNOWN)
		look_at_orphan(look, file->ino);
	return !look->subject.killed;
}

/* The user of a lost slot might signal it, as far as is known. */
static bool is_in_reach(const struct look *look)
{
	const struct process *process = &look->subject.process;

	return !look->subject.asked || has_number(&look->uids, 0) ||
	       has_number(&look->uids, process->real) || has_number(&look->uids, process->saved);
}

static int compare_openers(const void *a, const void *b)
{
	return ((const struct opener *)a)->pid - ((const struct opener *)b)->pid;
}

/* Nobody could look whether the process has a lost lock's file open. Openers are known without
 * that. */
static void note_unseen(struct look *look)
{
	const struct opener opener = {.pid = look->subject.process.pid};

	if (!bsearch(&opener, look->openers, (size_t)look->opener_count, sizeof(opener),
	             compare_openers))
		atomic_fetch_add(&look->shared->unseen, 1);
}

void look_at_process(struct look *look, pid_t pid, struct scan_place *place, int64_t cpu_us)
{
	struct subject *subject = &look->subject;
	unsigned scarce = proc_scarce();
	bool runs, seen = true;

	place->more = false;
	begin_subject(look, pid);
	subject->asked = process_ask(&subject->process);
	if (!is_in_reach(look))
		return;
	runs = process_open(pid, &subject->process) == 0;
	subject->asked = false; /* that was before this process was held */
	if (runs)
		seen = scan_process(pid, look->page->device, place, cpu_us, look_at_file, look) >=
		               0 ||
		       !process_runs(&subject->process);
	if (proc_scarce() != scarce)
		atomic_store(&look->shared->found, true);
	if (!seen || proc_scarce() != scarce)
		note_unseen(look);
	process_close(&subject->process);
}

void look_prepare(struct look *look)
{
	int count = 0, used;

	look->filled = atomic_load(&look->page->filled);
	used = atomic_load(&look->page->used); /* slots that were filled before */
	look->any_held = false;
	for (int i = 0; i < used; i++) {
		struct slot_now now = slots_look(look->page, i);

		look->any_held |= STATE_OF(now.word) == SLOT_HELD;
		if (!is_lost(look, i, &now))
			continue;
		look->openers[count] = (struct opener){.pid = now.pid, .slot = i};
		look->inos.of[count] = now.ino;
		look->uids.of[count++] = now.uid;
	}
	look->opener_count = count;
	look->inos.count = look->uids.count = (size_t)count;
	qsort(look->openers, (size_t)count, sizeof(look->openers[0]), compare_openers);
	sort_numbers(&look->inos);
	sort_numbers(&look->uids);
}
