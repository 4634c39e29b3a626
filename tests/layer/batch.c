/* SPDX-License-Identifier: MIT
 *
 * The requests of one turn go out together: which creates and deletes share a transaction, in
 * which order, and what becomes of them when the transaction fails.
 */
#include "rig.h"

#include <stdio.h>
#include <string.h>

#define COUNT 8

static struct entry all[COUNT]; /* all[i] has pid i + 1; the first one is #2 */
static unsigned count;

static int set_up(void **state)
{
	count = 0;
	*state = rig_begin_ready();
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	rig_end_session(rig, false);
	for (unsigned i = 0; i < count; i++) {
		if (all[i].state != ENTRY_ABSENT)
			entry_set_absent(&all[i]);
		lock_unwant_list(all[i].lock);
		rig_free_entry(&all[i]);
	}
	free(rig->batch.entries);
	rig_finish(rig);
	return 0;
}

/* ---- entries ---- */

static struct entry *add(struct rig *rig, const char *lock)
{
	struct entry *entry = &all[count++];

	rig_make_entry(rig, entry, lock, (pid_t)count, LC_EXCLUSIVE);
	return entry;
}

static void create(struct entry *entry)
{
	entry_begin(entry);
	assert_true(batch_add(entry));
}

static void drop(struct entry *entry)
{
	entry->wanted = false;
	entry_set_state(entry, ENTRY_DELETING);
	assert_true(batch_add(entry));
}

/* An entry that is there; the last write to its lock was good. */
static struct entry *add_present(struct rig *rig, const char *lock, int number)
{
	struct entry *entry = add(rig, lock);

	create(entry);
	batch_send(&rig->lc);
	rig_answer_created(rig, rig_entry_path(entry, number), 100 + number);
	rig_forget(rig);
	return entry;
}

/* An absent entry of a lock whose last write was good: it deleted this entry. */
static struct entry *add_after_ok(struct rig *rig, const char *lock)
{
	struct entry *entry = add_present(rig, lock, 0);

	drop(entry);
	batch_send(&rig->lc);
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_forget(rig);
	entry->wanted = true;
	return entry;
}

/* Answers a transaction; `paths`: of its creates, at their places. */
static void answer_all(struct rig *rig, enum ensemble_result result, const char *const *paths)
{
	rig_answer(rig, &(struct ensemble_answer){.result = result, .paths = paths});
}

/* ---- together, or alone ---- */

static void one_goes_alone(void **state)
{
	struct rig *rig = *state;
	struct entry *entry = add(rig, "a");

	create(entry);
	rig_expect_sent(rig, "");
	batch_send(&rig->lc);
	rig_expect_sent(rig, "create ephemeral /locks/a/#2-");
	batch_send(&rig->lc);
	rig_expect_sent(rig, "");
	rig_answer_created(rig, rig_entry_path(entry, 7), 107);
	rig_expect_told(rig, "alive, 1 made, 1 changed");
	assert_int_equal(entry->czxid, 107);
	drop(entry);
	batch_send(&rig->lc);
	rig_expect_sent(rig, "delete /locks/a/#2-7");
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_expect_told(rig, "alive, 1 absent, 1 changed");
	assert_int_equal(entry->pending, 0);
	assert_int_equal(rig->batch.flights, 0);
}

/* A transaction of two would save little, and only single creates are answered with a Stat. */
static void three_go_together(void **state)
{
	struct rig *rig = *state;
	struct entry *a = add_after_ok(rig, "a"), *b = add_after_ok(rig, "b"),
		     *c = add_after_ok(rig, "c");

	create(a);
	create(b);
	batch_send(&rig->lc);
	rig_expect_sent(rig, "create ephemeral /locks/a/#2-, create ephemeral /locks/b/#3-");
	rig_answer_created(rig, rig_entry_path(a, 1), 201);
	rig_answer_created(rig, rig_entry_path(b, 2), 202);
	drop(a);
	drop(b);
	create(c);
	rig_forget(rig);
	batch_send(&rig->lc);
	rig_expect_sent(rig, "delete /locks/a/#2-1 + delete /locks/b/#3-2 + "
	                     "create ephemeral /locks/c/#4-");
	answer_all(rig, ENSEMBLE_OK, (const char *const[]){NULL, NULL, rig_entry_path(c, 3)});
	rig_expect_told(rig, "alive, 1 absent, 1 changed, alive, 2 absent, 2 changed, "
	                     "alive, 3 made, 3 changed");
	assert_int_equal(c->number, 3);
	assert_int_equal(c->czxid, 0); /* a transaction gives no Stat */
	assert_int_equal(rig->batch.flights, 0);
}

/* A lock whose last write was not good might make the transaction of the others fail. */
static void unproven_locks_go_alone(void **state)
{
	struct rig *rig = *state;
	struct entry *entries[4];
	static const char *const locks[] = {"a", "b", "c", "new"};

	for (int i = 0; i < 4; i++)
		entries[i] = i < 3 ? add_after_ok(rig, locks[i]) : add(rig, locks[i]);
	create(entries[3]);
	for (int i = 0; i < 3; i++)
		create(entries[i]);
	batch_send(&rig->lc);
	rig_expect_sent(rig, "create ephemeral /locks/new/#5-, create ephemeral /locks/a/#2- + "
	                     "create ephemeral /locks/b/#3- + create ephemeral /locks/c/#4-");
}

/* Entries that leave may stand in the way of new entries. */
static void deletes_come_first(void **state)
{
	struct rig *rig = *state;
	struct entry *a = add_after_ok(rig, "a"), *b = add_present(rig, "b", 3),
		     *c = add_present(rig, "c", 4);

	create(a);
	drop(b);
	drop(c);
	batch_send(&rig->lc);
	rig_expect_sent(rig, "delete /locks/b/#3-3 + delete /locks/c/#4-4 + "
	                     "create ephemeral /locks/a/#2-");
}

/* Nodes of one transaction share a czxid, the token: so one create of a lock at a time. */
static void one_create_of_a_lock(void **state)
{
	struct rig *rig = *state;
	struct entry *a = add_after_ok(rig, "a"), *second = add(rig, "a"),
		     *b = add_present(rig, "b", 3), *c = add_present(rig, "c", 4);

	create(a);
	drop(b);
	drop(c);
	batch_send(&rig->lc);
	rig_forget(rig);
	create(second);
	batch_send(&rig->lc);
	rig_expect_sent(rig, ""); /* it waits for the answer to the first create */
	answer_all(rig, ENSEMBLE_OK, (const char *const[]){NULL, NULL, rig_entry_path(a, 1)});
	batch_send(&rig->lc);
	rig_expect_sent(rig, "create ephemeral /locks/a/#3-");
}

/* Several unsent creates of a lock go singly, in their order. */
static void several_creates_of_a_lock(void **state)
{
	struct rig *rig = *state;
	struct entry *first = add_after_ok(rig, "a"), *second = add(rig, "a"),
		     *third = add(rig, "a");

	create(first);
	create(second);
	create(third);
	batch_send(&rig->lc);
	rig_expect_sent(rig, "create ephemeral /locks/a/#2-, create ephemeral /locks/a/#3-, "
	                     "create ephemeral /locks/a/#4-");
}

/* Creates entries, each in its own lock whose last write was good. */
static void create_many(struct rig *rig, struct entry *many, size_t how_many, const char *reason)
{
	for (size_t i = 0; i < how_many; i++) {
		char lock[24];

		snprintf(lock, sizeof(lock), "%zu", i);
		rig_make_entry(rig, &many[i], lock, 1, LC_EXCLUSIVE);
		many[i].data.reason = reason ? strdup(reason) : NULL;
		many[i].lock->batch.last_write_ok = true;
		create(&many[i]);
	}
}

static void end_many(struct rig *rig, struct entry *many, size_t how_many)
{
	rig_forget(rig);
	rig_end_session(rig, false);
	for (size_t i = 0; i < how_many; i++) {
		entry_set_absent(&many[i]);
		rig_forget(rig);
		rig_free_entry(&many[i]);
	}
}

static void only_so_much_in_one(void **state)
{
	static struct entry many[ENSEMBLE_OPS_MAX + 2];
	struct rig *rig = *state;
	unsigned parts = 1;

	create_many(rig, many, LENGTH(many), NULL);
	batch_send(&rig->lc);
	for (const char *text = rig->sent;
	     (text = strstr(text, " + ")) && text < strchr(rig->sent, ','); text++)
		parts++;
	/* One place stays free: an operation needs room for itself and for a check. */
	assert_int_equal(parts, ENSEMBLE_OPS_MAX - 1);
	assert_non_null(strstr(rig->sent, "/#128-, create ephemeral /locks/127/#129- + "));
	end_many(rig, many, LENGTH(many));
}

/* The check binds only its own transaction: two operations that are left over go alone. */
static void the_rest_is_not_bound(void **state)
{
	static struct entry many[ENSEMBLE_OPS_MAX - 1];
	struct rig *rig = *state;
	struct entry *leaver = add_present(rig, "a", 1), *next = add_present(rig, "a", 2);

	leaver->lock->grant.unproved = next;
	drop(leaver);
	create_many(rig, many, LENGTH(many), NULL);
	batch_send(&rig->lc);
	assert_non_null(strstr(rig->sent, "/#128-, create ephemeral /locks/125/#129-, "
	                                  "create ephemeral /locks/126/#130-"));
	leaver->lock->grant.unproved = NULL;
	end_many(rig, many, LENGTH(many));
}

/* With long reasons, the number of bytes limits a transaction. */
static void only_so_many_bytes_in_one(void **state)
{
	static struct entry many[20];
	struct rig *rig = *state;
	char reason[LC_REASON_MAX + 1] = "";
	unsigned transactions = 0;

	memset(reason, 'x', LC_REASON_MAX);
	create_many(rig, many, LENGTH(many), reason);
	batch_send(&rig->lc);
	for (char *text = strtok(rig->sent, ","); text; text = strtok(NULL, ",")) {
		size_t parts = 1;

		for (const char *more = text; (more = strstr(more, " + ")); more++)
			parts++;
		assert_in_range(parts * LC_REASON_MAX, 1, ENSEMBLE_BYTES_MAX);
		transactions++;
	}
	assert_int_equal(transactions, 2);
	end_many(rig, many, LENGTH(many));
}

/* ---- failures ---- */

/* A transaction fails as a whole. Then its parts go alone, in the old order, before later ones. */
static void refused_together(void **state)
{
	struct rig *rig = *state;
	struct entry *a = add_after_ok(rig, "a"), *b = add_present(rig, "b", 3),
		     *c = add_present(rig, "c", 4), *later = add_present(rig, "d", 5);

	create(a);
	drop(b);
	drop(c);
	batch_send(&rig->lc);
	drop(later);
	rig_forget(rig);
	answer_all(rig, ENSEMBLE_NONODE, NULL);
	rig_expect_told(rig, "");
	/* They go alone although another write to these locks was good meanwhile. */
	a->lock->batch.last_write_ok = b->lock->batch.last_write_ok = c->lock->batch.last_write_ok =
		true;
	batch_send(&rig->lc);
	rig_expect_sent(rig, "delete /locks/b/#3-3, delete /locks/c/#4-4, "
	                     "create ephemeral /locks/a/#2-, delete /locks/d/#5-5");
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_told(rig, "2 absent, 2 changed");
}

/* A create that nobody waits for any more is not sent again. */
static void refused_and_unwanted(void **state)
{
	struct rig *rig = *state;
	struct entry *a = add_after_ok(rig, "a"), *b = add_present(rig, "b", 3),
		     *c = add_present(rig, "c", 4);

	create(a);
	drop(b);
	drop(c);
	batch_send(&rig->lc);
	a->wanted = false;
	rig_forget(rig);
	answer_all(rig, ENSEMBLE_REFUSED, NULL);
	rig_expect_told(rig, "1 absent, 1 changed");
	batch_send(&rig->lc);
	rig_expect_sent(rig, "delete /locks/b/#3-3, delete /locks/c/#4-4");
}

/* Each part is unknown, as if it had been sent alone. */
static void unknown_together(void **state)
{
	struct rig *rig = *state;
	struct entry *a = add_after_ok(rig, "a"), *b = add_present(rig, "b", 3),
		     *c = add_present(rig, "c", 4);

	create(a);
	drop(b);
	drop(c);
	batch_send(&rig->lc);
	rig_forget(rig);
	answer_all(rig, ENSEMBLE_UNKNOWN, NULL);
	rig_expect_told(rig, "2 changed, 3 changed, 1 changed");
	assert_int_equal(a->state, ENTRY_UNKNOWN);
	assert_int_equal(b->state, ENTRY_PRESENT);
	assert_int_equal(c->state, ENTRY_PRESENT);
	batch_send(&rig->lc);
	rig_expect_sent(rig, "");
}

static void not_sent_without_contact(void **state)
{
	struct rig *rig = *state;
	struct entry *a = add_after_ok(rig, "a"), *b = add_present(rig, "a", 3);

	create(a);
	drop(b);
	rig_disconnect(rig);
	rig_expect_told(rig, "disconnected, 1 absent, 1 changed, 2 changed");
	assert_int_equal(a->lock->batch.unsent, 0);
	assert_int_equal(a->lock->batch.creates, 0);
	assert_int_equal(b->state, ENTRY_PRESENT);
	rig_forget(rig);
	batch_send(&rig->lc);
	rig_expect_sent(rig, "");
}

/* ---- when it is sent ---- */

/* Four creates are under way: no more are sent until one is answered. Returns the first. */
static struct entry *keep_busy(struct rig *rig)
{
	struct entry *first = NULL;

	for (int i = 0; i < 4; i++) {
		struct entry *entry = add(rig, "x");

		first = first ? first : entry;
		create(entry);
		batch_flush(&rig->lc);
	}
	assert_int_equal(rig->batch.flights, 4);
	rig_forget(rig);
	return first;
}

/* While many requests are under way, new ones are kept, and go out together later. */
static void kept_while_much_is_under_way(void **state)
{
	struct rig *rig = *state;
	struct entry *a = add_after_ok(rig, "a"), *b = add_after_ok(rig, "b"),
		     *c = add_after_ok(rig, "c");
	struct entry *first = keep_busy(rig);

	create(a);
	create(b);
	batch_flush(&rig->lc);
	create(c);
	batch_flush(&rig->lc);
	rig_expect_sent(rig, "");
	rig_answer_created(rig, rig_entry_path(first, 1), 201);
	batch_flush(&rig->lc);
	rig_expect_sent(rig, "create ephemeral /locks/a/#2- + create ephemeral /locks/b/#3- + "
	                     "create ephemeral /locks/c/#4-");
}

/* A delete does not wait when another mount gets the lock by it, and what is unsent goes along. It
 * waits while a taker of this mount holds. */
static void not_kept_from_others(void **state)
{
	struct rig *rig = *state;
	struct entry *a = add_present(rig, "a", 1), *b = add_after_ok(rig, "b");
	struct lock *lock = a->lock;

	keep_busy(rig);
	create(b);
	drop(a);
	batch_flush(&rig->lc);
	rig_expect_sent(rig, "");
	lock->known.others = 1;
	lock->takers.holding = 1;
	batch_flush(&rig->lc);
	rig_expect_sent(rig, "");
	lock->takers.holding = 0;
	batch_flush(&rig->lc);
	rig_expect_sent(rig, "delete /locks/a/#2-1, create ephemeral /locks/b/#3-");
	lock->known.others = 0;
}

static void answered(void *ctx, const struct ensemble_answer *answer)
{
	rig_tell(ctx, "answered %d", answer->result);
}

/* The write of a question goes out behind unsent creates and deletes. */
static void behind_what_is_kept(void **state)
{
	struct rig *rig = *state;

	create(add(rig, "a"));
	batch_submit(&rig->lc, ensemble_delete("/locks/a", 3), answered, rig);
	rig_expect_sent(rig, "create ephemeral /locks/a/#2-, delete /locks/a v3");
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_expect_told(rig, "answered 0");
}

static void nothing_while_not_ready(void **state)
{
	struct rig *rig = *state;

	rig_disconnect(rig);
	rig_connect(rig, RIG_SESSION);
	rig_forget(rig);
	create(add(rig, "a"));
	batch_flush(&rig->lc);
	rig_expect_sent(rig, "");
	rig_answer_version(rig, 1);
	rig_forget(rig);
	batch_flush(&rig->lc);
	rig_expect_sent(rig, "create ephemeral /locks/a/#2-");
}

/* ---- hand-off ---- */

/* The entry that guards the lock is deleted only with a check that the next entry is there. */
static void guarded_delete(void **state)
{
	struct rig *rig = *state;
	struct entry *leaver = add_present(rig, "a", 1), *next = add_present(rig, "a", 2);

	leaver->lock->grant.unproved = next;
	drop(leaver);
	batch_send(&rig->lc);
	rig_expect_sent(rig, "check /locks/a/#3-2 + delete /locks/a/#2-1");
	assert_int_equal(next->pending, 1);
	rig_forget(rig);
	answer_all(rig, ENSEMBLE_OK, NULL);
	rig_expect_told(rig, "2 seen, 2 changed, alive, 1 absent, 1 changed");
	assert_int_equal(next->pending, 0);
	leaver->lock->grant.unproved = NULL;
}

static void guarded_delete_fails(void **state)
{
	struct rig *rig = *state;
	struct entry *leaver = add_present(rig, "a", 1), *next = add_present(rig, "a", 2);

	leaver->lock->grant.unproved = next;
	drop(leaver);
	batch_send(&rig->lc);
	rig_forget(rig);
	answer_all(rig, ENSEMBLE_NONODE, NULL);
	rig_expect_told(rig, "1 changed, 2 changed");
	assert_false(leaver->lock->batch.last_write_ok);
	assert_true(leaver->lock->grant.held_back);
	batch_send(&rig->lc); /* the delete must not go alone before the next entry was seen */
	rig_expect_sent(rig, "");
	assert_int_equal(leaver->state, ENTRY_PRESENT);
	leaver->lock->grant.unproved = NULL;
	assert_int_equal(next->pending, 0);
}

/* A watch that is good behind the answer of a write shows no less than that write. */
static void guarded_delete_fails_beside_a_watch(void **state)
{
	struct rig *rig = *state;
	struct entry *leaver = add_present(rig, "a", 1), *next = add_present(rig, "a", 2);

	next->watch.state = WATCH_PENDING;
	watch_answered(&rig->lc, &next->watch, true);
	leaver->lock->grant.unproved = next;
	drop(leaver);
	batch_send(&rig->lc);
	rig_forget(rig);
	answer_all(rig, ENSEMBLE_NONODE, NULL);
	rig_expect_told(rig, "1 changed, 2 seen, 2 changed");
	leaver->lock->grant.unproved = NULL;
}

/* It has got the lock meanwhile: the delete is to be sent again, with the check of this one. */
static void guarded_delete_fails_for_another(void **state)
{
	struct rig *rig = *state;
	struct entry *leaver = add_present(rig, "a", 1), *next = add_present(rig, "a", 2),
		     *third = add_present(rig, "a", 3);

	leaver->lock->grant.unproved = next;
	drop(leaver);
	batch_send(&rig->lc);
	rig_forget(rig);
	leaver->lock->grant.unproved = third;
	answer_all(rig, ENSEMBLE_NONODE, NULL);
	assert_false(leaver->lock->grant.held_back);
	drop(leaver);
	batch_send(&rig->lc);
	rig_expect_sent(rig, "check /locks/a/#4-3 + delete /locks/a/#2-1");
	leaver->lock->grant.unproved = NULL;
}

/* The next taker has left between two refusals: what the first one held back is still to be
 * released. */
static void guarded_deletes_fail_for_one_that_left(void **state)
{
	struct rig *rig = *state;
	struct entry *leaver = add_present(rig, "a", 1), *next = add_present(rig, "a", 2),
		     *other = add_present(rig, "a", 3);

	leaver->lock->batch.last_write_ok = false;
	leaver->lock->grant.unproved = next;
	drop(leaver);
	batch_send(&rig->lc);
	drop(other);
	batch_send(&rig->lc);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	assert_true(leaver->lock->grant.held_back);
	leaver->lock->grant.unproved = NULL;
	rig_answer_error(rig, ENSEMBLE_NONODE);
	assert_true(leaver->lock->grant.held_back);
}

/* Also where the lock's requests go alone: then the two, and nothing else. */
static void guarded_delete_alone(void **state)
{
	struct rig *rig = *state;
	struct entry *leaver = add_present(rig, "a", 1), *next = add_present(rig, "a", 2),
		     *other = add_present(rig, "b", 3), *last = add_present(rig, "c", 4);

	leaver->lock->batch.last_write_ok = false;
	leaver->lock->grant.unproved = next;
	drop(other);
	drop(leaver);
	drop(last);
	batch_send(&rig->lc);
	rig_expect_sent(rig, "delete /locks/b/#4-3, check /locks/a/#3-2 + delete /locks/a/#2-1, "
	                     "delete /locks/c/#5-4");
	leaver->lock->grant.unproved = NULL;
}

/* Together with others it may have failed for them: it is sent again with the check alone. */
static void guarded_delete_fails_with_others(void **state)
{
	struct rig *rig = *state;
	struct entry *leaver = add_present(rig, "a", 1), *next = add_present(rig, "a", 2),
		     *other = add_present(rig, "b", 3);

	leaver->lock->grant.unproved = next;
	drop(leaver);
	drop(other);
	batch_send(&rig->lc);
	rig_expect_sent(rig, "check /locks/a/#3-2 + delete /locks/a/#2-1 + delete /locks/b/#4-3");
	answer_all(rig, ENSEMBLE_NONODE, NULL);
	assert_false(leaver->lock->grant.held_back);
	rig_forget(rig);
	batch_send(&rig->lc);
	rig_expect_sent(rig, "check /locks/a/#3-2 + delete /locks/a/#2-1, delete /locks/b/#4-3");
	leaver->lock->grant.unproved = NULL;
}

static void guarded_delete_unknown(void **state)
{
	struct rig *rig = *state;
	struct entry *leaver = add_present(rig, "a", 1), *next = add_present(rig, "a", 2);

	leaver->lock->grant.unproved = next;
	drop(leaver);
	batch_send(&rig->lc);
	rig_forget(rig);
	answer_all(rig, ENSEMBLE_UNKNOWN, NULL);
	rig_expect_told(rig, "2 changed, 1 changed");
	leaver->lock->grant.unproved = NULL;
}

/* Nothing binds a create to the delete before it: the answers come in order. */
static void released_and_taken(void **state)
{
	struct rig *rig = *state;
	struct entry *first = add_present(rig, "a", 4), *next = add(rig, "a");

	drop(first);
	create(next);
	batch_send(&rig->lc);
	rig_expect_sent(rig, "delete /locks/a/#2-4, create ephemeral /locks/a/#3-");
}

/* A leaver behind the unproved entry is no guard of it. */
static void behind_the_unproved(void **state)
{
	struct rig *rig = *state;
	struct entry *unproved = add_present(rig, "a", 1), *leaver = add_present(rig, "a", 2);

	unproved->lock->grant.unproved = unproved;
	drop(leaver);
	batch_send(&rig->lc);
	rig_expect_sent(rig, "delete /locks/a/#3-2");
	unproved->lock->grant.unproved = NULL;
}

/* Who may be a guard: an entry of which no delete was sent but with a check that was refused. */
static void in_doubt(void **state)
{
	static const struct {
		enum ensemble_result result;
		bool checked, doubted;
	} rows[] = {
		{ENSEMBLE_NONODE, true, false},
		{ENSEMBLE_UNKNOWN, true, true},
		{ENSEMBLE_REFUSED, false, true},
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rig *rig = rig_begin_ready();
		struct entry *leaver, *next;

		(void)state;
		count = 0;
		leaver = add_present(rig, "a", 1);
		next = add_present(rig, "a", 2);
		leaver->lock->grant.unproved = rows[i].checked ? next : NULL;
		drop(leaver);
		assert_false(leaver->sent);
		batch_send(&rig->lc);
		assert_true(leaver->sent);
		rig_forget(rig);
		answer_all(rig, rows[i].result, NULL);
		assert_false(leaver->sent);
		assert_int_equal(leaver->in_doubt, rows[i].doubted);
		leaver->lock->grant.unproved = NULL;
		tear_down((void *[]){rig});
	}
}

/* It was refused when this one had been kept already. */
static void held_back_while_kept(void **state)
{
	struct rig *rig = *state;
	struct entry *leaver = add_present(rig, "a", 1), *next = add_present(rig, "a", 2);

	leaver->lock->grant.unproved = next;
	drop(leaver);
	leaver->lock->grant.held_back = true;
	batch_send(&rig->lc);
	rig_expect_sent(rig, "");
	assert_int_equal(leaver->state, ENTRY_PRESENT);
	assert_false(leaver->sent);
	leaver->lock->grant.unproved = NULL;
}

#define BATCH_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BATCH_TEST(one_goes_alone),
		BATCH_TEST(three_go_together),
		BATCH_TEST(unproven_locks_go_alone),
		BATCH_TEST(deletes_come_first),
		BATCH_TEST(one_create_of_a_lock),
		BATCH_TEST(several_creates_of_a_lock),
		BATCH_TEST(only_so_much_in_one),
		BATCH_TEST(only_so_many_bytes_in_one),
		BATCH_TEST(the_rest_is_not_bound),
		BATCH_TEST(refused_together),
		BATCH_TEST(refused_and_unwanted),
		BATCH_TEST(unknown_together),
		BATCH_TEST(not_sent_without_contact),
		BATCH_TEST(kept_while_much_is_under_way),
		BATCH_TEST(not_kept_from_others),
		BATCH_TEST(behind_what_is_kept),
		BATCH_TEST(nothing_while_not_ready),
		BATCH_TEST(guarded_delete),
		BATCH_TEST(guarded_delete_fails),
		BATCH_TEST(guarded_delete_fails_beside_a_watch),
		BATCH_TEST(guarded_delete_fails_for_another),
		BATCH_TEST(guarded_deletes_fail_for_one_that_left),
		BATCH_TEST(guarded_delete_alone),
		BATCH_TEST(guarded_delete_fails_with_others),
		BATCH_TEST(guarded_delete_unknown),
		BATCH_TEST(released_and_taken),
		BATCH_TEST(behind_the_unproved),
		BATCH_TEST(held_back_while_kept),
		cmocka_unit_test(in_doubt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
