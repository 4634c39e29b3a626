/* SPDX-License-Identifier: MIT
 *
 * The kept place of an interrupted open is dropped when its time is up, at once when its process is
 * gone, and never later than was set first. A lock that is kept after it was given back is dropped
 * at its time.
 */
#include "hold/linger.h"

#include "unit.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int64_t now;
static struct lingering *dropped[8];
static int dropped_count;

static int64_t clock_us(void)
{
	return now;
}

static void drop(struct lingering *place)
{
	assert_int_equal(place->state, NOT_LINGERING);
	dropped[dropped_count++] = place;
}

static int set_up(void **state)
{
	static struct linger linger;

	now = 1000000000;
	dropped_count = 0;
	*state = &linger;
	return linger_init(&linger, clock_us, drop) ? 0 : -1;
}

static int tear_down(void **state)
{
	linger_finish(*state);
	return 0;
}

static void pass(struct linger *linger, int64_t us)
{
	now += us;
	linger_process(linger, false);
}

static void two_seconds(void **state)
{
	struct linger *linger = *state;
	struct lingering place = {0};

	assert_int_equal(linger_wait(linger), INT64_MAX);
	assert_true(linger_begin(linger, &place, getpid()));
	assert_int_equal(linger_wait(linger), 2000000);
	pass(linger, 1999999);
	assert_int_equal(linger_wait(linger), 1);
	assert_int_equal(dropped_count, 0);
	pass(linger, 1);
	assert_int_equal(dropped_count, 1);
	assert_ptr_equal(dropped[0], &place);
	assert_int_equal(linger_wait(linger), INT64_MAX);
	pass(linger, 10000000);
	assert_int_equal(dropped_count, 1);
}

/* All others wait for the head of the queue, so it is kept for a shorter time. */
static void shorter_at_the_head(void **state)
{
	struct linger *linger = *state;
	struct lingering place = {0};

	linger_begin(linger, &place, getpid());
	now += 1000000;
	linger_at_head(linger, &place);
	assert_int_equal(linger_wait(linger), 250000);
	pass(linger, 249999);
	assert_int_equal(dropped_count, 0);
	pass(linger, 1);
	assert_int_equal(dropped_count, 1);
}

static void the_head_gets_no_longer_time(void **state)
{
	struct linger *linger = *state;
	struct lingering place = {0};

	linger_begin(linger, &place, getpid());
	now += 1900000;
	linger_at_head(linger, &place);
	assert_int_equal(linger_wait(linger), 100000);
	pass(linger, 100000);
	assert_int_equal(dropped_count, 1);
}

static void taken_up_again(void **state)
{
	struct linger *linger = *state;
	struct lingering a = {0}, b = {0};

	linger_begin(linger, &a, getpid());
	linger_begin(linger, &b, getpid());
	linger_at_head(linger, &b);
	linger_end(linger, &a);
	linger_end(linger, &b);
	linger_end(linger, &b);
	assert_int_equal(linger_wait(linger), INT64_MAX);
	pass(linger, 10000000);
	assert_int_equal(dropped_count, 0);
	/* The open is interrupted again. */
	assert_true(linger_begin(linger, &b, getpid()));
	assert_int_equal(linger_wait(linger), 2000000);
	linger_end(linger, &b);
}

static void in_the_order_of_their_ends(void **state)
{
	struct linger *linger = *state;
	struct lingering a = {0}, b = {0}, c = {0};

	linger_begin(linger, &a, getpid());
	now += 100;
	linger_begin(linger, &b, getpid());
	now += 100;
	linger_begin(linger, &c, getpid());
	linger_at_head(linger, &b);
	pass(linger, 250000);
	assert_int_equal(dropped_count, 1);
	assert_ptr_equal(dropped[0], &b);
	pass(linger, 10000000);
	assert_int_equal(dropped_count, 3);
	assert_ptr_equal(dropped[1], &a);
	assert_ptr_equal(dropped[2], &c);
}

static void a_head_that_came_later_may_end_sooner(void **state)
{
	struct linger *linger = *state;
	struct lingering early = {0}, late = {0};

	linger_begin(linger, &early, getpid());
	now += 1900000;
	linger_begin(linger, &late, getpid());
	linger_at_head(linger, &late);
	linger_at_head(linger, &early);
	assert_int_equal(linger_wait(linger), 100000);
	pass(linger, 100000);
	assert_int_equal(dropped_count, 1);
	assert_ptr_equal(dropped[0], &early);
	linger_end(linger, &late);
}

static void gone_with_its_process(void **state)
{
	struct linger *linger = *state;
	struct lingering dying = {0}, living = {0};
	struct pollfd pollfd = {.fd = linger->fd, .events = POLLIN};
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		pause();
		_exit(0);
	}
	assert_true(linger_begin(linger, &dying, child));
	assert_true(linger_begin(linger, &living, getpid()));
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	kill(child, SIGKILL);
	assert_int_equal(poll(&pollfd, 1, 10000), 1);
	linger_process(linger, true);
	assert_int_equal(dropped_count, 1);
	assert_ptr_equal(dropped[0], &dying);
	assert_int_equal(living.state, LINGERS_BEHIND);
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	/* A process that is gone cannot be watched. */
	assert_false(linger_begin(linger, &dying, child));
	assert_false(linger_begin(linger, &dying, 0));
	assert_int_equal(dying.state, NOT_LINGERING);
	linger_end(linger, &living);
}

/* A lock is kept until its time, whatever else lingers. */
static void kept_until_its_time(void **state)
{
	struct linger *linger = *state;
	struct lingering late = {0}, early = {0}, place = {0};

	linger_keep(linger, &late, now + 5000000);
	linger_keep(linger, &early, now + 3000000);
	assert_int_equal(linger_wait(linger), 3000000);
	assert_true(linger_begin(linger, &place, getpid()));
	assert_int_equal(linger_wait(linger), 2000000);
	pass(linger, 2999999);
	assert_int_equal(dropped_count, 1);
	assert_ptr_equal(dropped[0], &place);
	pass(linger, 1);
	assert_int_equal(dropped_count, 2);
	assert_ptr_equal(dropped[1], &early);
	assert_int_equal(linger_wait(linger), 2000000);
	linger_end(linger, &late);
	linger_end(linger, &late);
	assert_int_equal(linger_wait(linger), INT64_MAX);
	pass(linger, 10000000);
	assert_int_equal(dropped_count, 2);
}

/* A forked process has the descriptor, too, until it closes it: the epoll still watches a
 * descriptor that is closed here, and whose place may be gone. */
static void gone_though_a_copy_is_open(void **state)
{
	struct linger *linger = *state;
	struct lingering place = {0};
	struct pollfd pollfd = {.fd = linger->fd, .events = POLLIN};
	pid_t child = fork(), copy;
	int told;

	assert_true(child >= 0);
	if (child == 0) {
		pause();
		_exit(0);
	}
	assert_true(linger_begin(linger, &place, child));
	copy = fork();
	assert_true(copy >= 0);
	if (copy == 0) {
		pause();
		_exit(0);
	}
	linger_end(linger, &place);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	told = poll(&pollfd, 1, 0);
	kill(copy, SIGKILL);
	assert_int_equal(waitpid(copy, NULL, 0), copy);
	assert_int_equal(told, 0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(two_seconds),
		TEST(shorter_at_the_head),
		TEST(the_head_gets_no_longer_time),
		TEST(taken_up_again),
		TEST(in_the_order_of_their_ends),
		TEST(a_head_that_came_later_may_end_sooner),
		TEST(gone_with_its_process),
		TEST(kept_until_its_time),
		TEST(gone_though_a_copy_is_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
