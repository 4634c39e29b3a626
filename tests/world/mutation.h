/* SPDX-License-Identifier: MIT
 *
 * mutation.h - one lie at a time: ways in which the world, the port or the
 * harness can be made to break a promise, so that each invariant is seen to
 * fail when it should. For mutations of the engine's own sources see mutants.py.
 */
#ifndef WORLD_MUTATION_H
#define WORLD_MUTATION_H

#define MUTATIONS(M)                                                                       \
	M(none, "the truth")                                                               \
	M(expire_early, "sessions expire after half their timeout (lease outlives entry)") \
	M(slow_clock, "mounts' clocks run 20 % slow (lease outlives entry)")               \
	M(unnoticed, "a machine that stood still does not suspect it (two holders)")       \
	M(late_stamp, "connect_us is read after the connection was accepted (lease)")      \
	M(unknown_as_ok, "lost answers are reported as OK (lease, orphans)")               \
	M(hide_entry, "listings leave the first child out (order, two holders)")           \
	M(drop_changed, "changed() events are dropped (waiting while free)")               \
	M(lose_delete, "deletes are answered OK and not done (orphans)")                   \
	M(lose_create, "sequential creates are answered OK and not done (grant order)")    \
	M(falling_token, "stat.czxid falls (fencing tokens rise)")                         \
	M(swallow_answer, "one answer in ten is never given (every take is answered)")     \
	M(slow_answers, "answers take 0.9 T (try and timed limits)")                       \
	M(false_end, "ended() while the session lives (LOST without cause)")               \
	M(late_write, "a write cut off happens after a later write (orphans)")             \
	M(crosstalk, "answers of reads come from another path (order)")                    \
	M(late_leave, "the harness forgets to leave in time (callback after leave)")       \
	M(swallow_taken, "the harness does not hear taken() (exactly one answer)")         \
	M(swallow_done, "the harness does not hear a call's answer (exactly one answer)")  \
	M(deaf_stat, "GET says NONODE of nodes that are there (spurious ENOENT, LOST)")

enum mutation {
#define M(name, text) MUTATE_##name,
	MUTATIONS(M)
#undef M
		MUTATION_COUNT
};

extern enum mutation mutation;

const char *mutation_name(enum mutation which);
const char *mutation_text(enum mutation which);
/* MUTATION_COUNT: there is no mutation of that name. */
enum mutation mutation_find(const char *name);

#endif
