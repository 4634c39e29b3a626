/* SPDX-License-Identifier: MIT
 *
 * pause.h - was this machine paused? A virtual one may be, to be saved, copied or moved,
 * and all its clocks stand still meanwhile, clock.h among them. Its session ends outside.
 *
 * Nothing tells for certain; this is what gives it away, where there is such a thing:
 *
 *   vmclock   a marker in memory that the hypervisor changes when it has moved or restored
 *             the machine (/dev/vmclock0)
 *   realtime  the wall clock is set: an agent, or the hypervisor, puts it right
 *   tsc       the processor's counter went on
 *   ptp       so did the host's clock (KVM's virtual PTP)
 *
 * Each is looked at whenever somebody wants to rely on the clock. A suspicion is cheap: the
 * mount connects anew. So it may as well be a wrong one.
 */
#ifndef FS_PAUSE_H
#define FS_PAUSE_H

#include "pure/codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAUSE_SOURCES_MAX 4

struct pause_reading {
	int64_t at_ns; /* of our clock; not for what is steady */
	int64_t value;
};

enum pause_kind {
	PAUSE_STEADY,  /* the value stays what it is */
	PAUSE_CLOCK,   /* nanoseconds: goes on as our clock does */
	PAUSE_COUNTER, /* so it does, at a rate that is to be learnt */
};

struct pause_source {
	const char *name;
	enum pause_kind kind;
	/* False: not to be told just now. */
	bool (*read)(void *ctx, struct pause_reading *ret_reading);
	void *ctx;
	int64_t step;           /* a difference of more than this is a jump */
	int64_t wander_ppm;     /* it may go off by so much as time goes on */
	unsigned most_a_minute; /* jumps: with more than these it is of no use; 0: any number */

	/* pause.c's own. */
	struct pause_reading first; /* to learn by, and to count from */
	int64_t learnt_ns;          /* for how long; 0: its rate is not known yet, */
	double per_ns;              /*   which is this */
	bool known;
	int64_t reference; /* what it showed at the last look, less the drift that is allowed */
	int64_t looked_ns; /* when that was */
	int64_t minute_ns; /* when the minute began in which `jumps` are counted */
	unsigned jumps;
};

struct pauses {
	struct pause_source sources[PAUSE_SOURCES_MAX];
	int count;
	int timer; /* readable when the wall clock was set; -1 */
};

/* Opens the sources that this machine has. */
void pauses_begin(struct pauses *pauses);
void pauses_finish(struct pauses *pauses);
/* Anything since the last look. Logs what it was. */
bool pauses_look(struct pauses *pauses);
/* `pauses->timer` is readable. */
void pauses_wake(struct pauses *pauses);
/* "vmclock,realtime", or "-". */
void pauses_names(const struct pauses *pauses, char *ret_names, size_t size);

/* After pauses_begin(): each goes on from where it was, so that no pause is overlooked. */
void pauses_save_load(struct codec *codec, struct pauses *pauses);

/* ---- pause_sources.c ---- */

/* Each fills in a source. False: this machine has none. What a source opens stays open as long as
 * the process runs. */
bool pause_vmclock(struct pause_source *ret_source, const char *path);
bool pause_realtime(struct pause_source *ret_source);
bool pause_tsc(struct pause_source *ret_source, const char *cpuinfo);
/* Whether /proc/cpuinfo names that flag. */
bool pause_processor_has(const char *cpuinfo, const char *flag);
bool pause_ptp(struct pause_source *ret_source, const char *sysfs, const char *dev);

#endif
