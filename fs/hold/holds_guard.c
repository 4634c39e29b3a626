/* SPDX-License-Identifier: MIT */
#include "hold/holds_guard.h"

#include "guard/guardian.h"
#include "hold/advisory.h"
#include "hold/claim.h"
#include "hold/hold.h"
#include "host/process.h"

#include <utlist.h>

static uint64_t number_of_life(pid_t pid, int life)
{
	return process_number(&(struct process){.pid = pid, .fd = life});
}

/* The start is known of the process that asked for the lock, and not of one that has joined a hold
 * of its family. The guardian knows the latter by the kernel's number of its pidfd. A kernel before
 * 6.9 gives no such number: there the guardian takes the process for ended, and stops whoever has
 * the file open as after the end of an opener (guardian.h). */
static void guard_claim(struct guardian *guardian, struct claim *claim)
{
	const struct process *asker = &claim->hold->audit.caller;
	const struct guarded guarded = {
		.uid = claim->uid,
		.process = {.pid = claim->pid,
	                    .start = asker->pid == claim->pid ? asker->start : 0},
		.number = number_of_life(claim->pid, claim->life),
		.lock = claim->file->node->lock,
		.ino = claim->file->node->ino,
		.until_us = claim->hold->most_until_us,
	};

	claim->slot = guardian ? guardian_hold(guardian, &guarded) : -1;
	if (claim->hold->state == HOLD_LOST)
		guardian_lose(guardian, claim->slot);
}

void holds_guard(struct frontend *front)
{
	struct open_file *file;
	struct claim *claim;
	struct hold *hold;
	uint32_t at = 0;

	DL_FOREACH(front->holds->held, hold) {
		DL_FOREACH(hold->claims, claim)
			guard_claim(front->guardian, claim);
		record_touch(&hold->record);
	}
	while ((file = open_file_next(front, &at)))
		if (file->node && file->node->kind == NODE_LOCK_FILE &&
		    file->node->lock_file.advisory)
			advisory_guard(file);
}
