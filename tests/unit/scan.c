/* SPDX-License-Identifier: MIT
 *
 * scan.c - the descriptors of a process that are found, and the cost where descriptors are
 * expensive to read.
 */
#include "guard/scan.h"

#include "host/clock.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define ENTRIES 3000
#define EXPENSIVE 300

struct search {
	uint64_t ino;
	int mount_id;
	char device[32];
	int found, elsewhere;
};

static bool note_file(void *ctx, const struct seen_file *file)
{
	struct search *search = ctx;

	if (file->ino == search->ino && scan_is_on_mount(file, search->mount_id, search->device))
		search->found++;
	else
		search->elsewhere++;
	return true;
}

/* A file on a mount where no other descriptor has a file. */
static int open_file(struct search *ret_search)
{
	char path[] = "/dev/shm/zklockfs-scan-XXXXXX";
	int fd = mkstemp(path);
	struct statx st;

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &st), 0);
	*ret_search = (struct search){.ino = st.stx_ino, .mount_id = -1};
	snprintf(ret_search->device, sizeof(ret_search->device), "%u:%u", st.stx_dev_major,
	         st.stx_dev_minor);
	return fd;
}

static int64_t cpu_us(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID) / 1000;
}

/* An epoll with many entries, all of one file, which stays open; each of the epoll's duplicates
 * shows them all. */
static int open_expensive(void)
{
	struct rlimit limit;
	int epoll = epoll_create1(0), event = eventfd(0, 0), last = -1;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int i = 0; i < ENTRIES; i++) {
		last = dup(event);
		assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, last, &(struct epoll_event){0}),
		                 0);
	}
	for (int fd = event + 1; fd <= last; fd++)
		close(fd);
	return epoll;
}

static int64_t cost_of(int fd)
{
	char path[64], text[512];
	int64_t began = cpu_us();
	int info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY);
	assert_true(read(info, text, sizeof(text)) > 0);
	close(info);
	return cpu_us() - began;
}

static void every_descriptor_is_found(void **state)
{
	struct scan_place place = {0};
	struct search search;
	int fd = open_file(&search), again = dup(fd), other = open("/dev/null", O_RDONLY);

	(void)state;
	assert_true(scan_process(getpid(), search.device, &place, SCAN_ALL, note_file, &search) >
	            3);
	assert_int_equal(search.found, 2);
	assert_true(search.elsewhere > 0);
	search.found = 0;
	scan_threads(getpid(), search.device, &place, SCAN_ALL, note_file, &search);
	assert_int_equal(search.found, 2);
	close(again);
	close(other);
	close(fd);
	search.found = 0;
	scan_all(search.device, note_file, &search);
	assert_int_equal(search.found, 0);
}

/* Without any time each part has one descriptor. Each descriptor is in one part. */
static void parts_make_a_whole(void **state)
{
	struct search search;
	struct scan_place place = {0}, parts = {0};
	int fd = open_file(&search), again = dup(fd), all, seen = 0;

	(void)state;
	all = scan_process(getpid(), search.device, &place, SCAN_ALL, note_file, &search);
	assert_false(place.more);
	assert_int_equal(search.found, 2);
	do {
		assert_int_equal(
			scan_process(getpid(), search.device, &parts, 0, note_file, &search), 1);
		seen++;
	} while (parts.more && seen < all);
	assert_int_equal(seen, all);
	assert_int_equal(search.found, 4);
	parts = (struct scan_place){0};
	do
		scan_threads(getpid(), search.device, &parts, 0, note_file, &search);
	while (parts.more);
	assert_int_equal(search.found, 6);
	close(again);
	close(fd);
}

static void what_is_dear_is_not_read(void **state)
{
	struct scan_place place = {0};
	struct search search;
	int expensive = open_expensive(), first = open_file(&search), last, duplicates[EXPENSIVE];
	int64_t each = cost_of(expensive), began;

	(void)state;
	for (int i = 0; i < EXPENSIVE; i++)
		duplicates[i] = dup(expensive);
	last = dup(first);
	began = cpu_us();
	assert_true(scan_process(getpid(), search.device, &place, SCAN_ALL, note_file, &search) >=
	            EXPENSIVE + 3);
	began = cpu_us() - began;
	assert_int_equal(search.found, 2);
	if (began > each * EXPENSIVE / 4)
		fail_msg("%lld us, where one descriptor costs %lld us", (long long)began,
		         (long long)each);
	for (int i = 0; i < EXPENSIVE; i++)
		close(duplicates[i]);
	close(last);
	close(first);
	close(expensive);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_descriptor_is_found),
		cmocka_unit_test(parts_make_a_whole),
		cmocka_unit_test(what_is_dear_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
