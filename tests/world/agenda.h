/* SPDX-License-Identifier: MIT
 *
 * agenda.h - virtual time: what is to happen when. Two things due at the same
 * microsecond happen in the order in which they were noted.
 */
#ifndef WORLD_AGENDA_H
#define WORLD_AGENDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void agenda_fn(void *ctx, uint64_t arg);

struct agenda_item {
	int64_t when_us;
	uint64_t serial;
	agenda_fn *fn;
	void *ctx;
	uint64_t arg;
};

struct agenda {
	int64_t now_us;
	uint64_t serial;
	struct agenda_item *heap;
	size_t count, room;
};

void agenda_init(struct agenda *agenda, int64_t now_us);
void agenda_finish(struct agenda *agenda);
/* There is no cancelling: `arg` carries a generation, or `ctx` knows better. */
void agenda_at(struct agenda *agenda, int64_t when_us, agenda_fn *fn, void *ctx, uint64_t arg);
void agenda_in(struct agenda *agenda, int64_t delay_us, agenda_fn *fn, void *ctx, uint64_t arg);
/* Let the next thing happen; false when there is nothing left. */
bool agenda_step(struct agenda *agenda);

#endif
