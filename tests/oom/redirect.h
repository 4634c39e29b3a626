/* SPDX-License-Identifier: MIT
 *
 * redirect.h - included before everything else in the sources under test: their allocations go to
 * memory.c, which can make them fail. OOM_STREAMS: only streams in memory do, whose buffers libc
 * allocates itself.
 */
#ifndef OOM_REDIRECT_H
#define OOM_REDIRECT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

#define open_memstream oom_open_memstream
#ifndef OOM_STREAMS
#undef strdup
#define malloc oom_malloc
#define calloc oom_calloc
#define realloc oom_realloc
#define free oom_free
#define strdup oom_strdup
#define asprintf oom_asprintf
#endif

#endif
