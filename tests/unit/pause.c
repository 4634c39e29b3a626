/* SPDX-License-Identifier: MIT
 *
 * Signs of a pause: values that jump, counters whose rate must be learnt, a page of a hypervisor;
 * and changes that must not be taken for a pause.
 */
#include "host/pause.h"

#include "host/clock.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MS INT64_C(1000000)
#define SECOND INT64_C(1000000000)

static struct pause_reading now = {.at_ns = 5000 * SECOND};

static bool read_now(void *ctx, struct pause_reading *ret_reading)
{
	(void)ctx;
	*ret_reading = now;
	return true;
}

static struct pauses one(enum pause_kind kind, int64_t step, int64_t wander_ppm)
{
	struct pauses pauses = {.timer = -1, .count = 1};

	pauses.sources[0] = (struct pause_source){.name = "fake",
	                                          .kind = kind,
	                                          .read = read_now,
	                                          .step = step,
	                                          .wander_ppm = wander_ppm};
	return pauses;
}

static void a_marker(void **state)
{
	struct pauses pauses = one(PAUSE_STEADY, 0, 0);

	(void)state;
	now.value = INT64_MAX;
	assert_false(pauses_look(&pauses));
	assert_false(pauses_look(&pauses));
	now.value = INT64_MIN;
	assert_true(pauses_look(&pauses));
	assert_false(pauses_look(&pauses));
	now.value = 0;
	assert_true(pauses_look(&pauses));
	now.value++;
	assert_true(pauses_look(&pauses));
	assert_false(pauses_look(&pauses));
}

static void a_steady_difference(void **state)
{
	struct pauses pauses = one(PAUSE_STEADY, 100 * MS, 0);

	(void)state;
	now.value = -7 * SECOND;
	assert_false(pauses_look(&pauses));
	now.value += 100 * MS;
	assert_false(pauses_look(&pauses));
	now.value += 1; /* many small steps are a large one */
	assert_true(pauses_look(&pauses));
	assert_false(pauses_look(&pauses));
	now.value -= 100 * MS + 1;
	assert_true(pauses_look(&pauses));
	assert_false(pauses_look(&pauses));
}

static void pass(int64_t ns, double rate)
{
	now.at_ns += ns;
	now.value = (int64_t)((uint64_t)now.value + (uint64_t)(int64_t)((double)ns * rate));
}

/* The host's clock: slewed by a tenth at most, set now and then. */
static void another_clock(void **state)
{
	struct pauses pauses = one(PAUSE_CLOCK, 300 * MS, 100000);

	(void)state;
	assert_false(pauses_look(&pauses));
	for (int i = 0; i < 1000; i++) {
		pass(i % 7 * 10 * MS, i < 500 ? 1.09 : 0.91);
		assert_false(pauses_look(&pauses));
	}
	pass(3600 * SECOND, 1.09);
	assert_false(pauses_look(&pauses));
	now.value += 301 * MS;
	assert_true(pauses_look(&pauses));
	assert_false(pauses_look(&pauses));
	/* Several jumps, each too small to be noticed by itself. */
	now.value += 200 * MS;
	assert_false(pauses_look(&pauses));
	pass(500 * MS, 1);
	assert_false(pauses_look(&pauses));
	now.value += 200 * MS;
	assert_true(pauses_look(&pauses));
	now.value -= 10 * SECOND;
	assert_true(pauses_look(&pauses));
}

static void learn(struct pauses *pauses, double rate)
{
	for (int i = 0; i < 4; i++) {
		assert_false(pauses_look(pauses));
		pass(10 * MS, rate);
	}
	assert_false(pauses_look(pauses));
}

static void a_counter(void **state)
{
	static const double rates[] = {0.001, 0.0192, 1, 2.4, 3.0000123, 40};

	(void)state;
	for (size_t i = 0; i < LENGTH(rates); i++) {
		struct pauses pauses = one(PAUSE_COUNTER, 100 * MS, 500);

		now.value = i % 2 ? INT64_MAX - 1000 : 12345; /* it may wrap around */
		learn(&pauses, rates[i]);
		for (int k = 0; k < 1000; k++) {
			pass(k % 2 ? 20 * SECOND : 1 * MS, rates[i] * (k < 500 ? 1.0002 : 0.9998));
			expect(!pauses_look(&pauses), "rate %f, look %d", rates[i], k);
		}
		now.value += (int64_t)(110 * MS * rates[i]);
		expect(pauses_look(&pauses), "rate %f: a pause of 110 ms", rates[i]);
		/* The rate is learnt anew, and the next pause is noticed. */
		learn(&pauses, rates[i]);
		now.value += (int64_t)(15 * SECOND * rates[i]);
		expect(pauses_look(&pauses), "rate %f: a second one", rates[i]);
		learn(&pauses, rates[i]);
		now.value = 0;
		pass(10 * SECOND, 0);
		expect(pauses_look(&pauses), "rate %f: a counter that begins anew", rates[i]);
		/* It may be that of another machine now. */
		learn(&pauses, rates[i] * 1.5);
		for (int k = 0; k < 100; k++) {
			pass(SECOND, rates[i] * 1.5);
			expect(!pauses_look(&pauses), "rate %f: a new rate, look %d", rates[i], k);
		}
	}
}

static void the_rate_is_learnt_once(void **state)
{
	struct pauses pauses = one(PAUSE_COUNTER, 100 * MS, 500);

	(void)state;
	assert_false(pauses_look(&pauses));
	pass(10 * SECOND, 3);
	assert_false(pauses_look(&pauses));
	/* Two jumps are one: what is learnt in between would hide the first. */
	pass(60 * SECOND, 3);
	now.value += 80 * MS * 3;
	assert_false(pauses_look(&pauses));
	pass(SECOND, 3);
	now.value += 80 * MS * 3;
	assert_true(pauses_look(&pauses));
}

static void a_pause_while_the_rate_is_learnt(void **state)
{
	struct pauses pauses = one(PAUSE_COUNTER, 100 * MS, 500);
	int looks = 0;

	(void)state;
	pauses_look(&pauses);
	pass(10 * MS, 3);
	now.value += 10 * SECOND * 3;
	pauses_look(&pauses);
	pass(15 * MS, 3);
	pauses_look(&pauses);
	for (; looks < 100; looks++) {
		pass(10 * MS, 3);
		if (pauses_look(&pauses))
			break;
	}
	expect(looks < 20, "noticed after %d looks", looks);
}

static void one_that_cries_is_not_listened_to(void **state)
{
	struct pauses pauses = one(PAUSE_CLOCK, 100 * MS, 0);
	char names[32];
	int cries = 0;

	(void)state;
	pauses.sources[0].most_a_minute = 15;
	pauses_look(&pauses);
	pauses_names(&pauses, names, sizeof(names));
	assert_string_equal(names, "fake");
	for (int i = 0; i < 100; i++) {
		now.value += SECOND;
		cries += pauses_look(&pauses);
	}
	assert_int_equal(cries, 16);
	pauses_names(&pauses, names, sizeof(names));
	assert_string_equal(names, "-");
	/* A marker is believed always. */
	pauses = one(PAUSE_STEADY, 0, 0);
	pauses_look(&pauses);
	for (int i = 0; i < 100; i++) {
		now.value++;
		assert_true(pauses_look(&pauses));
	}
}

static void each_minute_counts_for_itself(void **state)
{
	struct pauses pauses = one(PAUSE_CLOCK, 100 * MS, 0);

	(void)state;
	pauses.sources[0].most_a_minute = 15;
	pauses_look(&pauses);
	for (int i = 0; i < 100; i++) {
		if (i % 10 == 0)
			pauses.sources[0].minute_ns -= 61 * SECOND;
		now.value += SECOND;
		assert_true(pauses_look(&pauses));
	}
}

/* ---- what is read ---- */

static char path[] = "/tmp/zklockfs-pause-XXXXXX";

static int put_file(const void *content, size_t size)
{
	int fd;

	snprintf(path, sizeof(path), "/tmp/zklockfs-pause-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0 && write(fd, content, size) == (ssize_t)size);
	return fd;
}

/* As the kernel's vmclock-abi.h lays it out; the processors here are little-endian. */
static unsigned char *vmclock_page(unsigned char page[4096])
{
	memset(page, 0, 4096);
	memcpy(page, "VCLK", 4);
	page[0x05] = 0x10; /* size: 4096 */
	page[0x08] = 1;    /* version */
	page[0x10] = 42;   /* disruption_marker */
	return page;
}

static void hypervisors_marker(void **state)
{
	unsigned char page[4096], *mapped;
	struct pauses pauses = {.timer = -1, .count = 1};
	int fd = put_file(vmclock_page(page), sizeof(page));

	(void)state;
	mapped = mmap(NULL, sizeof(page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(pause_vmclock(&pauses.sources[0], path));
	assert_false(pauses_look(&pauses));
	mapped[0x48]++; /* the time goes on */
	mapped[0x0c] += 2;
	mapped[0x68]++; /* nothing yet: the flag is not set */
	assert_false(pauses_look(&pauses));
	mapped[0x0c]++; /* the page is being changed */
	mapped[0x10]++;
	assert_false(pauses_look(&pauses));
	mapped[0x0c]++;
	assert_true(pauses_look(&pauses));
	assert_false(pauses_look(&pauses));
	mapped[0x19] |= 1; /* VM_GEN_COUNTER_PRESENT */
	assert_true(pauses_look(&pauses));
	mapped[0x68]++; /* restored from a snapshot */
	assert_true(pauses_look(&pauses));
	assert_false(pauses_look(&pauses));
	munmap(mapped, sizeof(page));
	close(fd);
	unlink(path);
}

static void no_marker(void **state)
{
	static const struct {
		int at;
		unsigned char byte;
	} rows[] = {{0, 'X'}, {8, 2}, {5, 0}};
	struct pause_source source;
	unsigned char page[4096];

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		vmclock_page(page)[rows[i].at] = rows[i].byte;
		close(put_file(page, sizeof(page)));
		expect(!pause_vmclock(&source, path), "byte %d is %d", rows[i].at, rows[i].byte);
		unlink(path);
	}
	assert_false(pause_vmclock(&source, path));
}

static void the_wall_clock(void **state)
{
	struct pauses pauses = {.timer = -1, .count = 1};

	(void)state;
	assert_true(pause_realtime(&pauses.sources[0]));
	for (int i = 0; i < 10000; i++)
		assert_false(pauses_look(&pauses));
	pauses.sources[0].reference += 200 * MS;
	assert_true(pauses_look(&pauses));
	assert_false(pauses_look(&pauses));
}

#ifdef __x86_64__
static void which_processors_count(void **state)
{
	static const struct {
		const char *flags;
		bool good;
	} rows[] = {
		{"flags\t\t: fpu constant_tsc rep_good nonstop_tsc cpuid\n", true},
		{"flags\t\t: fpu nonstop_tsc constant_tsc\n", true},
		{"processor : 0\nflags\t\t: constant_tsc nonstop_tsc\nflags : fpu\n", true},
		{"flags\t\t: fpu constant_tsc rep_good nonstop_tsc_s3\n", false},
		{"flags\t\t: fpu nonstop_tsc\n", false},
		{"flags\t\t: fpu\nbugs : constant_tsc nonstop_tsc\n", false},
		{"", false},
	};
	struct pause_source source;

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		close(put_file(rows[i].flags, strlen(rows[i].flags)));
		expect(pause_tsc(&source, path) == rows[i].good, "'%s'", rows[i].flags);
		unlink(path);
	}
	assert_false(pause_tsc(&source, path));
}

/* The counter of this machine, whatever its rate. */
static void the_processors_counter(void **state)
{
	struct pauses pauses = {.timer = -1, .count = 1};
	int64_t until = clock_now_us() + 300000;

	(void)state;
	close(put_file("flags : constant_tsc nonstop_tsc\n", 33));
	assert_true(pause_tsc(&pauses.sources[0], path));
	unlink(path);
	while (clock_now_us() < until) {
		assert_false(pauses_look(&pauses));
		usleep(1000);
	}
	expect(pauses.sources[0].learnt_ns > 0, "no rate was learnt");
}
#endif

static void no_clock_of_the_host(void **state)
{
	struct pause_source source;

	(void)state;
	assert_false(pause_ptp(&source, "/nonexistent", "/dev"));
	assert_false(pause_ptp(&source, "/", "/dev"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_marker),
		cmocka_unit_test(a_steady_difference),
		cmocka_unit_test(another_clock),
		cmocka_unit_test(a_counter),
		cmocka_unit_test(the_rate_is_learnt_once),
		cmocka_unit_test(a_pause_while_the_rate_is_learnt),
		cmocka_unit_test(one_that_cries_is_not_listened_to),
		cmocka_unit_test(each_minute_counts_for_itself),
		cmocka_unit_test(hypervisors_marker),
		cmocka_unit_test(no_marker),
		cmocka_unit_test(the_wall_clock),
#ifdef __x86_64__
		cmocka_unit_test(which_processors_count),
		cmocka_unit_test(the_processors_counter),
#endif
		cmocka_unit_test(no_clock_of_the_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
