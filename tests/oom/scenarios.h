/* SPDX-License-Identifier: MIT
 *
 * scenarios.h - what is run again and again, another allocation failing each time.
 */
#ifndef OOM_SCENARIOS_H
#define OOM_SCENARIOS_H

#include "bench.h"

struct scenario {
	const char *name;
	void (*play)(struct bench *bench);
	size_t least; /* only allocations of this size and more: long scenarios */
};

extern const struct scenario scenarios[];
extern const int scenario_count;

#endif
