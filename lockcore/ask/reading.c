/* SPDX-License-Identifier: MIT */
#include "ask/reading.h"

#include "pure/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct reading no_memory = {.references = 1, .error = -ENOMEM};

static struct known_slots *slots_of(struct lc *lc, const struct ensemble_stat *stat)
{
	return &lc->readings->known_slots[(uint64_t)stat->czxid % LC_KNOWN_SLOTS];
}

void reading_learn_slots(struct lc *lc, const struct ensemble_stat *stat, const void *data,
                         size_t len)
{
	*slots_of(lc, stat) = (struct known_slots){
		.czxid = stat->czxid,
		.mzxid = stat->mzxid,
		.slots = record_slots(data, len),
	};
}

static bool copy_data(struct reading *reading, const struct ensemble_answer *answer)
{
	size_t len = (size_t)answer->data_len;

	reading->data = malloc(len + 1);
	if (!reading->data)
		return false;
	if (len > 0)
		memcpy(reading->data, answer->data, len);
	reading->data[len] = '\0';
	reading->data_len = len;
	return true;
}

static bool copy_names(struct reading *reading, const struct ensemble_answer *answer)
{
	size_t count = (size_t)answer->name_count, bytes = 1;
	char *name;

	for (size_t i = 0; i < count; i++)
		bytes += strlen(answer->names[i]) + 1;
	reading->text = name = malloc(bytes);
	reading->names = malloc((count + 1) * sizeof(*reading->names));
	if (!reading->text || !reading->names)
		return false;
	for (size_t i = 0; i < count; i++) {
		reading->names[i] = name;
		name = stpcpy(name, answer->names[i]) + 1;
	}
	reading->name_count = count;
	return true;
}

/* With more than one entry, the number of slots decides which ones hold. */
static int judge_reading(struct lc *lc, struct reading *reading)
{
	const struct known_slots *known = slots_of(lc, &reading->stat);
	int r = queue_build(lc->clients, reading->names, reading->name_count, &reading->queue);

	if (r < 0 || reading->queue.count <= 1)
		return r;
	if (known->czxid != reading->stat.czxid || known->mzxid != reading->stat.mzxid)
		return -EAGAIN;
	queue_judge(&reading->queue, known->slots);
	return 0;
}

int reading_make(struct lc *lc, enum reading_kind kind, const struct ensemble_answer *answer,
                 struct reading **ret_reading)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	int r = -ENOMEM;

	if (!reading)
		return -ENOMEM;
	reading->references = 1;
	reading->serial = ++lc->readings->serial;
	reading->stat = *answer->stat;
	if (kind == READING_QUEUE && copy_names(reading, answer))
		r = judge_reading(lc, reading);
	else if (kind != READING_QUEUE && copy_data(reading, answer))
		r = 0;
	if (r < 0)
		reading_drop(reading);
	else
		*ret_reading = reading;
	return r;
}

struct reading *reading_fail(int error)
{
	struct reading *reading = error == -ENOMEM ? NULL : calloc(1, sizeof(*reading));

	if (!reading) {
		no_memory.references++;
		return &no_memory;
	}
	reading->references = 1;
	reading->error = error;
	return reading;
}

void reading_drop(struct reading *reading)
{
	if (--reading->references > 0)
		return;
	queue_finish(&reading->queue);
	free(reading->data);
	free(reading->text);
	free(reading->names);
	free(reading->entries);
	free(reading->locks);
	free(reading);
}
