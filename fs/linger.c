/* SPDX-License-Identifier: MIT
 *
 * linger.c - see linger.h. An epoll of pidfds, which the loop polls as one
 * descriptor: unlike the ZooKeeper client's socket these never come back.
 */
#include "linger.h"

#include "family.h"

#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <utlist.h>

int linger_init(struct linger *linger, int64_t (*clock_us)(void),
                void (*drop)(struct lingering *lingering))
{
	*linger = (struct linger){
		.fd = epoll_create1(EPOLL_CLOEXEC), .clock_us = clock_us, .drop = drop};
	return linger->fd < 0 ? -errno : 0;
}

void linger_finish(struct linger *linger)
{
	close(linger->fd);
}

bool linger_begin(struct linger *linger, struct lingering *lingering, pid_t pid)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = lingering};
	int fd = family_watch(pid);

	assert(lingering->state == NOT_LINGERING);
	if (fd < 0)
		return false;
	if (epoll_ctl(linger->fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		close(fd);
		return false;
	}
	*lingering = (struct lingering){
		.pid = pid,
		.state = LINGERS_BEHIND,
		.pidfd = fd,
		.until_us = linger->clock_us() + LINGER_US,
	};
	DL_APPEND(linger->waiting, lingering);
	return true;
}

static int compare_ends(const struct lingering *a, const struct lingering *b)
{
	return a->until_us < b->until_us ? -1 : a->until_us > b->until_us;
}

void linger_at_head(struct linger *linger, struct lingering *lingering)
{
	int64_t until = linger->clock_us() + LINGER_HEAD_US;

	assert(lingering->state == LINGERS_BEHIND);
	DL_DELETE(linger->waiting, lingering);
	lingering->state = LINGERS_AT_HEAD;
	if (until < lingering->until_us)
		lingering->until_us = until;
	DL_INSERT_INORDER(linger->heads, lingering, compare_ends);
}

void linger_end(struct linger *linger, struct lingering *lingering)
{
	if (lingering->state == NOT_LINGERING)
		return;
	if (lingering->state == LINGERS_AT_HEAD)
		DL_DELETE(linger->heads, lingering);
	else
		DL_DELETE(linger->waiting, lingering);
	lingering->state = NOT_LINGERING;
	/* Closing is not enough: a child that was just forked has it open for a while, too,
	 * and so long the epoll would tell of it. */
	(void)epoll_ctl(linger->fd, EPOLL_CTL_DEL, lingering->pidfd, NULL);
	close(lingering->pidfd);
}

static int64_t wait_for_first(const struct lingering *list, int64_t now)
{
	if (!list)
		return INT64_MAX;
	return list->until_us > now ? list->until_us - now : 0;
}

int64_t linger_wait(const struct linger *linger)
{
	int64_t now, a, b;

	if (!linger->waiting && !linger->heads)
		return INT64_MAX;
	now = linger->clock_us();
	a = wait_for_first(linger->waiting, now);
	b = wait_for_first(linger->heads, now);
	return a < b ? a : b;
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

	/* Each descriptor is in it once, and dropping one touches no other. */
	for (int i = 0; i < n; i++)
		drop_lingering(linger, events[i].data.ptr);
	if (!linger->waiting && !linger->heads)
		return;
	now = linger->clock_us();
	while (linger->waiting && linger->waiting->until_us <= now)
		drop_lingering(linger, linger->waiting);
	while (linger->heads && linger->heads->until_us <= now)
		drop_lingering(linger, linger->heads);
}
