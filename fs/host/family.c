/* SPDX-License-Identifier: MIT */
#include "host/family.h"

#include "host/clock.h"
#include "host/who.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <time.h>
#include <unistd.h>

/* Ancestors further up are not looked for, since all this is done in the loop. */
#define GENERATIONS_MAX 64
/* Nor when that has taken so much processor time. */
#define LOOKED_UP_NS (10 * 1000000)

bool family_ancestry(pid_t pid, struct ancestry *ret_ancestry)
{
	char text[1024], file[32], *command, *rest;
	unsigned long long start;
	char state;
	int parent;

	/* Of its first thread: for the whole process the kernel adds up what every thread of it
	 * has used, which takes milliseconds where there are thousands. */
	snprintf(file, sizeof(file), "task/%d/stat", (int)pid);
	if (pid <= 0 || !who_read_of(pid, file, text, sizeof(text)))
		return false;
	/* The name in brackets may itself hold brackets and blanks. */
	command = strchr(text, '(');
	rest = strrchr(text, ')');
	if (!command || !rest ||
	    sscanf(rest + 1,
	           " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
	           "%*d %*d %*d %llu",
	           &state, &parent, &start) != 3)
		return false;
	*ret_ancestry = (struct ancestry){
		.parent = parent,
		.start = start,
		.ended = state == 'Z' || state == 'X',
	};
	snprintf(ret_ancestry->command, sizeof(ret_ancestry->command), "%.*s",
	         (int)(rest - command) - 1, command + 1);
	return true;
}

/* ---- who asks ---- */

/* A program that takes a lock in a loop asks thousands of times a second, and to read which process
 * it is costs more than all else that is done here. So it is remembered for a moment, as its
 * command may change, and while the thread lives: where numbers are scarce, or can be chosen
 * (CRIU), another one gets its number at once. */
#define REMEMBERED_NS (10 * 1000000)
#define REMEMBERED_COUNT 64

static struct remembered {
	pid_t thread; /* 0: none */
	int life;     /* its pidfd; -1: it is not remembered */
	int64_t read_ns;
	bool seen; /* the command was read */
	struct caller caller;
} remembered[REMEMBERED_COUNT];

static uint64_t most_fds = UINT64_MAX;

void family_limit(uint64_t most)
{
	most_fds = most;
}

/* The descriptor; -1 instead of one of the last that there are. */
static int unless_scarce(int fd)
{
	if (fd < 0 || (uint64_t)fd + FAMILY_FDS_RESERVED < most_fds)
		return fd;
	close(fd);
	errno = EMFILE;
	return -1;
}

static struct remembered *remember_thread(pid_t thread)
{
	static struct remembered nobody = {.caller = {.command = "-"}};
	struct remembered *entry = &remembered[(unsigned)thread % REMEMBERED_COUNT];
	int64_t now = clock_read_ns(CLOCK_MONOTONIC_COARSE);
	struct who who;

	if (thread <= 0)
		return &nobody;
	if (entry->thread == thread && now - entry->read_ns < REMEMBERED_NS &&
	    family_lives(entry->life))
		return entry;
	if (entry->thread > 0 && entry->life >= 0)
		close(entry->life);
	*entry = (struct remembered){
		.thread = thread,
		.life = unless_scarce(who_watch(thread)),
		.read_ns = now,
		.caller = {.command = "-"},
	};
	entry->caller.process.pid = who_has(entry->life, &who) ? who.process : who_process(thread);
	return entry;
}

pid_t family_process(pid_t thread)
{
	return remember_thread(thread)->caller.process.pid;
}

void family_see(pid_t thread, struct caller *ret_caller)
{
	struct remembered *entry = remember_thread(thread);
	struct caller *caller = &entry->caller;
	char text[64];

	if (!entry->seen && caller->process.pid > 0 &&
	    who_read_of(caller->process.pid, "comm", text, sizeof(text)))
		snprintf(caller->command, sizeof(caller->command), "%.*s", (int)strlen(text) - 1,
		         text); /* without the newline that /proc adds */
	entry->seen = true;
	*ret_caller = *caller;
	ret_caller->process.start = 0;
}

void family_identify(pid_t thread, struct caller *ret_caller)
{
	struct remembered *entry = remember_thread(thread);
	struct caller *caller = &entry->caller;
	struct ancestry ancestry;

	if (caller->process.start == 0 && family_ancestry(caller->process.pid, &ancestry)) {
		caller->process.start = ancestry.start;
		strcpy(caller->command, ancestry.command);
		entry->seen = true;
	}
	*ret_caller = *caller;
}

/* ---- descent ---- */

struct lineage *family_lineage(pid_t pid)
{
	pid_t line[GENERATIONS_MAX];
	/* The daemon's processor time: a busy machine must not make it overlook an ancestor. */
	int64_t end_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) + LOOKED_UP_NS;
	struct lineage *lineage;
	struct who who;
	size_t count = 0;

	while (pid > 0 && count < GENERATIONS_MAX && (pid != 1 || count == 0)) {
		line[count++] = pid;
		pid = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns && who_is(pid, &who)
		              ? who.parent
		              : 0;
	}
	lineage = count > 0 ? malloc(sizeof(*lineage) + count * sizeof(line[0])) : NULL;
	if (!lineage)
		return NULL;
	lineage->count = count;
	memcpy(lineage->of, line, count * sizeof(line[0]));
	return lineage;
}

int lineage_find(const struct lineage *lineage, pid_t pid)
{
	for (size_t i = 0; pid > 0 && i < lineage->count; i++)
		if (lineage->of[i] == pid)
			return (int)i;
	return -1;
}

/* ---- life ---- */

/* Pidfds that were given back, by pid. */
#define SPARES 16

static struct spare {
	pid_t pid; /* 0: none */
	int fd;
} spares[SPARES];

static struct spare *spare_of(pid_t pid)
{
	return &spares[(unsigned)pid % SPARES];
}

/* -1: none, or its process is gone, and another one may have its number. */
static int take_spare(pid_t pid)
{
	struct spare *spare = spare_of(pid);

	if (spare->pid != pid || !family_lives(spare->fd))
		return -1;
	spare->pid = 0;
	return spare->fd;
}

int family_watch(pid_t pid)
{
	int fd = pid > 0 ? take_spare(pid) : -1;

	if (fd < 0 && pid > 0)
		fd = pidfd_open(pid, 0);
	return unless_scarce(fd);
}

void family_unwatch(pid_t pid, int pidfd)
{
	struct spare *spare = spare_of(pid);

	if (pidfd < 0)
		return;
	if (spare->pid > 0)
		close(spare->fd);
	*spare = (struct spare){.pid = pid, .fd = pidfd};
}

bool family_lives(int pidfd)
{
	struct pollfd pollfd = {.fd = pidfd, .events = POLLIN};

	return pidfd >= 0 && poll(&pollfd, 1, 0) == 0;
}

/* ---- over a reload ---- */

void caller_save_load(struct codec *codec, struct caller *caller)
{
	CODEC_PID(codec, caller->process.pid);
	CODEC_64(codec, caller->process.start);
	codec_copy(codec, caller->command, sizeof(caller->command));
}

struct lineage *lineage_save_load(struct codec *codec, struct lineage *lineage)
{
	size_t count = codec_count(codec, lineage ? lineage->count : 0);

	if (codec->loads && count > 0) {
		lineage = count > GENERATIONS_MAX
		                  ? NULL
		                  : malloc(sizeof(*lineage) + count * sizeof(lineage->of[0]));
		if (!lineage)
			codec->give_up("the state has too many ancestors");
		lineage->count = count;
	}
	for (size_t i = 0; i < count; i++)
		CODEC_PID(codec, lineage->of[i]);
	return count > 0 ? lineage : NULL;
}
