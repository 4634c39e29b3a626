/* SPDX-License-Identifier: MIT */
#include "tree/absent.h"

#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1 /* an element's tbl stays NULL */
#include <uthash.h>
#include <utlist.h>

struct absent {
	uint64_t ino;
	int64_t busy_until_us; /* when all that was looked up in vain is paid */
	int64_t found_us;      /* when a name was found last that no listing showed */
	int64_t listed_us;     /* when the listing was asked for */
	char *text;            /*   its names, NULL: there is none, */
	const char **names;    /*   sorted */
	size_t count, bytes;
	UT_hash_handle hh;
	struct absent *prev, *next; /* the one looked at longest ago comes first */
};

static struct absent *find(const struct absents *absents, uint64_t ino)
{
	struct absent *absent;

	HASH_FIND(hh, absents->by_ino, &ino, sizeof(ino), absent);
	return absent;
}

static void drop_list(struct absents *absents, struct absent *absent)
{
	free(absent->text);
	free(absent->names);
	absents->bytes -= absent->bytes;
	absent->text = NULL;
	absent->names = NULL;
	absent->count = absent->bytes = 0;
}

static void forget(struct absents *absents, struct absent *absent)
{
	drop_list(absents, absent);
	HASH_DEL(absents->by_ino, absent);
	DL_DELETE(absents->oldest, absent);
	absents->count--;
	free(absent);
}

void absents_finish(struct absents *absents)
{
	while (absents->oldest)
		forget(absents, absents->oldest);
}

static void trim_absents(struct absents *absents, const struct absent *kept)
{
	while ((absents->count > ABSENT_DIRECTORIES_MAX || absents->bytes > ABSENT_BYTES_MAX) &&
	       absents->oldest != kept)
		forget(absents, absents->oldest);
}

/* The directory, made if it is not known; it goes last. NULL: no memory. */
static struct absent *get(struct absents *absents, uint64_t ino)
{
	struct absent *absent = find(absents, ino);

	if (absent) {
		DL_DELETE(absents->oldest, absent);
		DL_APPEND(absents->oldest, absent);
		return absent;
	}
	absent = calloc(1, sizeof(*absent));
	if (!absent)
		return NULL;
	absent->ino = ino;
	absent->found_us = INT64_MIN;
	HASH_ADD(hh, absents->by_ino, ino, sizeof(absent->ino), absent);
	if (!absent->hh.tbl) {
		free(absent);
		return NULL;
	}
	DL_APPEND(absents->oldest, absent);
	absents->count++;
	trim_absents(absents, absent);
	return absent;
}

void absent_note(struct absents *absents, uint64_t ino, uid_t uid, int64_t now_us, int64_t took_us)
{
	struct absent *absent = uid != 0 ? get(absents, ino) : NULL;
	int64_t most_us = now_us + 2 * ABSENT_LIST_US;

	if (!absent)
		return;
	if (absent->busy_until_us < now_us)
		absent->busy_until_us = now_us;
	absent->busy_until_us += took_us + ABSENT_COST_US;
	if (absent->busy_until_us > most_us)
		absent->busy_until_us = most_us;
}

bool absent_is_crowded(const struct absents *absents, uint64_t ino, uid_t uid, int64_t now_us)
{
	const struct absent *absent = uid != 0 ? find(absents, ino) : NULL;

	return absent && absent->busy_until_us - now_us > ABSENT_LIST_US;
}

static int compare_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool shows(const struct absent *absent, const char *name)
{
	return bsearch(&name, absent->names, absent->count, sizeof(*absent->names), compare_name);
}

enum absent_answer absent_ask(struct absents *absents, uint64_t ino, const char *name,
                              int64_t now_us)
{
	const struct absent *absent = find(absents, ino);

	if (!absent || !absent->text || now_us - absent->listed_us >= ABSENT_LIST_US)
		return ABSENT_UNKNOWN;
	return shows(absent, name) ? ABSENT_MAY_BE_THERE : ABSENT_NOT_THERE;
}

/* False: no memory. */
static bool copy_names(struct absent *absent, const struct lc_listing *listing)
{
	size_t bytes = 1;
	char *end;

	for (size_t i = 0; i < listing->lock_count; i++)
		bytes += strlen(listing->locks[i]) + 1;
	absent->text = end = malloc(bytes);
	absent->names = calloc(listing->lock_count + 1, sizeof(*absent->names));
	if (!absent->text || !absent->names)
		return false;
	for (size_t i = 0; i < listing->lock_count; i++) {
		absent->names[i] = end;
		end = stpcpy(end, listing->locks[i]) + 1;
	}
	absent->count = listing->lock_count;
	absent->bytes = bytes + absent->count * sizeof(*absent->names);
	return true;
}

void absent_learn(struct absents *absents, uint64_t ino, const struct lc_listing *listing,
                  int64_t asked_us)
{
	struct absent *absent = get(absents, ino);

	if (!absent || asked_us <= absent->found_us)
		return;
	drop_list(absents, absent);
	absent->listed_us = asked_us;
	if (!copy_names(absent, listing))
		drop_list(absents, absent);
	absents->bytes += absent->bytes;
	trim_absents(absents, absent);
}

void absent_found(struct absents *absents, uint64_t ino, const char *name, int64_t now_us)
{
	struct absent *absent = find(absents, ino);

	if (!absent || (absent->text && shows(absent, name)))
		return;
	absent->found_us = now_us;
	drop_list(absents, absent);
}
