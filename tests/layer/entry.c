/* SPDX-License-Identifier: MIT
 *
 * One entry: its state after each answer to its create and its delete, and its callbacks. batch.c
 * sends both requests.
 */
#include "one_entry.h"

/* ---- creating ---- */

static void is_made(void **state)
{
	struct rig *rig = *state;
	struct ensemble_stat stat = stat_of(100, RIG_SESSION);
	char *path;

	create();
	assert_false(entry_is_queued(&one));
	created(ENSEMBLE_OK, rig_entry_path(&one, 5), &stat);
	rig_expect_told(rig, "alive, 7 made, 7 changed");
	assert_true(entry_is_queued(&one));
	assert_false(entry_is_seen(&one));
	assert_int_equal(one.number, 5);
	assert_int_equal(one.czxid, 100);
	assert_int_equal(one.version, 0);
	assert_int_equal(one.pending, 0);
	assert_true(one.lock->batch.last_write_ok);
	assert_false(is_list_wanted());
	path = entry_path(&one);
	assert_string_equal(path, "/locks/build/"
	                          "_c_00000000-0000-0001-0000-000000000002-m0.7-lock-0000000005");
	free(path);
}

static void is_made_in_a_transaction(void **state)
{
	struct rig *rig = *state;

	create();
	created(ENSEMBLE_OK, rig_entry_path(&one, 5), NULL);
	rig_expect_told(rig, "alive, 7 made, 7 changed");
	assert_int_equal(one.czxid, 0);
}

/* A create is a step of the lease, and counts from the time it was sent. */
static void is_a_step(void **state)
{
	struct rig *rig = *state;

	for (int i = 0; i < 3; i++) {
		rig->now_us += 2 * SECOND;
		create();
		one.sent_us = rig->now_us;
		created(ENSEMBLE_OK, rig_entry_path(&one, i), NULL);
		entry_set_absent(&one);
	}
	expect(strstr(rig->told, "extended"), "the lease is not extended: %s", rig->told);
}

static void is_refused(void **state)
{
	static const struct {
		enum ensemble_result result;
		const char *told;
	} rows[] = {
		{ENSEMBLE_NONODE, "7 absent, 7 not made: ENOENT, 7 changed"},
		{ENSEMBLE_NOAUTH, "7 absent, 7 not made: EACCES, 7 changed"},
		{ENSEMBLE_REFUSED, "7 absent, 7 not made: ENOLCK, 7 changed"},
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		one.lock->batch.last_write_ok = true;
		create();
		created(rows[i].result, NULL, NULL);
		rig_expect_told(rig, rows[i].told);
		assert_int_equal(one.state, ENTRY_ABSENT);
		assert_string_equal(one.name, "");
		assert_false(one.lock->batch.last_write_ok);
		assert_int_equal(strlen(rig->reported) > 0, rows[i].result == ENSEMBLE_REFUSED);
	}
	rig_expect_reported(rig, "/locks/build: the ensemble refuses entries");
}

static void session_ends_first(void **state)
{
	struct rig *rig = *state;

	create();
	created(ENSEMBLE_GONE, NULL, NULL);
	rig_expect_told(rig, "");
	assert_int_equal(one.pending, 0);
}

static void is_not_sent(void **state)
{
	struct rig *rig = *state;

	one.lock->batch.last_write_ok = true;
	create();
	entry_unsent(&one);
	rig_expect_told(rig, "7 absent, 7 changed");
	assert_false(one.lock->batch.last_write_ok);
	make(rig);
	begin_deletion();
	entry_unsent(&one);
	rig_expect_told(rig, "7 changed");
	assert_int_equal(one.state, ENTRY_PRESENT);
	assert_int_equal(one.pending, 0);
}

/* ---- creates of unknown outcome ---- */

static void become_unknown(struct rig *rig)
{
	create();
	created(ENSEMBLE_UNKNOWN, NULL, NULL);
	rig_expect_told(rig, "7 changed");
	assert_int_equal(one.state, ENTRY_UNKNOWN);
	assert_int_equal(one.lock->batch.unknown, 1);
	assert_true(is_list_wanted());
}

static const char *node_name(int number)
{
	return strrchr(rig_entry_path(&one, number), '/') + 1;
}

static void is_not_found(void **state)
{
	struct rig *rig = *state;

	become_unknown(rig);
	assert_false(entry_is_queued(&one));
	entry_not_found(&one);
	rig_expect_told(rig, "7 absent");
}

static void find(const char *data)
{
	struct ensemble_stat stat = stat_of(100, RIG_SESSION);

	stat.version = 3;
	entry_found(&one, node_name(5),
	            &(struct ensemble_answer){
			    .stat = &stat, .data = data, .data_len = (int)strlen(data)});
}

static void is_found(void **state)
{
	struct rig *rig = *state;

	become_unknown(rig);
	find("");
	rig_expect_told(rig, "7 changed");
	assert_int_equal(one.number, 5);
	assert_int_equal(one.czxid, 100);
	assert_int_equal(one.version, 3);
}

static void is_found_marked(void **state)
{
	struct rig *rig = *state;

	become_unknown(rig);
	find("evict: root\n");
	rig_expect_told(rig, "7 marked by root, 7 changed");
}

/* ---- deleting ---- */

static void is_deleted(void **state)
{
	struct rig *rig = *state;

	make(rig);
	begin_deletion();
	assert_true(entry_is_queued(&one));
	deleted(ENSEMBLE_OK);
	rig_expect_told(rig, "alive, 7 absent, 7 changed");
	assert_true(one.lock->batch.last_write_ok);
	assert_false(is_list_wanted());
}

/* A delete that finds no node is no write, so it is no evidence. */
static void was_deleted_already(void **state)
{
	struct rig *rig = *state;

	make(rig);
	begin_deletion();
	deleted(ENSEMBLE_NONODE);
	rig_expect_told(rig, "7 absent, 7 changed");
	assert_false(one.lock->batch.last_write_ok);
}

static void is_deleted_again(void **state)
{
	struct rig *rig = *state;

	make(rig);
	begin_deletion();
	deleted(ENSEMBLE_UNKNOWN);
	rig_expect_told(rig, "7 changed");
	assert_int_equal(one.state, ENTRY_PRESENT);
	assert_string_equal(rig->reported, "");
	begin_deletion();
	deleted(ENSEMBLE_REFUSED);
	rig_expect_told(rig, "7 later, 7 changed");
	assert_int_equal(one.state, ENTRY_PRESENT);
	rig_expect_reported(rig, "lock-0000000005: cannot be deleted, trying again");
	assert_false(is_list_wanted());
	begin_deletion();
	deleted(ENSEMBLE_GONE);
	rig_expect_told(rig, "");
}

/* ---- which node it is ---- */

static struct entry *found(struct lock *lock, const char *znode)
{
	struct entry_name name;

	assert_true(name_parse(znode, &name));
	return entry_of_node(lock, znode, &name);
}

static void by_its_full_name(void **state)
{
	struct rig *rig = *state;
	struct entry_name name;
	struct entry other;

	rig_make_entry(rig, &other, "other", 8, LC_SHARED);
	assert_null(found(one.lock, node_name(5)));
	make(rig);
	assert_ptr_equal(found(one.lock, node_name(5)), &one);
	assert_null(found(one.lock, node_name(6)));
	assert_null(found(other.lock, node_name(5)));
	assert_true(name_parse(node_name(6), &name)); /* a copy has the same UUID */
	assert_ptr_equal(entry_named(one.lock, &name), &one);
	assert_null(entry_named(other.lock, &name));
	name.session_half++;
	assert_null(entry_named(one.lock, &name));
	begin_deletion();
	assert_ptr_equal(found(one.lock, node_name(5)), &one);
	deleted(ENSEMBLE_OK);
	rig_free_entry(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENTRY_TEST(is_made),
		ENTRY_TEST(is_made_in_a_transaction),
		ENTRY_TEST(is_a_step),
		ENTRY_TEST(is_refused),
		ENTRY_TEST(session_ends_first),
		ENTRY_TEST(is_not_sent),
		ENTRY_TEST(is_not_found),
		ENTRY_TEST(is_found),
		ENTRY_TEST(is_found_marked),
		ENTRY_TEST(is_deleted),
		ENTRY_TEST(was_deleted_already),
		ENTRY_TEST(is_deleted_again),
		ENTRY_TEST(by_its_full_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
