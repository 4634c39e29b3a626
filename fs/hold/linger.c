/* SPDX-License-Identifier: MIT
 *
 * linger.c - see linger.h. An epoll of pidfds, which the loop polls as one
 * descriptor: unlike the ZooKeeper client's socket these never come back.
 */
#include "hold/linger.h"

#include "host/log.h"
#include "host/process.h"

#include <assert.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <utlist.h>

bool linger_init(struct linger *linger, int64_t (*clock_us)(void),
                 void (*drop)(struct lingering *lingering))
{
	*linger = (struct linger){
		.fd = epoll_create1(EPOLL_CLOEXEC), .clock_us = clock_us, .drop = drop};
	return linger->fd >= 0 || log_cannot_start("epoll_create1");
}

void linger_finish(struct linger *linger)
{
	close(linger->fd);
}

static bool watch_end(const struct linger *linger, struct lingering *lingering, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = lingering};

	return epoll_ctl(linger->fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

bool linger_begin(struct linger *linger, struct lingering *lingering, pid_t pid)
{
	int fd = process_watch(pid);

	assert(lingering->state == NOT_LINGERING);
	if (fd < 0)
		return false;
	if (!watch_end(linger, lingering, fd)) {
		close(fd);
		return false;
	}
	*lingering = (struct lingering){
		.pid = pid,
		.state = LINGERS_BEHIND,
		.pidfd = fd,
		.until_us = linger->clock_us() + LINGER_US,
	};
	DL_APPEND(linger->lists[LINGERS_BEHIND], lingering);
	return true;
}

static int compare_ends(const struct lingering *a, const struct lingering *b)
{
	return a->until_us < b->until_us ? -1 : a->until_us > b->until_us;
}

static void list_lingering(struct linger *linger, struct lingering *lingering)
{
	DL_INSERT_INORDER(linger->lists[lingering->state], lingering, compare_ends);
}

void linger_at_head(struct linger *linger, struct lingering *lingering)
{
	int64_t until = linger->clock_us() + LINGER_HEAD_US;

	assert(lingering->state == LINGERS_BEHIND);
	DL_DELETE(linger->lists[LINGERS_BEHIND], lingering);
	lingering->state = LINGERS_AT_HEAD;
	if (until < lingering->until_us)
		lingering->until_us = until;
	list_lingering(linger, lingering);
}

void linger_keep(struct linger *linger, struct lingering *lingering, int64_t until_us)
{
	assert(lingering->state == NOT_LINGERING);
	*lingering = (struct lingering){
		.state = LINGERS_KEPT,
		.pidfd = -1,
		.until_us = until_us,
	};
	list_lingering(linger, lingering);
}

void linger_end(struct linger *linger, struct lingering *lingering)
{
	bool watched = lingering->state == LINGERS_BEHIND || lingering->state == LINGERS_AT_HEAD;

	if (lingering->state != NOT_LINGERING)
		DL_DELETE(linger->lists[lingering->state], lingering);
	lingering->state = NOT_LINGERING;
	if (!watched)
		return;
	/* Closing is not enough: a child that was just forked has it open for a while, too, and
	 * until it closes, the epoll would report it. */
	(void)epoll_ctl(linger->fd, EPOLL_CTL_DEL, lingering->pidfd, NULL);
	close(lingering->pidfd);
}

/* INT64_MAX: nothing lingers. */
static int64_t first_end(const struct linger *linger)
{
	int64_t first = INT64_MAX;

	for (int i = 0; i < LINGERING_STATES; i++)
		if (linger->lists[i] && linger->lists[i]->until_us < first)
			first = linger->lists[i]->until_us;
	return first;
}

int64_t linger_wait(const struct linger *linger)
{
	int64_t first = first_end(linger), now;

	if (first == INT64_MAX)
		return INT64_MAX;
	now = linger->clock_us();
	return first > now ? first - now : 0;
}

static void drop_lingering(struct linger *linger, struct lingering *lingering)
{
	linger_end(linger, lingering);
	linger->drop(lingering);
}

void linger_process(struct linger *linger, bool ready)
{
	struct epoll_event events[64];
	int64_t now;
	int n = ready ? epoll_wait(linger->fd, events, 64, 0) : 0;

	/* The epoll has each descriptor once, and dropping one touches no other. */
	for (int i = 0; i < n; i++)
		drop_lingering(linger, events[i].data.ptr);
	if (first_end(linger) == INT64_MAX)
		return;
	now = linger->clock_us();
	for (int i = 0; i < LINGERING_STATES; i++)
		while (linger->lists[i] && linger->lists[i]->until_us <= now)
			drop_lingering(linger, linger->lists[i]);
}

void linger_save_load(struct codec *codec, struct linger *linger, struct lingering *lingering)
{
	CODEC_PID(codec, lingering->pid);
	CODEC_RANGE(codec, lingering->state, LINGERS_BEHIND, LINGERS_AT_HEAD);
	CODEC_64(codec, lingering->until_us);
	lingering->pidfd = process_life_save_load(codec, lingering->pid, 0, lingering->pidfd);
	if (!codec->loads)
		return;
	if (codec->crashed && lingering->pidfd < 0)
		lingering->until_us = INT64_MIN; /* its process has ended: the next turn ends it */
	list_lingering(linger, lingering);
	if (lingering->pidfd >= 0 && !watch_end(linger, lingering, lingering->pidfd))
		codec->give_up("the state has a process that cannot be watched");
}
