/* SPDX-License-Identifier: MIT */
#include "session/counters.h"

#include <errno.h>
#include <string.h>

const int lc_failure_codes[LC_FAILURES] = {
	EAGAIN,    ETIMEDOUT, ENOENT, ECANCELED, EACCES, EHOSTUNREACH,
	ESHUTDOWN, ENOLCK,    EPROTO, EDEADLK,   ENOMEM, 0,
};

/* From one round trip to an hour. */
const int64_t lc_wait_bounds_us[LC_WAIT_BUCKETS] = {
	1000,   2500,    5000,     10000,    50000,     100000,
	500000, 1000000, 10000000, 60000000, 600000000, 3600000000,
};

void count_grant(struct lc *lc, int64_t asked_us)
{
	struct lc_counters *counters = &lc->counters;
	int64_t waited = lc_lately(lc) - asked_us;
	int i = 0;

	while (i < LC_WAIT_BUCKETS && waited > lc_wait_bounds_us[i])
		i++;
	counters->grants++;
	counters->waits[i]++;
	counters->waited_us += waited;
}

void count_failure(struct lc *lc, int error)
{
	int i = 0;

	while (lc_failure_codes[i] && lc_failure_codes[i] != -error)
		i++;
	lc->counters.failures[i]++;
}

/* ---- the record ---- */

struct counter {
	const char *name;
	int64_t of; /* the errno of a failure, or the longest wait that is counted; else 0 */
	unsigned long *value;
};

#define NUMBERED(field, help) COUNTER_##field,
enum { LC_COUNTERS(NUMBERED) COUNTERS_ALONE };
#define COUNTERS_ALL (COUNTERS_ALONE + LC_FAILURES + LC_WAIT_BUCKETS + 1)

static void list_counters(struct lc_counters *counters, struct counter ret[COUNTERS_ALL])
{
#define ALONE(field, help) *ret++ = (struct counter){#field, 0, &counters->field};
	LC_COUNTERS(ALONE)
	for (int i = 0; i < LC_FAILURES; i++)
		*ret++ = (struct counter){"failures", lc_failure_codes[i], &counters->failures[i]};
	for (int i = 0; i <= LC_WAIT_BUCKETS; i++)
		*ret++ = (struct counter){"waits", i < LC_WAIT_BUCKETS ? lc_wait_bounds_us[i] : 0,
		                          &counters->waits[i]};
}

/* Another version may count what this one does not. */
static void set_counter(struct counter *all, const char *name, int64_t of, int64_t value)
{
	for (size_t i = 0; i < COUNTERS_ALL; i++)
		if (name && strcmp(all[i].name, name) == 0 && all[i].of == of)
			*all[i].value = (unsigned long)value;
}

/* Records of version 5 have no names: these counters come first, in this order. */
static void read_unnamed(struct codec *codec, struct counter *all, struct lc_counters *counters)
{
	static const char *const names[] = {
		"requests", "clock_doubts", "takes",   "grants",  "hand_offs", "reuses",
		"losses",   "evictions",    "overdue", "crowded", "abandoned",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		set_counter(all, names[i], 0, codec_number(codec, 0, INT64_MIN, INT64_MAX));
	CODEC_64(codec, counters->waited_us);
	for (size_t i = COUNTERS_ALONE; i < COUNTERS_ALL; i++)
		CODEC_64(codec, *all[i].value);
}

static void counter_save_load(struct codec *codec, struct counter *all, size_t i)
{
	const struct counter *counter = codec->loads ? NULL : &all[i];
	const char *name = codec_text(codec, counter ? counter->name : NULL);
	int64_t of = counter ? counter->of : 0, value = counter ? (int64_t)*counter->value : 0;

	CODEC_64(codec, of);
	CODEC_64(codec, value);
	if (codec->loads)
		set_counter(all, name, of, value);
}

void counters_save_load(struct codec *codec, struct lc_counters *counters)
{
	struct counter all[COUNTERS_ALL];
	size_t count;

	list_counters(counters, all);
	if (!codec_has(codec, 6)) {
		read_unnamed(codec, all, counters);
		return;
	}
	CODEC_64(codec, counters->waited_us);
	count = codec_count(codec, COUNTERS_ALL);
	for (size_t i = 0; i < count; i++)
		counter_save_load(codec, all, i);
}
