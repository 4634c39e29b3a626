/* SPDX-License-Identifier: MIT */
#include "grant/taker_events.h"

#include "grant/decide.h"
#include "lock/known.h"
#include "lock/loss.h"

#include <errno.h>

static int create_error(enum ensemble_result why)
{
	if (why == ENSEMBLE_NONODE || why == ENSEMBLE_NOCHILDREN)
		return -ENOENT;
	return why == ENSEMBLE_NOAUTH ? -EACCES : -ENOLCK;
}

static void entry_not_made(struct entry *entry, enum ensemble_result why)
{
	if (taker_of(entry)->state == TAKER_WAITING)
		taker_fail(taker_of(entry), create_error(why));
}

static void entry_gone(struct entry *entry)
{
	loss_of_node(taker_of(entry));
}

static void entry_marked(struct entry *entry, const char *by)
{
	loss_by_mark(taker_of(entry), by);
}

static void entry_later(struct entry *entry)
{
	taker_try_later(taker_of(entry));
}

static void step_entry(struct entry *entry)
{
	taker_step(taker_of(entry));
}

const struct entry_events taker_entry_events = {
	.present = known_present,
	.not_made = entry_not_made,
	.absent = known_gone,
	.seen = decide_proved,
	.gone = entry_gone,
	.marked = entry_marked,
	.later = entry_later,
	.changed = step_entry,
};
