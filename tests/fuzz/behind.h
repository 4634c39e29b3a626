/* SPDX-License-Identifier: MIT
 *
 * behind.h - what is behind the frontend that is fuzzed: an engine on the ensemble in memory, in
 * virtual time. Apart, because fs/ and tests/world have structs of the same names.
 */
#ifndef FUZZ_BEHIND_H
#define FUZZ_BEHIND_H

#include "lockcore.h"

#include <stddef.h>
#include <sys/types.h>

/* Its session is ready. `reserved`: as in lc_config. */
struct lc *behind_begin(const char *(*reserved)(const char *name));
int64_t behind_clock_us(void);
/* The engine has new requests; then so much time passes. */
void behind_run(int64_t us);
/* Nobody is told anything any more. */
void behind_end(void);

/* Two ends that pass on whole messages; what the kernel's end has got, or below 0. */
int behind_connect(int *ret_daemons);
ssize_t behind_receive(int fd, void *bytes, size_t size);

#endif
