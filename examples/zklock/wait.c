/* SPDX-License-Identifier: MIT
 *
 * wait.c - see wait.h. It looks into the queues of the locks for the entry of the process that
 * waits.
 */
#include "wait.h"

#include "clean.h"
#include "entry.h"
#include "health.h"
#include "span.h"

#include <err.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FIRST_S 1
#define SELDOM_S 10

/* A line, and what of it is worth another line when it has changed. */
struct line {
	char text[CLEAN_MAX * 2], key[CLEAN_MAX];
};

/* Its place in the queue; `count`: it has none that is seen here, or holds. */
static size_t find_taker(const struct wait *wait, const struct health *health,
                         const struct entry *entries, size_t count)
{
	char host[64], owner[100];
	size_t i;

	health_value(health, "host", host, sizeof(host));
	snprintf(owner, sizeof(owner), "%d-%s", (int)wait->taker, host);
	for (i = 0; i < count; i++)
		if (!entries[i].held && strcmp(entry_owner(&entries[i]), owner) == 0)
			break;
	return i;
}

static void describe(const struct lock *lock, const struct health *health,
                     const struct entry *holder, size_t more, size_t before, struct line *line)
{
	char name[CLEAN_MAX], who[ENTRY_WHO_MAX], reason[CLEAN_MAX];
	char age[SPAN_MAX], others[48] = "", place[48] = "";
	int64_t held_ms = entry_age(holder, health);

	if (more)
		snprintf(others, sizeof(others), " and %zu more", more);
	if (before)
		snprintf(place, sizeof(place), "; %zu before you", before);
	snprintf(line->text, sizeof(line->text),
	         "%.1000s: waiting for %s%s, which %s held it for %s%.4100s%s%s",
	         clean(name, sizeof(name), lock->name), entry_who(holder, who), others,
	         more ? "have" : "has", held_ms < 0 ? "a moment" : span_format(age, held_ms),
	         entry_why(holder, reason), place,
	         entry_is_own(holder, health) ? "; this is your own hold: use -R" : "");
	snprintf(line->key, sizeof(line->key), "%.1000s %.24s %.300s %zu %zu %.2000s", lock->name,
	         holder->token, holder->name, more, before, holder->reason);
}

/* False: this is not the lock that is waited for. */
static bool look_at(const struct wait *wait, const struct lock *lock, const struct health *health,
                    struct line *line)
{
	const struct mount *mount = wait->take->mount;
	size_t count, place, held = 0, first;
	struct entry *entries;

	if (!entries_list(mount, lock->name, &entries, &count))
		return false;
	place = find_taker(wait, health, entries, count);
	for (size_t i = 0; i < count && i < place; i++)
		held += entries[i].held;
	for (first = 0; first < count && !entries[first].held; first++)
		;
	if (place < count && first < place) {
		entry_read(mount, lock->name, &entries[first]);
		describe(lock, health, &entries[first], held - 1, place - held, line);
	}
	entries_free(entries, count);
	return place < count && first < place;
}

static bool look(const struct wait *wait, struct line *line)
{
	const struct take *take = wait->take;
	struct health health;
	char why[HEALTH_MAX];
	bool found = false;

	health_read(take->mount, &health);
	if (health.text && !health_is_good(&health, why)) {
		snprintf(line->text, sizeof(line->text), "waiting: %s", why);
		snprintf(line->key, sizeof(line->key), "away");
		found = true;
	}
	for (size_t i = 0; i < take->count && !found; i++)
		found = look_at(wait, &take->locks[i], &health, line);
	health_free(&health);
	return found;
}

void wait_tell(const void *context)
{
	unsigned pause_s = FIRST_S;
	char said[CLEAN_MAX] = "";
	struct line line;

	for (;;) {
		sleep(pause_s);
		pause_s = pause_s * 2 < SELDOM_S ? pause_s * 2 : SELDOM_S;
		if (!look(context, &line) || strcmp(line.key, said) == 0)
			continue;
		warnx("%s", line.text);
		memcpy(said, line.key, sizeof(said));
	}
}
