/* SPDX-License-Identifier: MIT
 *
 * linger.c - see linger.h. An epoll of pidfds, which the loop polls as one
 * descriptor: unlike the ZooKeeper client's socket these never come back.
 */
#include "hold/linger.h"

#include "host/family.h"
#include "host/process.h"

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

static bool watch_end(const struct linger *linger, struct lingering *lingering, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = lingering};

	return epoll_ctl(linger->fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

bool linger_begin(struct linger *linger, struct lingering *lingering, pid_t pid)
{
	int fd = family_watch(pid);

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

void linger_keep(struct linger *linger, struct lingering *lingering, int64_t until_us)
{
	assert(lingering->state == NOT_LINGERING);
	*lingering = (struct lingering){
		.state = LINGERS_KEPT,
		.pidfd = -1,
		.until_us = until_us,
	};
	DL_INSERT_INORDER(linger->kept, lingering, compare_ends);
}

static void unlist(struct linger *linger, struct lingering *lingering)
{
	switch (lingering->state) {
	case NOT_LINGERING:
		return;
	case LINGERS_BEHIND:
		DL_DELETE(linger->waiting, lingering);
		return;
	case LINGERS_AT_HEAD:
		DL_DELETE(linger->heads, lingering);
		return;
	case LINGERS_KEPT:
		DL_DELETE(linger->kept, lingering);
		return;
	}
}

void linger_end(struct linger *linger, struct lingering *lingering)
{
	bool watched = lingering->state == LINGERS_BEHIND || lingering->state == LINGERS_AT_HEAD;

	unlist(linger, lingering);
	lingering->state = NOT_LINGERING;
	if (!watched)
		return;
	/* Closing is not enough: a child that was just forked has it open for a while, too, and
	 * until it closes, the epoll would report it. */
	(void)epoll_ctl(linger->fd, EPOLL_CTL_DEL, lingering->pidfd, NULL);
	close(lingering->pidfd);
}

static int64_t wait_for_first(const struct lingering *list, int64_t now)
{
	if (!list)
		return INT64_MAX;
	return list->until_us > now ? list->until_us - now : 0;
}

static bool nothing_lingers(const struct linger *linger)
{
	return !linger->waiting && !linger->heads && !linger->kept;
}

int64_t linger_wait(const struct linger *linger)
{
	const struct lingering *lists[] = {linger->waiting, linger->heads, linger->kept};
	int64_t now, least = INT64_MAX;

	if (nothing_lingers(linger))
		return INT64_MAX;
	now = linger->clock_us();
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		int64_t wait = wait_for_first(lists[i], now);

		least = wait < least ? wait : least;
	}
	return least;
}

static void drop_lingering(struct linger *linger, struct lingering *lingering)
{
	linger_end(linger, lingering);
	linger->drop(lingering);
}

static void drop_overdue(struct linger *linger, struct lingering *const *list, int64_t now)
{
	while (*list && (*list)->until_us <= now)
		drop_lingering(linger, *list);
}

void linger_process(struct linger *linger, bool ready)
{
	struct epoll_event events[64];
	int64_t now;
	int n = ready ? epoll_wait(linger->fd, events, 64, 0) : 0;

	/* Each descriptor is in it once, and dropping one touches no other. */
	for (int i = 0; i < n; i++)
		drop_lingering(linger, events[i].data.ptr);
	if (nothing_lingers(linger))
		return;
	now = linger->clock_us();
	drop_overdue(linger, &linger->waiting, now);
	drop_overdue(linger, &linger->heads, now);
	drop_overdue(linger, &linger->kept, now);
}

void linger_carry(struct carry *carry, struct linger *linger, struct lingering *lingering)
{
	CARRY_PID(carry, lingering->pid);
	CARRY_RANGE(carry, lingering->state, LINGERS_BEHIND, LINGERS_AT_HEAD);
	CARRY_64(carry, lingering->until_us);
	lingering->pidfd = process_life_carry(carry, lingering->pid, 0, lingering->pidfd);
	if (!carry->loads)
		return;
	if (carry->crashed && lingering->pidfd < 0)
		lingering->until_us = INT64_MIN; /* it has ended meanwhile */
	if (lingering->state == LINGERS_AT_HEAD)
		DL_INSERT_INORDER(linger->heads, lingering, compare_ends);
	else
		DL_INSERT_INORDER(linger->waiting, lingering, compare_ends);
	if (lingering->pidfd >= 0 && !watch_end(linger, lingering, lingering->pidfd))
		carry->refuse("the state has a process that cannot be watched");
}
