/* SPDX-License-Identifier: MIT */
#include "job.h"

#include "span.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIECE 65536

void job_init(struct job *job)
{
	*job = (struct job){.fd = -1};
}

/* The child has a copy of the screen's state: it must end without a word to the terminal. */
static _Noreturn void do_work(int fd, void (*work)(FILE *out, const void *context),
                              const void *context)
{
	FILE *out = fdopen(fd, "w");

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGTSTP, SIG_DFL); /* that of curses writes to the terminal */
	signal(SIGWINCH, SIG_DFL);
	if (!out)
		_exit(1);
	work(out, context);
	fflush(out);
	_exit(0);
}

bool job_start(struct job *job, void (*work)(FILE *out, const void *context), const void *context)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	job->pid = fork();
	if (job->pid == 0) {
		close(ends[0]);
		do_work(ends[1], work, context);
	}
	close(ends[1]);
	if (job->pid < 0) {
		job->pid = 0;
		close(ends[0]);
		return false;
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	job->fd = ends[0];
	job->since_ms = span_now_ms();
	return true;
}

static char *finish_job(struct job *job, int options)
{
	char *text = job->text;

	close(job->fd);
	waitpid(job->pid, NULL, options);
	job_init(job);
	return text;
}

char *job_read(struct job *job)
{
	while (job->pid) {
		char *more = realloc(job->text, job->length + PIECE + 1);
		ssize_t n;

		if (!more) {
			job_end(job);
			return NULL;
		}
		job->text = more;
		n = read(job->fd, more + job->length, PIECE);
		if (n < 0 && errno != EINTR)
			return NULL;
		if (n > 0)
			job->length += (size_t)n;
		job->text[job->length] = '\0';
		if (n == 0)
			return finish_job(job, 0);
	}
	return NULL;
}

void job_end(struct job *job)
{
	if (!job->pid)
		return;
	kill(job->pid, SIGKILL);
	free(finish_job(job, WNOHANG)); /* it may hang in the mount */
}
