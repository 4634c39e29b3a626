/* SPDX-License-Identifier: MIT
 *
 * job.h - work on the mount's files in a child, whose output is read as it comes: a mount that does
 * not answer must not block the keys.
 */
#ifndef ZKLOCK_JOB_H
#define ZKLOCK_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct job {
	pid_t pid; /* 0: none is under way */
	int fd;    /* to poll for POLLIN; -1 when none is under way */
	char *text;
	size_t length;
	int64_t since_ms;
};

void job_init(struct job *job);
/* One at a time. The child runs `work` and ends. false and errno. */
bool job_start(struct job *job, void (*work)(FILE *out, const void *context), const void *context);
/* Takes what has come. The whole output of the job, to be freed, when it has ended; otherwise NULL.
 * */
char *job_read(struct job *job);
/* Kills it, if one is under way. */
void job_end(struct job *job);

#endif
