/* SPDX-License-Identifier: MIT
 *
 * agenda.h - virtual time: a list of future events. Two events of the same microsecond happen in
 * the order in which they were added.
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
/* An event cannot be cancelled. It must find out by `arg`, such as a generation, or by `ctx`
 * whether it still counts. */
void agenda_at(struct agenda *agenda, int64_t when_us, agenda_fn *fn, void *ctx, uint64_t arg);
void agenda_in(struct agenda *agenda, int64_t delay_us, agenda_fn *fn, void *ctx, uint64_t arg);
/* Lets the next event happen; false: there is none. */
bool agenda_step(struct agenda *agenda);

#endif
