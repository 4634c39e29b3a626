/* SPDX-License-Identifier: MIT
 *
 * health.h - whether the mount works, and the words for it when it does not: every command says the
 * same of an outage, and since when. All of it is from .zklockfs/status, which never waits.
 */
#ifndef ZKLOCK_HEALTH_H
#define ZKLOCK_HEALTH_H

#include "mount.h"

#define HEALTH_MAX 800 /* bytes of a sentence: it has some six servers in it */

struct health {
	char *text; /* NULL: it cannot be read */
	int error;  /* why; ENOENT: this is a part of a mount */
};

/* To be freed by health_free(). */
void health_read(const struct mount *mount, struct health *ret_health);
void health_free(struct health *health);
/* The value of a line, "-" without one. Returns `value`. */
const char *health_value(const struct health *health, const char *key, char *value, size_t size);
/* True: the ensemble answers, as far as the mount knows, or nothing is known. False: why not, in
 * one sentence. */
bool health_is_good(const struct health *health, char why[HEALTH_MAX]);

/* What an error of a file of the mount means, in one sentence; and what a command ends with for it.
 * ENOENT is the caller's. */
const char *health_explain(const struct mount *mount, int error, char why[HEALTH_MAX]);
int health_exit_status(int error);

/* Whether processes of that session's mount are told as this process sees them: it is this mount,
 * and its daemon is in our pid namespace. */
bool health_sees_pids(const struct health *health, const char *session);

#endif
