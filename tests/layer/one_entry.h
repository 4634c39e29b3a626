/* SPDX-License-Identifier: MIT
 *
 * one_entry.h - for the tests of entry.c: one entry, and answers to its requests.
 */
#ifndef LAYER_ONE_ENTRY_H
#define LAYER_ONE_ENTRY_H

#include "rig.h"

#include <string.h>

static struct entry one;

static inline int set_up(void **state)
{
	struct rig *rig = rig_begin_ready();

	rig_make_entry(rig, &one, "build", 7, LC_EXCLUSIVE);
	*state = rig;
	return 0;
}

static inline int tear_down(void **state)
{
	struct rig *rig = *state;

	rig_forget(rig);
	rig_end_session(rig, false);
	if (one.state != ENTRY_ABSENT)
		entry_set_absent(&one);
	lock_expect_none(one.lock);
	rig_free_entry(&one);
	rig_finish(rig);
	return 0;
}

static inline void create(void)
{
	entry_begin(&one);
	assert_int_equal(one.state, ENTRY_CREATING);
	one.pending++;
	one.sent_us = one.lock->lc->session->lease.answered_us;
}

static inline void created(enum ensemble_result result, const char *path,
                           const struct ensemble_stat *stat)
{
	entry_created(&one,
	              &(struct ensemble_answer){.result = result, .path = path, .stat = stat});
}

static inline struct ensemble_stat stat_of(int64_t czxid, int64_t session)
{
	return (struct ensemble_stat){.czxid = czxid, .mzxid = czxid, .ephemeral_owner = session};
}

static inline void make(struct rig *rig)
{
	struct ensemble_stat stat = stat_of(100, RIG_SESSION);

	create();
	created(ENSEMBLE_OK, rig_entry_path(&one, 5), &stat);
	rig_forget(rig);
}

static inline void answer_get(struct rig *rig, int64_t czxid, int64_t session, int32_t version,
                              const char *data)
{
	struct ensemble_stat stat = stat_of(czxid, session);

	stat.version = version;
	rig_answer(rig, &(struct ensemble_answer){
				.stat = &stat, .data = data, .data_len = (int)strlen(data)});
}

static inline void begin_deletion(void)
{
	one.wanted = false;
	entry_set_state(&one, ENTRY_DELETING);
	one.pending++;
	one.sent_us = one.lock->lc->session->lease.answered_us;
}

static inline void deleted(enum ensemble_result result)
{
	entry_deleted(&one, &(struct ensemble_answer){.result = result});
}

static inline bool is_list_wanted(void)
{
	bool wanted = one.lock->lists.wanted;

	lock_unwant_list(one.lock);
	return wanted;
}

#define ENTRY_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
