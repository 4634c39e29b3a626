/* SPDX-License-Identifier: MIT
 *
 * door.h - the names in a lock by which it is taken, what each takes and how long
 * it waits. Pure.
 */
#ifndef FS_DOOR_H
#define FS_DOOR_H

#include "lockcore.h"

#include <stdbool.h>
#include <stdint.h>

/* Longer ones are malformed. */
#define DOOR_NAME_MAX 31

struct door {
	enum lc_mode mode;
	int64_t wait_us; /* 0: not at all; LC_FOREVER */
	bool joins;      /* reentrant: what its own process or an ancestor holds is enough */
	bool advisory;   /* opening it takes nothing: flock(2) and fcntl(2) do */
};

/* 0; -ENOENT: not a door; -EINVAL: would be one, but its time is malformed. */
int door_parse(const char *name, struct door *ret_door);

/* Those that ls shows. NULL ends them. */
extern const char *const door_names[];

#endif
