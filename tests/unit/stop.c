/* SPDX-License-Identifier: MIT
 *
 * stop.c - a signal to a process that has lost a lock: whoever was reached is counted, once.
 */
#include "guard/stop.h"

#include "unit.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct page *make_page(void)
{
	struct page *page = calloc(1, sizeof(*page));

	assert_non_null(page);
	page->slots[0].pid = 1;
	return page;
}

/* Two children meet the same process. The signal of the first one does not reach it. */
static void a_signal_that_reaches_nobody_is_not_told(void **state)
{
	struct page *page = make_page();
	struct stops *stops = stops_create(page);
	pid_t pid = fork();
	struct process process, other = {.pid = pid, .fd = -1, .start = 1};
	struct stop stop = {.process = &other};
	struct stop_names names;

	(void)state;
	if (pid == 0) {
		pause();
		_exit(0);
	}
	assert_non_null(stops);
	assert_int_equal(process_open(pid, &process), 0);
	stop_name(stops, &stop, SIGKILL, &names);
	stop_send(stops, &stop, SIGKILL, &names);
	assert_int_equal(atomic_load(&page->kills), 0);
	stop.process = &process;
	stop_send(stops, &stop, SIGKILL, &names);
	stop_send(stops, &stop, SIGKILL, &names);
	assert_int_equal(atomic_load(&page->kills), 1);
	assert_int_equal(atomic_load(&page->spared), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	process_close(&process);
	free(page);
}

/* What is noted of many losers is kept until no lock is lost. */
static void each_process_is_noted(void **state)
{
	struct page *page = make_page();
	struct stops *stops = stops_create(page);
	struct process process = {.fd = -1};
	struct stop stop = {.process = &process};

	(void)state;
	assert_non_null(stops);
	for (process.pid = 1; process.pid < 6000; process.pid++) {
		assert_false(stop_is_noted(stops, &stop));
		stop_note(stops, &stop);
	}
	for (process.pid = 1; process.pid < 6000; process.pid++)
		assert_true(stop_is_noted(stops, &stop));
	stops_forget(stops);
	for (process.pid = 1; process.pid < 6000; process.pid++)
		assert_false(stop_is_noted(stops, &stop));
	free(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_that_reaches_nobody_is_not_told),
		cmocka_unit_test(each_process_is_noted),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
