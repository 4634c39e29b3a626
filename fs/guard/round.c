/* SPDX-License-Identifier: MIT
 *
 * round.c - see round.h. All scans and signals run in a child of the scanners, with the data of the
 * moment when it was forked.
 */
#include "guard/round.h"

#include "guard/order.h"
#include "guard/scan.h"
#include "guard/scanners.h"
#include "guard/slot_index.h"
#include "guard/stop.h"
#include "host/clock.h"
#include "host/memory.h"
#include "host/process.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define GENERATIONS_MAX 128
#define UNKNOWN_UID ((uid_t)-1)
/* The time for finding out which process descends from which. */
#define KIN_US 100000

/* A slot that is lost. */
struct loss {
	unsigned word;    /* the slot's */
	int64_t since_us; /* first seen lost */
	bool termed;      /* the processes that had it open then were sent SIGTERM */
	enum stop_cause cause;
};

struct opener {
	pid_t pid;
	int slot;
	unsigned word; /* the slot's, when the round began */
};

/* The process that is looked at. */
struct round_subject {
	struct process_ref ref;
	struct who status;
	bool has_status, termed, killed, matched;
};

/* Of slots; sorted by sort_numbers(), each once. */
struct numbers {
	size_t count;
	uint64_t of[GUARDIAN_SLOTS];
};

struct round {
	const struct page *page;
	enum on_lost on_lost;
	struct stops *stops;
	struct scanners *scanners;
	_Atomic bool *open;       /* shared, by slot: somebody of it was to be stopped, */
	_Atomic bool *told;       /*   and its opener was sent SIGTERM */
	_Atomic unsigned *unseen; /* shared: how many could not be looked into */
	enum { ROUND_NONE, ROUND_KIN, ROUND_OPENERS, ROUND_ALL } phase;
	int64_t began_us;
	struct order_process *processes; /* shared, by job of ROUND_KIN, which fills it in */
	size_t process_count;
	int used;
	struct loss losses[GUARDIAN_SLOTS];
	struct opener openers[GUARDIAN_SLOTS]; /* of lost slots, by pid */
	int first[GUARDIAN_SLOTS];             /* of the same pid, by job */
	int opener_count;
	struct numbers inos; /* of lost slots */
	struct numbers uids; /* of their takers */
	struct slot_index index;
	struct round_subject subject;
};

static bool was_lost(const struct round *round, int slot)
{
	return slot < round->used && STATE_OF(round->losses[slot].word) == SLOT_LOST;
}

static bool is_lost(const struct round *round, int slot, const struct slot_now *now)
{
	return was_lost(round, slot) && round->losses[slot].word == now->word;
}

/* ---- a signal ---- */

static bool may_stop(struct round_subject *subject, uid_t taker)
{
	if (taker == 0)
		return true;
	if (!subject->has_status)
		subject->has_status = process_status(&subject->ref, &subject->status);
	return subject->has_status && process_obeys(&subject->status, taker);
}

/* The opener comes first, and again among all: to some programs a second SIGTERM says more. */
static bool was_told(struct round *round, int slot)
{
	return slots_look(round->page, slot).pid == round->subject.ref.pid &&
	       atomic_exchange(&round->told[slot], true);
}

static void stop(struct round *round, int slot, uid_t taker)
{
	const struct loss *loss = &round->losses[slot];
	struct round_subject *subject = &round->subject;
	const struct stop stop = {
		.slot = slot,
		.word = loss->word,
		.opener = slots_look(round->page, slot).pid,
		.cause = loss->cause,
		.process = &subject->ref,
	};

	if (!may_stop(subject, taker)) {
		if (stop.opener == subject->ref.pid)
			stop_spare(round->stops, &stop);
		return;
	}
	atomic_store(&round->open[slot], true);
	if (round->on_lost == ON_LOST_KILL ||
	    clock_now_us() >= loss->since_us + GUARDIAN_TERM_TO_KILL_US) {
		stop_send(round->stops, &stop, SIGKILL);
		subject->killed = true;
	} else if (!loss->termed && !was_told(round, slot) && !subject->termed) {
		stop_send(round->stops, &stop, SIGTERM);
		subject->termed = true;
	}
}

/* ---- to whom a descriptor belongs ---- */

enum { UNKNOWN = -1, BYSTANDER = -2 };

/* The slot by which this process opened the lock file. A slot that holds is preferred to a lost
 * one, and that to a slot that holds nothing. */
static int slot_of(const struct round *round, const struct process_ref *process, uint64_t ino,
                   struct slot_now *ret_now)
{
	const struct slot_entry *entry;
	int found = UNKNOWN;

	for (int i = slot_index_of_opener(&round->index, process->pid, ino); i >= 0;
	     i = entry->next_of_opener) {
		struct slot_now now;
		enum slot_state state;

		entry = &round->index.entries[i];
		now = slots_look(round->page, entry->slot);
		state = STATE_OF(now.word);
		if (state == SLOT_FREE || now.pid != process->pid || now.ino != ino ||
		    !process_is(process, now.start, now.number))
			continue;
		if (state == SLOT_OPEN) {
			found = found == UNKNOWN ? BYSTANDER : found;
			continue;
		}
		*ret_now = now;
		found = entry->slot;
		if (state == SLOT_HELD)
			break;
	}
	return found;
}

static int slot_of_pid(const struct round *round, pid_t pid, uint64_t ino, struct slot_now *ret_now)
{
	struct process_ref process;
	int found = UNKNOWN;

	/* Most have none: look before anything is opened. */
	if (slot_index_of_opener(&round->index, pid, ino) >= 0 && process_open(pid, &process)) {
		found = slot_of(round, &process, ino, ret_now);
		process_close(&process);
	}
	return found;
}

/* Which hold of this lock file the process descends from, or is the opener of: the nearest.
 * UNKNOWN: none that is known. BYSTANDER: none, and it was opened without holding. */
static int nearest_opener(const struct round *round, uint64_t ino, struct slot_now *ret_now)
{
	struct who status;
	pid_t pid = round->subject.ref.pid;
	int found = UNKNOWN;

	for (int i = 0; pid > 1 && i < GENERATIONS_MAX; i++) {
		int slot = slot_of_pid(round, pid, ino, ret_now);

		if (slot >= 0)
			return slot;
		if (slot == BYSTANDER)
			found = BYSTANDER;
		if (!who_is(pid, &status))
			break;
		pid = status.parent;
	}
	return found;
}

static bool opener_lives(const struct slot_now *now)
{
	struct process_ref process;
	bool lives;

	if (now->pid == 0)
		return true; /* cannot be told */
	if (!process_open(now->pid, &process))
		return false;
	lives = process_is(&process, now->start, now->number);
	process_close(&process);
	return lives;
}

/* The process descends from no known one. While the opener lives, somebody has passed the
 * descriptor to the process, perhaps unasked. While another process holds at that lock file, the
 * descriptor may be of that one. */
static void look_at_orphan(struct round *round, uint64_t ino)
{
	const struct slot_entry *entry;

	for (int i = slot_index_of_ino(&round->index, ino); i >= 0; i = entry->next_of_ino) {
		struct slot_now now;

		entry = &round->index.entries[i];
		now = slots_look(round->page, entry->slot);
		if (STATE_OF(now.word) == SLOT_HELD && now.ino == ino)
			return;
	}
	for (int i = slot_index_of_ino(&round->index, ino); i >= 0; i = entry->next_of_ino) {
		struct slot_now now;

		entry = &round->index.entries[i];
		now = slots_look(round->page, entry->slot);
		if (now.ino == ino && is_lost(round, entry->slot, &now) && !opener_lives(&now))
			stop(round, entry->slot, now.uid);
	}
}

/* ---- looking ---- */

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

/* Another filesystem may have the number, too. */
static bool is_lost_lock_file(const struct round *round, const struct seen_file *file)
{
	return has_number(&round->inos, file->ino) &&
	       scan_is_on_mount(file, round->page->mount_id, round->page->device);
}

/* False: the process has been killed. */
static bool look_at(struct round *round, const struct seen_file *file, bool own)
{
	struct slot_now now;
	int slot;

	if (!is_lost_lock_file(round, file))
		return true;
	slot_index_follow(&round->index);
	slot = own ? slot_of(round, &round->subject.ref, file->ino, &now)
	           : nearest_opener(round, file->ino, &now);
	round->subject.matched |= slot >= 0;
	if (slot >= 0 && is_lost(round, slot, &now))
		stop(round, slot, now.uid);
	else if (slot == UNKNOWN && !own)
		look_at_orphan(round, file->ino);
	return !round->subject.killed;
}

/* By the descriptors that it opened itself; those that it was given come later. */
static bool look_at_own(void *ctx, const struct seen_file *file)
{
	return look_at(ctx, file, true);
}

static bool look_at_any(void *ctx, const struct seen_file *file)
{
	return look_at(ctx, file, false);
}

/* An opener that lives and cannot be looked into may have it open. */
static void stop_unseen(struct round *round, int first)
{
	pid_t pid = round->subject.ref.pid;

	for (int i = first; i < round->opener_count && round->openers[i].pid == pid; i++) {
		struct slot_now now = slots_look(round->page, round->openers[i].slot);

		if (is_lost(round, round->openers[i].slot, &now) &&
		    process_is(&round->subject.ref, now.start, now.number))
			stop(round, round->openers[i].slot, now.uid);
	}
}

static void look_at_kin(void *ctx, size_t index, pid_t pid)
{
	struct round *round = ctx;
	struct who status;

	if (!who_is(pid, &status))
		return;
	round->processes[index].uid = status.real;
	round->processes[index].parent = status.parent;
}

static void look_at_opener(void *ctx, size_t index, pid_t pid)
{
	struct round *round = ctx;
	struct round_subject *subject = &round->subject;

	*subject = (struct round_subject){0};
	if (!process_open(pid, &subject->ref))
		return;
	if (scan_process(pid, round->page->device, look_at_own, round) < 0)
		stop_unseen(round, round->first[index]);
	else if (!subject->matched)
		scan_threads(pid, round->page->device, look_at_own, round);
	process_close(&subject->ref);
}

static uid_t whose(void *ctx, pid_t pid)
{
	struct round *round = ctx;
	struct round_subject *subject = &round->subject;

	*subject = (struct round_subject){.ref = {.pid = pid, .fd = -1}};
	subject->has_status = who_is(pid, &subject->status);
	return subject->status.real;
}

/* The user of a lost slot might signal it, as far as is known. */
static bool is_in_reach(const struct round *round)
{
	const struct who *status = &round->subject.status;

	return !round->subject.has_status || has_number(&round->uids, 0) ||
	       has_number(&round->uids, status->real) || has_number(&round->uids, status->saved);
}

static int compare_openers(const void *a, const void *b)
{
	return ((const struct opener *)a)->pid - ((const struct opener *)b)->pid;
}

/* Nobody could look whether the process has a lost lock file open. Openers are known without that.
 */
static void note_unseen(struct round *round)
{
	if (process_runs(&round->subject.ref) &&
	    !bsearch(&(struct opener){.pid = round->subject.ref.pid}, round->openers,
	             (size_t)round->opener_count, sizeof(struct opener), compare_openers))
		atomic_fetch_add(round->unseen, 1);
}

static void look_at_process(void *ctx, size_t index, pid_t pid)
{
	struct round *round = ctx;
	struct round_subject *subject = &round->subject;
	int seen;

	(void)index;
	if (!is_in_reach(round) || !process_open(pid, &subject->ref))
		return;
	subject->has_status = false; /* it was read before this process was held */
	seen = scan_process(pid, round->page->device, look_at_any, round);
	if (seen == 0)
		scan_threads(pid, round->page->device, look_at_any, round);
	else if (seen < 0)
		note_unseen(round);
	process_close(&subject->ref);
}

/* ---- in the guardian itself ---- */

struct round *round_create(struct page *page, enum on_lost on_lost)
{
	struct round *round = calloc(1, sizeof(*round));

	if (!round)
		return NULL;
	round->page = page;
	round->on_lost = on_lost;
	/* All of it ends with this process, which ends if this fails. */
	round->open = memory_share(GUARDIAN_SLOTS * sizeof(round->open[0]));
	round->told = memory_share(GUARDIAN_SLOTS * sizeof(round->told[0]));
	round->unseen = memory_share(sizeof(*round->unseen));
	round->processes = memory_share(SCANNERS_JOBS_MAX * sizeof(round->processes[0]));
	round->scanners = scanners_create(round);
	round->stops = stops_create(page);
	if (round->open && round->told && round->unseen && round->processes && round->scanners &&
	    round->stops)
		return round;
	free(round);
	return NULL;
}

struct round_lost round_note(struct round *round)
{
	struct round_lost lost = {.newest_us = INT64_MIN};

	round->used = atomic_load(&round->page->used);
	for (int i = 0; i < round->used; i++) {
		struct loss *loss = &round->losses[i];
		unsigned word = atomic_load(&round->page->slots[i].word);

		if (STATE_OF(word) == SLOT_LOST) {
			lost.count++;
			if (loss->word != word) {
				lost.more = true;
				*loss = (struct loss){
					.since_us = clock_now_us(),
					.cause = stop_cause_of(
						round->page, round->on_lost,
						atomic_load(&round->page->slots[i].until_us)),
				};
				atomic_store(&round->told[i], false);
			}
			if (loss->since_us > lost.newest_us)
				lost.newest_us = loss->since_us;
		}
		loss->word = word;
	}
	return lost;
}

/* The jobs: each opener once. Returns how many. */
static size_t list_openers(struct round *round)
{
	struct job *jobs = scanners_jobs(round->scanners);
	size_t count = 0;

	for (int i = 0; i < round->opener_count; i++) {
		const struct opener *opener = &round->openers[i];

		if (opener->pid <= 0 || (i > 0 && opener[-1].pid == opener->pid))
			continue;
		round->first[count] = i;
		jobs[count++] = (struct job){.pid = opener->pid,
		                             .uid = round->page->slots[opener->slot].uid};
	}
	return count;
}

void round_rank(struct round *round, enum scanners_rank rank)
{
	scanners_rank(round->scanners, rank);
}

static pid_t pids[SCANNERS_JOBS_MAX];

static void find_kin(struct round *round)
{
	struct job *jobs = scanners_jobs(round->scanners);

	round->process_count = scan_pids(pids, SCANNERS_JOBS_MAX);
	for (size_t i = 0; i < round->process_count; i++) {
		jobs[i] = (struct job){.pid = pids[i]};
		round->processes[i] = (struct order_process){.pid = pids[i], .uid = UNKNOWN_UID};
	}
	round->phase = ROUND_KIN;
	round->began_us = clock_now_us();
	scanners_start(round->scanners, look_at_kin, NULL, round->process_count);
}

/* Before any of them ends: their children are others' then. */
static void note_kin(struct round *round)
{
	size_t count = 0;

	for (int i = 0; i < round->opener_count; i++)
		if (round->openers[i].pid > 0)
			pids[count++] = round->openers[i].pid;
	order_find_kin(round->processes, round->process_count, pids, count);
}

static void look_at_openers(struct round *round)
{
	round->phase = ROUND_OPENERS;
	scanners_start(round->scanners, look_at_opener, NULL, list_openers(round));
}

void round_begin(struct round *round)
{
	int count = 0;

	scanners_stop(round->scanners);
	for (int i = 0; i < round->used; i++) {
		struct slot_now now = slots_look(round->page, i);

		atomic_store(&round->open[i], false);
		if (!is_lost(round, i, &now))
			continue;
		round->openers[count] =
			(struct opener){.pid = now.pid, .slot = i, .word = now.word};
		round->inos.of[count] = now.ino;
		round->uids.of[count++] = now.uid;
	}
	round->opener_count = count;
	qsort(round->openers, (size_t)count, sizeof(round->openers[0]), compare_openers);
	round->inos.count = round->uids.count = (size_t)count;
	sort_numbers(&round->inos);
	sort_numbers(&round->uids);
	slot_index_build(&round->index, round->page);
	find_kin(round);
}

/* Including processes that came meanwhile. */
static void look_at_all(struct round *round)
{
	static struct order_process all[SCANNERS_JOBS_MAX];
	struct job *jobs = scanners_jobs(round->scanners);
	size_t count = scan_pids(pids, SCANNERS_JOBS_MAX);

	for (size_t i = 0; i < count; i++) {
		const struct order_process *known =
			order_process_of(round->processes, round->process_count, pids[i]);

		all[i] =
			known ? *known : (struct order_process){.pid = pids[i], .uid = UNKNOWN_UID};
	}
	order_sort(all, count);
	for (size_t i = 0; i < count; i++)
		jobs[i] = (struct job){.pid = all[i].pid};
	round->phase = ROUND_ALL;
	atomic_store(round->unseen, 0);
	scanners_start(round->scanners, look_at_process, whose, count);
}

static void end_round(struct round *round, const struct opener *opener)
{
	struct loss *loss = &round->losses[opener->slot];

	if (loss->word != opener->word || loss->termed)
		return;
	loss->termed = true;
	stop_note_unseen(round->stops, opener->slot, loss->word, atomic_load(round->unseen));
}

bool round_tend(struct round *round)
{
	if (!scanners_tend(round->scanners) &&
	    (round->phase != ROUND_KIN || clock_now_us() - round->began_us < KIN_US))
		return false;
	switch (round->phase) {
	case ROUND_NONE:
		return true;
	case ROUND_KIN:
		note_kin(round);
		look_at_openers(round);
		return false;
	case ROUND_OPENERS:
		look_at_all(round);
		return false;
	case ROUND_ALL:
		break;
	}
	round->phase = ROUND_NONE;
	for (int i = 0; i < round->opener_count; i++)
		end_round(round, &round->openers[i]);
	return true;
}

bool round_found(const struct round *round)
{
	for (int i = 0; i < round->used; i++)
		if (was_lost(round, i) && atomic_load(&round->open[i]))
			return true;
	return false;
}

bool round_hangs(const struct round *round)
{
	return scanners_left(round->scanners) > 0;
}

unsigned long round_looks_ended(const struct round *round)
{
	return scanners_ended(round->scanners);
}
