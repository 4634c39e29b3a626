/* SPDX-License-Identifier: MIT
 *
 * pause.c - see pause.h: the sources, and whether one has jumped. How each is read:
 * pause_sources.c.
 */
#include "host/pause.h"

#include "host/clock.h"
#include "host/log.h"

#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000LL
/* The rate of a counter is guessed once the counter was compared with the clock for the least time,
 * and again whenever that time has doubled, up to the most time. The error of a guess grows as time
 * goes on, and a new guess comes before the error is as large as a step. */
#define LEARN_LEAST_NS (SECOND_NS / 50)
#define LEARN_MOST_NS (10 * SECOND_NS)

/* The difference of two readings. A marker may have wrapped around between them. */
static int64_t minus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

static void learn_anew(struct pause_source *source)
{
	source->known = false;
	source->learnt_ns = 0;
	source->first.at_ns = 0;
}

/* Learns the rate. A pause meanwhile gives a wrong rate, and so a jump later. */
static void learn_reading(struct pause_source *source, const struct pause_reading *reading)
{
	int64_t ns = reading->at_ns - source->first.at_ns;
	double counts = (double)minus(reading->value, source->first.value);

	if (source->first.at_ns == 0) {
		source->first = *reading;
		return;
	}
	if (ns < LEARN_LEAST_NS || ns < 2 * source->learnt_ns ||
	    source->learnt_ns >= LEARN_MOST_NS || counts <= 0)
		return;
	source->per_ns = counts / (double)ns;
	source->learnt_ns = ns;
	source->known = false;
}

static struct pause_reading convert_reading(const struct pause_source *source,
                                            const struct pause_reading *reading)
{
	double counts = (double)minus(reading->value, source->first.value);

	return (struct pause_reading){.at_ns = reading->at_ns,
	                              .value = source->first.at_ns +
	                                       (int64_t)(counts / source->per_ns)};
}

/* How far the source may have drifted from the clock since the last look, without a pause. */
static int64_t count_wandering(struct pause_source *source, int64_t at_ns)
{
	int64_t since_ns = at_ns - source->looked_ns;

	source->looked_ns = at_ns;
	return (int64_t)((double)since_ns * (double)source->wander_ppm / 1e6);
}

/* How far the source has jumped, or 0. */
static int64_t jump_of(struct pause_source *source, const struct pause_reading *reading)
{
	bool steady = source->kind == PAUSE_STEADY;
	int64_t value = steady ? reading->value : minus(reading->value, reading->at_ns);
	int64_t most = steady ? 0 : count_wandering(source, reading->at_ns), off;

	if (!source->known)
		source->reference = value;
	source->known = true;
	off = minus(value, source->reference);
	off = off > most ? off - most : off < -most ? off + most : 0;
	source->reference = minus(value, off);
	if (off <= source->step && off >= -source->step)
		return 0;
	source->reference = value;
	return off;
}

static void log_jump(const struct pause_source *source, int64_t off)
{
	if (source->step == 0)
		log_line(LC_NOTICE, "%s says that this machine was paused or moved", source->name);
	else
		log_line(LC_NOTICE,
		         "this machine may have been paused: by %s its clock is off by %.3f s",
		         source->name, (double)off / (double)SECOND_NS);
}

/* Stops the use of a source that jumps too often. Its false alarms would make the mount connect
 * anew for ever. */
static void count_jump(struct pause_source *source)
{
	int64_t now_ns = clock_now_us() * 1000;

	if (source->jumps == 0 || now_ns - source->minute_ns > 60 * SECOND_NS) {
		source->minute_ns = now_ns;
		source->jumps = 0;
	}
	if (++source->jumps <= source->most_a_minute || source->most_a_minute == 0)
		return;
	log_line(LC_WARNING, "%s gives too many false alarms: it is not used any more",
	         source->name);
	source->read = NULL;
}

/* Does what jump_of() does, for readings that are counts: the counter's rate makes times of them.
 * Until the rate is known no jump is found. */
static int64_t jump_of_counter(struct pause_source *source, const struct pause_reading *reading)
{
	struct pause_reading time;
	int64_t off = 0;

	if (source->learnt_ns > 0) {
		time = convert_reading(source, reading);
		off = jump_of(source, &time);
	}
	if (off != 0) {
		learn_anew(source);
		return off;
	}
	learn_reading(source, reading);
	if (source->learnt_ns > 0 && !source->known) {
		time = convert_reading(source, reading);
		(void)jump_of(source, &time);
	}
	return 0;
}

static bool look_at_source(struct pause_source *source)
{
	struct pause_reading reading;
	int64_t off;

	if (!source->read || !source->read(source->ctx, &reading))
		return false;
	off = source->kind == PAUSE_COUNTER ? jump_of_counter(source, &reading)
	                                    : jump_of(source, &reading);
	if (off == 0)
		return false;
	log_jump(source, off);
	count_jump(source);
	return true;
}

bool pauses_look(struct pauses *pauses)
{
	bool jumped = false;

	for (int i = 0; i < pauses->count; i++)
		jumped |= look_at_source(&pauses->sources[i]);
	return jumped;
}

/* The timer is cancelled when the clock is set, and never goes off. */
void pauses_wake(struct pauses *pauses)
{
	const struct itimerspec never = {.it_value.tv_sec = 9000000000}; /* in the year 2255 */
	uint64_t times;

	(void)!read(pauses->timer, &times, sizeof(times));
	if (timerfd_settime(pauses->timer, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never,
	                    NULL) < 0) {
		close(pauses->timer);
		pauses->timer = -1;
	}
}

void pauses_begin(struct pauses *pauses)
{
	pauses->count = 0;
	pauses->count += pause_vmclock(&pauses->sources[pauses->count], "/dev/vmclock0");
	pauses->count += pause_realtime(&pauses->sources[pauses->count]);
	pauses->count += pause_tsc(&pauses->sources[pauses->count], "/proc/cpuinfo");
	pauses->count += pause_ptp(&pauses->sources[pauses->count], "/sys/class/ptp", "/dev");
	pauses->timer = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (pauses->timer >= 0)
		pauses_wake(pauses);
	(void)pauses_look(pauses);
}

void pauses_finish(struct pauses *pauses)
{
	if (pauses->timer >= 0)
		close(pauses->timer);
}

void pauses_names(const struct pauses *pauses, char *ret_names, size_t size)
{
	size_t len = 0;

	snprintf(ret_names, size, "-");
	for (int i = 0; i < pauses->count && len < size; i++)
		if (pauses->sources[i].read)
			len += (size_t)snprintf(ret_names + len, size - len, "%s%s", len ? "," : "",
			                        pauses->sources[i].name);
}

/* ---- over a reload ---- */

static void source_save_load(struct codec *codec, struct pause_source *source)
{
	bool read = source->read;
	int64_t per_ns;

	memcpy(&per_ns, &source->per_ns, sizeof(per_ns));
	CODEC_BOOL(codec, read);
	CODEC_64(codec, source->first.at_ns);
	CODEC_64(codec, source->first.value);
	CODEC_64(codec, source->learnt_ns);
	CODEC_64(codec, per_ns);
	CODEC_BOOL(codec, source->known);
	CODEC_64(codec, source->reference);
	CODEC_64(codec, source->looked_ns);
	CODEC_64(codec, source->minute_ns);
	CODEC_U32(codec, source->jumps);
	memcpy(&source->per_ns, &per_ns, sizeof(per_ns));
	if (!read)
		source->read = NULL;
}

static struct pause_source *find_source(struct pauses *pauses, const char *name)
{
	for (int i = 0; i < pauses->count; i++)
		if (name && strcmp(pauses->sources[i].name, name) == 0)
			return &pauses->sources[i];
	return NULL;
}

void pauses_save_load(struct codec *codec, struct pauses *pauses)
{
	int count = pauses->count;

	CODEC_RANGE(codec, count, 0, PAUSE_SOURCES_MAX);
	for (int i = 0; i < count; i++) {
		struct pause_source *source = codec->loads ? NULL : &pauses->sources[i],
				    other = {0};
		const char *name = codec_text(codec, source ? source->name : NULL);

		if (codec->loads)
			source = find_source(pauses, name);
		source_save_load(codec, source ? source : &other);
	}
}
