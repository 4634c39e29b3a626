/* SPDX-License-Identifier: MIT */
#include "guard/stop.h"

#include "host/clock.h"
#include "host/log.h"
#include "host/memory.h"
#include "host/row.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* The table remembers so many numbers, each at one of TOLD_PLACES places. When all of its places
 * have other numbers, one is forgotten, and a line or a SIGTERM may come twice. */
#define TOLD_COUNT 65536
#define TOLD_PLACES 16

struct stops {
	struct page *page;
	_Atomic uint64_t told[TOLD_COUNT]; /* shared; numbers of signals to processes */
};

struct stops *stops_create(struct page *page)
{
	struct stops *stops = memory_share(sizeof(*stops));

	if (stops)
		stops->page = page;
	return stops;
}

enum stop_cause stop_cause_of(const struct page *page, enum on_lost on_lost, int64_t until_us)
{
	int64_t deadline = atomic_load(&page->deadline_us), now = clock_now_us();

	if (until_us <= now)
		return STOP_OVERDUE;
	return deadline == INT64_MIN || deadline - guardian_lead_us(on_lost) <= now ? STOP_LEASE
	                                                                            : STOP_TOLD;
}

/* A step of splitmix64. */
static uint64_t mix(uint64_t number)
{
	number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
	return number ^ number >> 31;
}

/* What is remembered of a process beside its signals. */
enum { SPARED = 0, MET = 255 };

/* A number for "this signal, for this loss, to this process". `what`: a signal, or one of the two
 * above. The pid is enough to tell a process: while one loss lasts it does not come back, since the
 * kernel gives all other numbers first. */
static uint64_t number_of_telling(const struct stop *stop, int what)
{
	return mix(mix(mix(stop->word) + (unsigned)stop->slot) +
	           ((uint64_t)(unsigned)stop->process->pid << 8 | (unsigned)what)) |
	       1;
}

static bool was_said(struct stops *stops, uint64_t number)
{
	for (unsigned i = 0; i < TOLD_PLACES; i++)
		if (atomic_load(&stops->told[(number + i) % TOLD_COUNT]) == number)
			return true;
	return false;
}

/* Remembers the number. True: nobody has before. Of processes that ask at the same time, one gets
 * true. */
static bool is_first(struct stops *stops, uint64_t number)
{
	for (unsigned i = 0; i < TOLD_PLACES; i++) {
		uint64_t is = 0;

		if (atomic_compare_exchange_strong(&stops->told[(number + i) % TOLD_COUNT], &is,
		                                   number))
			return true;
		if (is == number)
			return false;
	}
	return atomic_exchange(&stops->told[number % TOLD_COUNT], number) != number;
}

void stops_forget(struct stops *stops)
{
	memset(stops->told, 0, sizeof(stops->told));
}

bool stop_is_noted(struct stops *stops, const struct stop *stop)
{
	return was_said(stops, number_of_telling(stop, MET));
}

void stop_note(struct stops *stops, const struct stop *stop)
{
	(void)is_first(stops, number_of_telling(stop, MET));
}

static void name_lock(struct stop_names *who, const struct stops *stops, const struct stop *stop)
{
	char path[SLOT_LOCK_MAX + 1];

	slots_lock(stops->page, stop->slot, stop->word, path);
	(void)row_only(who->lock, sizeof(who->lock), path);
}

static void name_process(struct stop_names *who, const struct stop *stop)
{
	char word[ROW_WORD_MAX(LC_COMMAND_MAX) + 1], by[64] = "";
	struct process process = *stop->process, seen;

	process_see(process.pid, &seen);
	(void)process_ask(&process);
	if (stop->opener != process.pid && stop->opener > 0)
		snprintf(by, sizeof(by), ", which has the file of pid %d open", (int)stop->opener);
	snprintf(who->text, sizeof(who->text), "pid %d (%s) uid %u%s", (int)process.pid,
	         row_only(word, sizeof(word), seen.command), (unsigned)process.real, by);
}

#define WHY_MAX 96

static const char *say_lease(char text[WHY_MAX], int64_t deadline_us)
{
	int64_t left_ms = (deadline_us - clock_now_us()) / 1000;

	if (left_ms < 0)
		snprintf(text, WHY_MAX, "the lease ended %d.%d s ago", (int)(-left_ms / 1000),
		         (int)(-left_ms % 1000 / 100));
	else
		snprintf(text, WHY_MAX, "the lease is not renewed, and ends in %d.%d s",
		         (int)(left_ms / 1000), (int)(left_ms % 1000 / 100));
	return text;
}

static const char *say_why(char text[WHY_MAX], const struct stops *stops, const struct stop *stop)
{
	int64_t deadline_us = atomic_load(&stops->page->deadline_us);

	switch (stop->cause) {
	case STOP_LEASE:
		return deadline_us == INT64_MIN ? "the session has ended"
		                                : say_lease(text, deadline_us);
	case STOP_OVERDUE:
		return "held too long";
	case STOP_TOLD:
		return "the lock is lost";
	}
	return "-";
}

static void say_spared(const struct stop_names *who, int error)
{
	log_line_of(who->taker, LC_ERROR, "%s: could not stop %s: %s", who->lock, who->text,
	            strerror(error));
}

static void say_stopped(struct stops *stops, const struct stop *stop, const struct stop_names *who,
                        int signal)
{
	char why[WHY_MAX];

	log_line_of(who->taker, LC_WARNING, "%s: sent SIG%s to %s: %s", who->lock,
	            sigabbrev_np(signal), who->text, say_why(why, stops, stop));
}

/* Among thousands of losers, names that nobody will read do not delay the signals. */
void stop_name(struct stops *stops, const struct stop *stop, int signal,
               struct stop_names *ret_names)
{
	*ret_names = (struct stop_names){.taker = slots_look(stops->page, stop->slot).uid};
	ret_names->wanted = !was_said(stops, number_of_telling(stop, signal)) &&
	                    log_has_room(ret_names->taker, LC_WARNING);
	if (!ret_names->wanted)
		return;
	name_lock(ret_names, stops, stop);
	name_process(ret_names, stop);
}

/* Two children may meet the same process: the one whose signal has reached it tells that, whichever
 * came first. */
void stop_send(struct stops *stops, const struct stop *stop, int signal,
               const struct stop_names *names)
{
	int error;

	slots_mark_stopped(stops->page, stop->slot, stop->word, signal);
	error = -process_signal(stop->process, signal);
	if (error == ESRCH || !is_first(stops, number_of_telling(stop, signal)))
		return;
	if (error == 0)
		atomic_fetch_add(signal == SIGKILL ? &stops->page->kills : &stops->page->terms, 1);
	else
		atomic_fetch_add(&stops->page->spared, 1);
	if (names->wanted && error == 0)
		say_stopped(stops, stop, names, signal);
	else if (names->wanted)
		say_spared(names, error);
}

void stop_spare(struct stops *stops, const struct stop *stop)
{
	struct stop_names who = {.taker = slots_look(stops->page, stop->slot).uid};

	if (!is_first(stops, number_of_telling(stop, SPARED)))
		return;
	name_lock(&who, stops, stop);
	name_process(&who, stop);
	atomic_fetch_add(&stops->page->spared, 1);
	say_spared(&who, EPERM);
}

void stop_note_unseen(struct stops *stops, int slot, unsigned word, unsigned unseen)
{
	struct stop_names who = {.taker = slots_look(stops->page, slot).uid};

	if (unseen == 0 || !log_has_room(who.taker, LC_WARNING))
		return;
	name_lock(&who, stops, &(struct stop){.slot = slot, .word = word});
	log_line_of(who.taker, LC_WARNING,
	            "%s: processes that could not be looked into: %u. If one has the lock's file "
	            "open, it is not stopped",
	            who.lock, unseen);
}
