/* SPDX-License-Identifier: MIT
 *
 * pause_sources.c - how the things of pause.h are read. Open files and mappings stay until the
 * process ends.
 */
#include "host/pause.h"

#include "host/clock.h"
#include "host/proc.h"

#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

/* A tenth of a second is a third of the lease's guard. */
#define STEP_NS 100000000LL
/* The part of a step that may be owed to a reading that was held up. */
#define MOST_NS (STEP_NS / 10)
#define TRIES 16

/* Calls read() between two looks at the clock, again and again until the two are so near each other
 * that they are one, or nearly so. False: read() failed, or each try was held up. */
static bool read_at_once(int64_t (*clock_ns)(void), bool (*read)(void *ctx, int64_t *ret),
                         void *ctx, int64_t *ret_at_ns, int64_t *ret_value)
{
	int64_t tightest = MOST_NS + 1;

	for (int i = 0; i < TRIES && tightest > CLOCK_BRACKET_NS; i++) {
		int64_t before = clock_ns(), value, bracket;

		if (!read(ctx, &value))
			return false;
		bracket = clock_ns() - before;
		if (bracket >= tightest)
			continue;
		tightest = bracket;
		*ret_at_ns = before;
		*ret_value = value;
	}
	return tightest <= MOST_NS;
}

static int64_t our_clock_ns(void)
{
	return clock_now_us() * 1000;
}

/* ---- vmclock: its layout, little-endian, is part of the kernel's interface ---- */

#define VMCLOCK_MAGIC 0x4b4c4356 /* "VCLK" */

struct vmclock {
	uint32_t magic;
	uint32_t size; /* of the region */
	uint16_t version;
	uint8_t counter, time_type;
	_Atomic uint32_t sequence; /* odd: it is being changed */
	_Atomic uint64_t disruption;
	_Atomic uint64_t flags;
	uint8_t time[72];
	_Atomic uint64_t generation; /* with that flag: restored from a snapshot */
};

#define VMCLOCK_HAS_GENERATION (1 << 8)

_Static_assert(offsetof(struct vmclock, disruption) == 0x10 &&
                       offsetof(struct vmclock, generation) == 0x68,
               "as the hypervisor lays it out");

/* The reading changes when either marker does. A hypervisor that dies half-way leaves the sequence
 * odd: then there is no reading. */
static bool read_vmclock(void *ctx, struct pause_reading *ret_reading)
{
	struct vmclock *vmclock = ctx;

	for (int i = 0; i < 1000; i++) {
		uint32_t sequence = atomic_load(&vmclock->sequence);
		uint64_t marker = le64toh(atomic_load(&vmclock->disruption));

		if (le64toh(atomic_load(&vmclock->flags)) & VMCLOCK_HAS_GENERATION)
			marker ^= le64toh(atomic_load(&vmclock->generation)) * 0x9e3779b97f4a7c15u;
		if (!(le32toh(sequence) & 1) && atomic_load(&vmclock->sequence) == sequence) {
			ret_reading->value = (int64_t)marker;
			return true;
		}
	}
	return false;
}

bool pause_vmclock(struct pause_source *ret_source, const char *path)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE); /* the device maps just that */
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct vmclock *vmclock;

	if (fd < 0)
		return false;
	vmclock = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (vmclock == MAP_FAILED)
		return false;
	if (le32toh(vmclock->magic) != VMCLOCK_MAGIC || le16toh(vmclock->version) != 1 ||
	    le32toh(vmclock->size) < sizeof(*vmclock)) {
		munmap(vmclock, page);
		return false;
	}
	*ret_source = (struct pause_source){
		.name = "vmclock", .kind = PAUSE_STEADY, .read = read_vmclock, .ctx = vmclock};
	return true;
}

/* ---- the wall clock: slewed as CLOCK_BOOTTIME is, so that only a step shows ---- */

static int64_t boottime_ns(void)
{
	return clock_read_ns(CLOCK_BOOTTIME);
}

static bool read_wall(void *ctx, int64_t *ret_ns)
{
	(void)ctx;
	*ret_ns = clock_read_ns(CLOCK_REALTIME);
	return true;
}

static bool read_realtime(void *ctx, struct pause_reading *ret_reading)
{
	int64_t boottime;

	if (!read_at_once(boottime_ns, read_wall, ctx, &boottime, &ret_reading->value))
		return false;
	ret_reading->value -= boottime;
	return true;
}

bool pause_realtime(struct pause_source *ret_source)
{
	*ret_source = (struct pause_source){
		.name = "realtime", .kind = PAUSE_STEADY, .read = read_realtime, .step = STEP_NS};
	return true;
}

/* ---- the processor's counter ---- */

bool pause_processor_has(const char *cpuinfo, const char *flag)
{
	char *line = proc_read_line(cpuinfo, "flags");
	const char *at = line ? strchr(line, ' ') : NULL;
	size_t len = strlen(flag);
	bool has = false;

	while (at && !has) {
		has = strncmp(at + 1, flag, len) == 0 && strcspn(at + 1 + len, " \n") == 0;
		at = strchr(at + 1, ' ');
	}
	free(line);
	return has;
}

#ifdef __x86_64__
static bool read_counter(void *ctx, int64_t *ret_counts)
{
	(void)ctx;
	*ret_counts = (int64_t)__rdtsc();
	return true;
}

static bool read_tsc(void *ctx, struct pause_reading *ret_reading)
{
	return read_at_once(our_clock_ns, read_counter, ctx, &ret_reading->at_ns,
	                    &ret_reading->value);
}

/* A counter that always runs at the same rate, also when the processor sleeps. */
static bool is_steady(const char *cpuinfo)
{
	return pause_processor_has(cpuinfo, "constant_tsc") &&
	       pause_processor_has(cpuinfo, "nonstop_tsc");
}

bool pause_tsc(struct pause_source *ret_source, const char *cpuinfo)
{
	if (!is_steady(cpuinfo))
		return false;
	*ret_source = (struct pause_source){.name = "tsc",
	                                    .kind = PAUSE_COUNTER,
	                                    .read = read_tsc,
	                                    .step = STEP_NS,
	                                    .wander_ppm = 500,
	                                    .most_a_minute = 15};
	return true;
}
#else
bool pause_tsc(struct pause_source *ret_source, const char *cpuinfo)
{
	(void)ret_source;
	(void)cpuinfo;
	return false;
}
#endif

/* ---- the host's clock, as KVM shows it: slewed and set by the host's NTP daemon ---- */

#define PTP_STEP_NS (3 * STEP_NS)
#define PTP_WANDER_PPM 100000
/* From a descriptor to a clock: see clock_getres(2), "Dynamic clocks". */
#define CLOCK_OF(fd) ((clockid_t)((~(unsigned)(fd) << 3) | 3))

static bool read_host_clock(void *ctx, int64_t *ret_ns)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_OF((int)(intptr_t)ctx), &ts) < 0)
		return false;
	*ret_ns = ts.tv_sec * 1000000000LL + ts.tv_nsec;
	return true;
}

static bool read_ptp(void *ctx, struct pause_reading *ret_reading)
{
	return read_at_once(our_clock_ns, read_host_clock, ctx, &ret_reading->at_ns,
	                    &ret_reading->value);
}

static bool is_of_kvm(const char *sysfs, const char *name)
{
	char path[512], clock[64];

	snprintf(path, sizeof(path), "%s/%s/clock_name", sysfs, name);
	return proc_read(AT_FDCWD, path, clock, sizeof(clock)) &&
	       strcmp(clock, "KVM virtual PTP\n") == 0;
}

static int open_ptp(const char *sysfs, const char *dev)
{
	DIR *dir = opendir(sysfs);
	struct dirent *entry;
	char path[512];
	int fd = -1;

	while (dir && fd < 0 && (entry = readdir(dir)))
		if (strncmp(entry->d_name, "ptp", 3) == 0 && is_of_kvm(sysfs, entry->d_name)) {
			snprintf(path, sizeof(path), "%s/%s", dev, entry->d_name);
			fd = open(path, O_RDONLY | O_CLOEXEC);
		}
	if (dir)
		closedir(dir);
	return fd;
}

bool pause_ptp(struct pause_source *ret_source, const char *sysfs, const char *dev)
{
	int fd = open_ptp(sysfs, dev);
	int64_t ns;

	if (fd < 0)
		return false;
	if (!read_host_clock((void *)(intptr_t)fd, &ns)) {
		close(fd);
		return false;
	}
	*ret_source = (struct pause_source){.name = "ptp",
	                                    .kind = PAUSE_CLOCK,
	                                    .read = read_ptp,
	                                    .ctx = (void *)(intptr_t)fd,
	                                    .step = PTP_STEP_NS,
	                                    .wander_ppm = PTP_WANDER_PPM,
	                                    .most_a_minute = 15};
	return true;
}
