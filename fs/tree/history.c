/* SPDX-License-Identifier: MIT */
#include "tree/history.h"

#include "host/row.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define HEADER "ENDED LOCK MODE WAITED HELD END PID UID COMMAND SINCE TOKEN BY REASON\n"

/* Whose holds these are. */
struct history_user {
	struct per_user user;
	size_t bytes;
	struct history_item *first; /* the oldest */
};

struct history_item {
	struct history_item *prev, *next;
	struct history_item *users_prev, *users_next;
	struct history_user *user;
	size_t bytes;
	struct record record;
	struct history_hold hold;
	char text[]; /* what its strings point to */
};

#define MINUTES(n) ((n)*INT64_C(60000000))

const int64_t history_bounds_us[HISTORY_BUCKETS] = {
	1000,       10000,       100000,      1000000,      5000000,      15000000,      MINUTES(1),
	MINUTES(5), MINUTES(15), MINUTES(60), MINUTES(240), MINUTES(720), MINUTES(1440),
};

/* A part of the room is root's. */
static size_t weight_of(const struct history_user *user)
{
	if (user->user.uid != 0)
		return user->bytes;
	return user->bytes > HISTORY_ROOT_BYTES ? user->bytes - HISTORY_ROOT_BYTES : 0;
}

static void forget_hold(struct history *history, struct history_item *item)
{
	struct history_user *user = item->user;

	DL_DELETE(history->first, item);
	DL_DELETE2(user->first, item, users_prev, users_next);
	history->count--;
	history->bytes -= item->bytes;
	user->bytes -= item->bytes;
	if (!user->first)
		per_user_drop(&history->users, &user->user);
	record_end(&item->record);
	free(item);
}

/* The oldest hold of the user who has most: nobody's many holds are the end of another's few. */
static void forget_of_most(struct history *history)
{
	struct per_user *user, *next;
	struct history_user *most = NULL;

	HASH_ITER(hh, history->users, user, next) {
		struct history_user *one = (struct history_user *)user;

		if (!most || weight_of(one) > weight_of(most))
			most = one;
	}
	forget_hold(history, most->first);
}

static void keep_hold(struct history *history, const struct history_hold *hold)
{
	size_t lock = strlen(hold->lock) + 1, by = strlen(hold->by) + 1;
	size_t bytes = sizeof(struct history_item) + lock + by + strlen(hold->reason) + 1;
	struct history_user *user = per_user_get(&history->users, hold->uid, sizeof(*user));
	struct history_item *item = user ? malloc(bytes) : NULL;

	if (!item) {
		if (user && !user->first)
			per_user_drop(&history->users, &user->user);
		return;
	}
	*item = (struct history_item){.bytes = bytes, .hold = *hold, .user = user};
	item->hold.lock = strcpy(item->text, hold->lock);
	item->hold.by = strcpy(item->text + lock, hold->by);
	item->hold.reason = strcpy(item->text + lock + by, hold->reason);
	DL_APPEND(history->first, item);
	DL_APPEND2(user->first, item, users_prev, users_next);
	history->count++;
	history->bytes += bytes;
	user->bytes += bytes;
	record_begin(history->records, &item->record, RECORD_HISTORY, 0);
	while (history->count > HISTORY_HOLDS || history->bytes > HISTORY_BYTES)
		forget_of_most(history);
}

void history_add(struct history *history, const struct history_hold *hold, int64_t held_us)
{
	int bucket = 0;

	while (bucket < HISTORY_BUCKETS && held_us > history_bounds_us[bucket])
		bucket++;
	history->buckets[bucket]++;
	history->held_us += held_us;
	keep_hold(history, hold);
}

void history_finish(struct history *history)
{
	while (history->first)
		forget_hold(history, history->first);
}

const char *history_end_name(enum history_end end)
{
	switch (end) {
	case HISTORY_CLOSED:
		return "closed";
	case HISTORY_EXITED:
		return "exited";
	case HISTORY_LOST:
		return "lost";
	case HISTORY_EVICTED:
		return "evicted";
	case HISTORY_STOPPED:
		return "stopped";
	}
	return NULL;
}

/* ---- as text ---- */

static bool may_see(const struct history_item *item, uid_t uid)
{
	return uid == 0 || item->hold.uid == uid;
}

static size_t room_of(const struct history_item *item)
{
	return ROW_WORD_MAX(item->bytes - sizeof(*item)) + ROW_WORD_MAX(LC_COMMAND_MAX) +
	       2 * VIEW_TIME_MAX + 12 * ROW_NUMBER_MAX;
}

static void print_hold(struct row *row, const struct history_hold *hold)
{
	char ended[VIEW_TIME_MAX], since[VIEW_TIME_MAX];

	row_word(row, view_time(ended, hold->ended_ms));
	row_word(row, hold->lock);
	row_word(row, hold->mode == LC_SHARED ? "shared" : "exclusive");
	row_seconds(row, hold->waited_ms);
	row_seconds(row, hold->held_ms);
	row_word(row, history_end_name(hold->end));
	row_number(row, hold->pid, 0);
	row_number(row, hold->uid, -1);
	row_word(row, hold->pid ? hold->command : NULL);
	row_word(row, view_time(since, hold->since_ms));
	row_number(row, hold->token, 0);
	row_word(row, hold->by);
	row_word(row, hold->reason);
	row_end(row);
}

int history_view(const struct facts *facts, struct text *ret_text)
{
	const struct history *history = facts->history;
	uid_t uid = facts->reader;
	struct row row = {.room = sizeof(HEADER)};
	const struct history_item *item;

	DL_FOREACH(history->first, item)
		if (may_see(item, uid))
			row.room += room_of(item);
	row.text = malloc(row.room);
	if (!row.text)
		return -ENOMEM;
	row.len = strlen(HEADER);
	memcpy(row.text, HEADER, row.len);
	DL_FOREACH(history->first, item)
		if (may_see(item, uid))
			print_hold(&row, &item->hold);
	*ret_text = (struct text){.data = row.text, .len = row.len};
	return 0;
}

/* ---- over a reload ---- */

static void needed_text_save_load(struct codec *codec, const char **text)
{
	*text = codec_text(codec, *text);
	if (!*text)
		codec->give_up("the state has a hold without a text");
}

static void ended_hold_save_load(struct codec *codec, struct history_hold *hold)
{
	CODEC_ENUM(codec, hold->end, HISTORY_STOPPED);
	CODEC_ENUM(codec, hold->mode, LC_SHARED);
	CODEC_PID(codec, hold->pid);
	CODEC_U32(codec, hold->uid);
	codec_copy(codec, hold->command, sizeof(hold->command));
	CODEC_64(codec, hold->since_ms);
	CODEC_64(codec, hold->ended_ms);
	CODEC_64(codec, hold->waited_ms);
	CODEC_64(codec, hold->held_ms);
	CODEC_64(codec, hold->token);
	needed_text_save_load(codec, &hold->lock);
	needed_text_save_load(codec, &hold->by);
	needed_text_save_load(codec, &hold->reason);
}

void history_record_save_load(struct codec *codec, void *history, struct record *record)
{
	const struct history_item *item = RECORD_IN(record, struct history_item);
	struct history_hold hold = item ? item->hold : (struct history_hold){0};

	ended_hold_save_load(codec, &hold);
	if (codec->loads)
		keep_hold(history, &hold);
}

void history_counts_save_load(struct codec *codec, struct history *history)
{
	for (int i = 0; i <= HISTORY_BUCKETS; i++)
		CODEC_64(codec, history->buckets[i]);
	CODEC_64(codec, history->held_us);
}
