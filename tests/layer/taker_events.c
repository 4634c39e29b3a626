/* SPDX-License-Identifier: MIT
 *
 * The events of an entry, and their meaning for its taker.
 */
#include "grant/taker_events.h"

#include "takers.h"

#include <errno.h>

static void create_is_refused(void **state)
{
	static const struct {
		enum ensemble_result why;
		const char *told;
	} rows[] = {
		{ENSEMBLE_NONODE, "1 taken ENOENT"},     {ENSEMBLE_NOCHILDREN, "1 taken ENOENT"},
		{ENSEMBLE_NOAUTH, "1 taken EACCES"},     {ENSEMBLE_REFUSED, "1 taken ENOLCK"},
		{ENSEMBLE_BADVERSION, "1 taken ENOLCK"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rig *rig = takers_begin();

		takers_take(rig, 1, LC_EXCLUSIVE, LC_FOREVER);
		takers_turn(rig);
		takers_answer_watches(rig);
		takers_answer_error(rig, rows[i].why);
		rig_expect_told(rig, rows[i].told);
		takers_end(rig);
	}
}

/* The taker was told another error before. */
static void taker_has_failed_already(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_take(rig, 1, LC_EXCLUSIVE, LC_FOREVER);

	takers_turn(rig);
	taker_fail(taker, -ETIMEDOUT);
	takers_answer_watches(rig);
	takers_answer_error(rig, ENSEMBLE_NOAUTH);
	rig_expect_told(rig, "1 taken ETIMEDOUT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(create_is_refused),
		TAKERS_TEST(taker_has_failed_already),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
