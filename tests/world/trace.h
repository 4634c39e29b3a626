/* SPDX-License-Identifier: MIT
 *
 * trace.h - the events of a run, line by line, with their virtual time. Off by
 * default (formatting would cost more than the run); a seed that failed is
 * run again with the trace on.
 */
#ifndef WORLD_TRACE_H
#define WORLD_TRACE_H

#include <stdbool.h>
#include <stdint.h>

enum trace_mode { TRACE_OFF, TRACE_TAIL, TRACE_LIVE };

extern bool trace_enabled;

void trace_start(enum trace_mode mode, const int64_t *now_us);
void trace_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Print the last lines kept, oldest first, to stderr. */
void trace_tail(void);

#define trace(...)                               \
	do {                                     \
		if (trace_enabled)               \
			trace_line(__VA_ARGS__); \
	} while (0)

#endif
