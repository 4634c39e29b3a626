/* SPDX-License-Identifier: MIT
 *
 * fuzz.h - what the fuzzers share: a check, and the input byte by byte.
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert(), it is checked in any build. */
#define MUST(condition)                                                                   \
	do {                                                                              \
		if (!(condition)) {                                                       \
			fprintf(stderr, "line %d: not true: %s\n", __LINE__, #condition); \
			abort();                                                          \
		}                                                                         \
	} while (0)

/* What is left of it. */
static const uint8_t *input;
static size_t input_left;

/* 0 behind its end. */
static inline unsigned next_byte(void)
{
	if (input_left == 0)
		return 0;
	input_left--;
	return *input++;
}

#endif
