/* SPDX-License-Identifier: MIT
 *
 * saved.c - see saved.h.
 */
#include "session/saved.h"

#include <assert.h>
#include <stdlib.h>

static uint64_t next_key(struct lc *lc, enum state_kind kind)
{
	return kind == STATE_EVICTION ? ++lc->changes->evictions : ++lc->changes->takers;
}

/* No new object gets this key. */
static void use_key(struct lc *lc, enum state_kind kind, uint64_t key)
{
	uint64_t *last = kind == STATE_EVICTION ? &lc->changes->evictions : &lc->changes->takers;

	if (*last < key)
		*last = key;
}

void saved_begin(struct lc *lc, struct saved *saved, enum state_kind kind, uint64_t key)
{
	*saved = (struct saved){.kind = kind, .key = key, .given = key};
	if (key) {
		use_key(lc, kind, key);
		return;
	}
	saved->key = next_key(lc, kind);
	saved_touch(lc, saved);
}

void saved_touch(struct lc *lc, struct saved *saved)
{
	if (!saved->prev)
		DL_APPEND(lc->changes->first, saved);
}

void saved_touched_not(struct lc *lc, struct saved *saved)
{
	if (!saved->prev)
		return;
	DL_DELETE(lc->changes->first, saved);
	saved->prev = saved->next = NULL;
}

void saved_move(struct lc *lc, struct saved *saved)
{
	saved->key = next_key(lc, saved->kind);
	saved_touch(lc, saved);
}

void saved_free(struct lc *lc, struct saved *saved, void *memory)
{
	if (saved->given) {
		assert((char *)saved - (char *)memory <= UINT16_MAX);
		saved->gone = true;
		saved->offset = (uint16_t)((char *)saved - (char *)memory);
		saved_touch(lc, saved);
		return;
	}
	saved_touched_not(lc, saved);
	free(memory);
}

void saved_free_remains(struct saved *saved)
{
	assert(saved->gone);
	free((char *)saved - saved->offset);
}

void changes_finish(struct lc *lc)
{
	while (lc->changes->first) {
		struct saved *saved = lc->changes->first;

		saved_touched_not(lc, saved);
		saved_free_remains(saved);
	}
	free(lc->changes->writer.bytes);
}
