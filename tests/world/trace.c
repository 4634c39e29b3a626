/* SPDX-License-Identifier: MIT
 *
 * trace.c - a ring of the last lines, or stdout at once.
 */
#include "trace.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define TRACE_LINES 256
#define TRACE_WIDTH 256

bool trace_enabled;

static enum trace_mode trace_mode;
static const int64_t *trace_now_us;
static char trace_ring[TRACE_LINES][TRACE_WIDTH];
static unsigned trace_count;

void trace_start(enum trace_mode mode, const int64_t *now_us)
{
	trace_mode = mode;
	trace_enabled = mode != TRACE_OFF;
	trace_now_us = now_us;
	trace_count = 0;
}

void trace_line(const char *format, ...)
{
	char *line = trace_ring[trace_count++ % TRACE_LINES];
	int used = snprintf(line, TRACE_WIDTH, "%" PRId64 ".%06d ", *trace_now_us / 1000000,
	                    (int)(*trace_now_us % 1000000));
	va_list args;

	va_start(args, format);
	vsnprintf(line + used, TRACE_WIDTH - (size_t)used, format, args);
	va_end(args);
	if (trace_mode == TRACE_LIVE)
		puts(line);
}

void trace_tail(void)
{
	unsigned first = trace_count > TRACE_LINES ? trace_count - TRACE_LINES : 0;

	for (unsigned i = first; i < trace_count; i++)
		fprintf(stderr, "%s\n", trace_ring[i % TRACE_LINES]);
}
