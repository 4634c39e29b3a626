/* SPDX-License-Identifier: MIT
 *
 * The walk through all locks, at an ensemble of a few lines: which locks it tells, in which order,
 * what it asks, how much at a time, and that an error ends it. A user sees no lock below one that
 * this user may not enter.
 */
#include "files/walk.h"

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define USER 1000
#define QUEUED_MS 77
#define ENTRIES_MAX 8
#define NAMES_MAX (4 * WALK_WINDOW)

struct lock {
	const char *path;
	size_t holders, waiters;
	unsigned mode;      /* 0: 0755 */
	int stat_error;     /* of the question */
	int entries_error;  /*   about entries */
	unsigned vanish;    /* so often no entry is there any more when it is read */
	unsigned times_out; /* so often nobody answers */
	unsigned not_asked; /* so often it cannot even be asked */
	unsigned listed;    /* how often that was asked */
};

static struct lock *locks;
static size_t lock_count;

static struct question {
	enum { STAT, LIST, ENTRIES } kind;
	struct lock *lock; /* NULL: the root */
	struct lc_entry known[2];
	size_t count;
	lc_stat_fn *stat;
	lc_list_fn *list;
	lc_entries_fn *entries;
	void *ctx;
	bool asked;
} questions[WALK_WINDOW];
static size_t open_questions, most_questions, open_lists, most_lists;

static struct frontend front;
static unsigned answers, rounds;

/* ---- in place of the engine's functions ---- */

static struct lock *find(const char *path)
{
	for (size_t i = 0; i < lock_count; i++)
		if (strcmp(locks[i].path, path) == 0)
			return &locks[i];
	expect(*path == '\0', "no such lock: %s", path);
	return NULL;
}

static int ask(const struct question *question, struct lc_call **ret_call)
{
	size_t i = 0;

	if (question->lock && question->lock->not_asked > 0) {
		question->lock->not_asked--;
		return -ENOMEM;
	}
	while (i < LENGTH(questions) && questions[i].asked)
		i++;
	assert_in_range(i, 0, LENGTH(questions) - 1);
	questions[i] = *question;
	questions[i].asked = true;
	if (++open_questions > most_questions)
		most_questions = open_questions;
	open_lists += question->kind == LIST;
	if (open_lists > most_lists)
		most_lists = open_lists;
	*ret_call = (struct lc_call *)&questions[i];
	return 0;
}

int lc_stat(struct lc *lc, const char *lock, uid_t uid, lc_stat_fn *done, void *ctx,
            struct lc_call **ret_call)
{
	(void)lc;
	assert_int_equal(uid, USER);
	return ask(&(struct question){.kind = STAT, .lock = find(lock), .stat = done, .ctx = ctx},
	           ret_call);
}

int lc_list(struct lc *lc, const char *lock, uid_t uid, lc_list_fn *done, void *ctx,
            struct lc_call **ret_call)
{
	(void)lc;
	assert_int_equal(uid, USER);
	return ask(&(struct question){.kind = LIST, .lock = find(lock), .list = done, .ctx = ctx},
	           ret_call);
}

int lc_entries(struct lc *lc, const char *lock, uid_t uid, const char *znode,
               const struct lc_entry *known, size_t count, lc_entries_fn *done, void *ctx,
               struct lc_call **ret_call)
{
	struct question question = {
		.kind = ENTRIES, .lock = find(lock), .count = count, .entries = done, .ctx = ctx};

	(void)lc;
	assert_null(znode);
	assert_int_equal(uid, USER);
	assert_in_range(count, 1, 2);
	memcpy(question.known, known, count * sizeof(*known));
	return ask(&question, ret_call);
}

void lc_cancel(struct lc_call *call)
{
	struct question *question = (struct question *)call;

	assert_true(question->asked);
	question->asked = false;
	open_questions--;
	open_lists -= question->kind == LIST;
}

/* ---- the answers ---- */

static bool is_below(const char *above, const char *path)
{
	size_t len = strlen(above);

	return (len == 0 || (strncmp(path, above, len) == 0 && path[len] == '/')) &&
	       !strchr(path + len + (len > 0), '/') && strlen(path) > len;
}

static size_t names_below(const struct lock *lock, const char *ret_names[])
{
	const char *above = lock ? lock->path : "";
	size_t count = 0;

	for (size_t i = 0; i < lock_count; i++)
		if (is_below(above, locks[i].path))
			ret_names[count++] = locks[i].path + strlen(above) + (*above != '\0');
	return count;
}

static void answer_stat(const struct question *question)
{
	const struct lock *lock = question->lock;
	const char *names[NAMES_MAX];
	const struct lc_lock_info info = {
		.has_attributes = true,
		.attributes = {.mode = lock->mode ? lock->mode : 0755},
		.slots = 3,
		.children = (unsigned)(lock->holders + lock->waiters + names_below(lock, names)),
	};

	question->stat(question->ctx, lock->stat_error, lock->stat_error ? NULL : &info);
}

static void answer_list(const struct question *question)
{
	struct lock *lock = question->lock;
	const char *names[NAMES_MAX];
	struct lc_entry entries[ENTRIES_MAX] = {0};
	struct lc_listing listing = {.entries = entries, .locks = names};

	listing.lock_count = names_below(lock, names);
	if (lock) {
		lock->listed++;
		listing.entry_count = lock->holders + lock->waiters;
	}
	for (size_t i = 0; i < listing.entry_count; i++)
		entries[i] = (struct lc_entry){
			.znode = "entry", .number = (int64_t)i, .held = i < lock->holders};
	question->list(question->ctx, 0, &listing);
}

static void answer_entries(const struct question *question)
{
	struct lock *lock = question->lock;
	struct lc_entry_info infos[2];
	size_t count = question->count;

	if (lock->entries_error) {
		question->entries(question->ctx, lock->entries_error, NULL, 0);
		return;
	}
	if (lock->vanish > 0) {
		lock->vanish--;
		count--;
	}
	for (size_t i = 0; i < count; i++)
		infos[i] = (struct lc_entry_info){.entry = question->known[i],
		                                  .uid = 5,
		                                  .queued_since_ms =
		                                          QUEUED_MS + question->known[i].number};
	question->entries(question->ctx, 0, infos, count);
}

/* All that are open now. */
static void answer_all(void)
{
	struct question now[LENGTH(questions)];

	assert_in_range(++rounds, 1, 10000); /* or it never ends */
	memcpy(now, questions, sizeof(now));
	memset(questions, 0, sizeof(questions));
	open_questions = open_lists = 0;
	for (size_t i = 0; i < LENGTH(now); i++) {
		if (!now[i].asked)
			continue;
		if (now[i].lock && now[i].lock->times_out > 0) {
			now[i].lock->times_out--;
			assert_int_equal(now[i].kind, STAT);
			now[i].stat(now[i].ctx, -ETIMEDOUT, NULL);
		} else if (now[i].kind == STAT) {
			answer_stat(&now[i]);
		} else if (now[i].kind == LIST) {
			answer_list(&now[i]);
		} else {
			answer_entries(&now[i]);
		}
	}
}

/* ---- the walk ---- */

static int begin(void **state)
{
	(void)state;
	front = (struct frontend){.lc = (struct lc *)&front, .files = {.what = "open files"}};
	memset(questions, 0, sizeof(questions));
	open_questions = most_questions = open_lists = most_lists = answers = rounds = 0;
	return 0;
}

static void answered(void *ctx)
{
	assert_ptr_equal(ctx, &front);
	answers++;
}

static struct walk *start(struct lock *all, size_t count)
{
	struct viewer *viewer = budget_alloc(&front.files, USER, sizeof(*viewer));
	struct walk *walk;

	locks = all;
	lock_count = count;
	assert_non_null(viewer);
	viewer->uid = USER;
	walk = walk_begin(&front, viewer, answered, &front);
	assert_non_null(walk);
	return walk;
}

static void finish(struct walk *walk)
{
	walk_end(walk);
	assert_int_equal(open_questions, 0);
	assert_int_equal(front.files.bytes, 0);
}

/* The next lock, asked about and answered as often as that takes; NULL: there is none. */
static const struct walk_lock *next(struct walk *walk)
{
	const struct walk_lock *lock = NULL;
	int r;

	while ((r = walk_next(walk, &lock)) == 0 && !walk_over(walk)) {
		walk_ask(walk);
		assert_int_not_equal(open_questions, 0);
		answer_all();
	}
	expect(r >= 0, "%s", strerror(-r));
	return r > 0 ? lock : NULL;
}

static void expect_next(struct walk *walk, const char *path, size_t holders, size_t waiters)
{
	const struct walk_lock *lock = next(walk);

	expect(lock, "no %s", path);
	assert_string_equal(lock->path, path);
	assert_false(lock->closed);
	assert_int_equal(lock->slots, 3);
	expect(lock->holders == holders && lock->waiters == waiters, "%s: %zu holders, %zu waiters",
	       path, lock->holders, lock->waiters);
	expect(lock->holder.uid == (holders ? 5 : -1), "%s: the holder is of user %d", path,
	       (int)lock->holder.uid);
	assert_int_equal(lock->waiting_since_ms, waiters ? (int64_t)(QUEUED_MS + holders) : -1);
}

static void expect_closed(struct walk *walk, const char *path)
{
	const struct walk_lock *lock = next(walk);

	expect(lock, "no %s", path);
	assert_string_equal(lock->path, path);
	assert_true(lock->closed);
	assert_int_equal(lock->holders + lock->waiters, 0);
}

static void expect_end(struct walk *walk)
{
	assert_null(next(walk));
	assert_true(walk_over(walk));
	assert_int_not_equal(answers, 0); /* it was told of them */
	finish(walk);
}

static void locks_in_order(void **state)
{
	struct lock all[] = {
		{.path = "a"},
		{.path = "b", .holders = 1, .waiters = 2},
		{.path = "b/c", .holders = 2},
		{.path = "b/c/d"},
		{.path = "b/c/e", .waiters = 1},
		{.path = "closed", .stat_error = -EACCES},
		{.path = "enter", .mode = 0711, .holders = 1},
		{.path = "enter/not_listed", .holders = 1},
		{.path = "gone", .stat_error = -ENOENT},
		{.path = "not_entered", .mode = 0700, .holders = 1},
		{.path = "not_entered/below", .holders = 1},
		{.path = "z", .holders = 1},
	};
	struct walk *walk = start(all, LENGTH(all));

	(void)state;
	expect_next(walk, "b", 1, 2);
	expect_next(walk, "b/c", 2, 0);
	expect_next(walk, "b/c/e", 0, 1);
	expect_closed(walk, "closed");
	expect_next(walk, "enter", 1, 0);
	expect_next(walk, "z", 1, 0);
	expect_end(walk);
}

static void no_locks(void **state)
{
	struct walk *walk = start(NULL, 0);

	(void)state;
	assert_false(walk_over(walk));
	expect_end(walk);
}

/* Entries that went between the listing and the question are listed again, three times in all.
 * Those that this mount may not read are not. */
static void entries_that_are_gone(void **state)
{
	struct lock all[] = {
		{.path = "always", .holders = 1, .waiters = 1, .vanish = 100},
		{.path = "never", .holders = 1, .entries_error = -ENOENT},
		{.path = "once", .holders = 1, .waiters = 1, .vanish = 1},
		{.path = "only", .waiters = 1, .vanish = 1},
		{.path = "secret", .holders = 1, .entries_error = -EACCES},
		{.path = "twice", .holders = 1, .vanish = 2},
	};
	struct walk *walk = start(all, LENGTH(all));
	const struct walk_lock *lock = next(walk);

	(void)state;
	assert_string_equal(lock->path, "always");
	assert_int_equal(lock->holders, 1);
	assert_int_equal(lock->waiters, 1);
	assert_int_equal(lock->waiting_since_ms, -1);
	lock = next(walk);
	assert_string_equal(lock->path, "never");
	assert_int_equal(lock->holder.uid, -1);
	assert_true(lock->holder.entry.held);
	expect_next(walk, "once", 1, 1);
	expect_next(walk, "only", 0, 1);
	lock = next(walk);
	assert_string_equal(lock->path, "secret");
	assert_int_equal(lock->holder.uid, -1);
	expect_next(walk, "twice", 1, 0);
	expect_end(walk);
	assert_int_equal(all[0].listed, 3);
	assert_int_equal(all[1].listed, 3);
	assert_int_equal(all[2].listed, 2);
	assert_int_equal(all[3].listed, 2);
	assert_int_equal(all[4].listed, 1);
	assert_int_equal(all[5].listed, 3);
}

static char many_names[NAMES_MAX][8];
static struct lock many[NAMES_MAX];

#define MANY_HELD (LENGTH(many) - (LENGTH(many) + 2) / 3)

static void fill_many(void)
{
	for (size_t i = 0; i < LENGTH(many); i++) {
		snprintf(many_names[i], sizeof(many_names[i]), "l%03zu", i);
		many[i] = (struct lock){.path = many_names[i], .holders = i % 3 != 0};
	}
	locks = many;
	lock_count = LENGTH(many);
}

static struct walk *start_many(void)
{
	fill_many();
	return start(many, LENGTH(many));
}

static void expect_many(struct walk *walk, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (i % 3 != 0)
			expect_next(walk, many_names[i], 1, 0);
}

static void some_at_a_time(void **state)
{
	struct walk *walk = start_many();

	(void)state;
	expect_many(walk, 0, LENGTH(many));
	expect_end(walk);
	assert_int_equal(most_questions, WALK_WINDOW);
	assert_int_equal(most_lists, WALK_LISTS);
	walk = start_many();
	walk_ask(walk);
	answer_all();
	walk_ask(walk);
	assert_int_equal(open_questions, WALK_WINDOW);
	finish(walk); /* in the middle */
}

/* The walk ends by it, and asks nothing more; it is over when no question is under way. */
static void an_error_ends_it(void **state)
{
	struct lock all[] = {
		{.path = "a", .holders = 1},
		{.path = "b", .holders = 1, .times_out = 1},
		{.path = "c", .holders = 1, .not_asked = 1},
		{.path = "d", .holders = 1},
	};

	(void)state;
	for (size_t from = 0; from < LENGTH(all) - 1; from++) {
		struct walk *walk = start(all + from, LENGTH(all) - from);
		const struct walk_lock *lock;
		int r;

		while ((r = walk_next(walk, &lock)) >= 0) {
			walk_ask(walk);
			answer_all();
		}
		expect(r == (from < 2 ? -ETIMEDOUT : -ENOMEM) || r == -ENOMEM, "%zu: %d", from, r);
		while (!walk_over(walk)) {
			assert_int_not_equal(open_questions, 0);
			answer_all();
		}
		assert_int_equal(open_questions, 0);
		walk_ask(walk);
		assert_int_equal(open_questions, 0);
		assert_int_equal(walk_next(walk, &lock), r);
		finish(walk);
		all[1].times_out = all[2].not_asked = 1;
	}
}

/* A user who has little room left reads fewer locks at a time, and all in the end; or is told that
 * there is no room, and nothing is left behind. */
static void a_user_with_little_room(void **state)
{
	bool whole = false, none = false;

	(void)state;
	for (size_t room = 16; room < 64 * 1024; room = room * 5 / 4) {
		void *rest =
			budget_alloc(&front.files, USER, BUDGET_USER_BYTES - BUDGET_OBJECT - room);
		struct viewer *viewer = budget_alloc(&front.files, USER, sizeof(*viewer));
		size_t used = front.files.bytes;
		struct walk *walk = NULL;
		const struct walk_lock *lock;
		unsigned told = 0;
		int r = 0;

		assert_non_null(rest);
		fill_many();
		if (viewer) {
			viewer->uid = USER;
			errno = 0;
			walk = walk_begin(&front, viewer, answered, &front);
			expect(walk || errno == ENFILE, "%s", strerror(errno));
		}
		if (viewer && !walk) {
			assert_int_equal(front.files.bytes, used);
			budget_free(viewer);
		}
		while (walk && (r = walk_next(walk, &lock)) >= 0) {
			told += (unsigned)r;
			if (walk_over(walk))
				break;
			walk_ask(walk);
			answer_all();
		}
		if (walk) {
			expect(r == -ENFILE || (r >= 0 && told == MANY_HELD), "%u, %d", told, r);
			*(r < 0 ? &none : &whole) = true;
			walk_end(walk);
		}
		budget_free(rest);
		assert_int_equal(front.files.bytes, 0);
	}
	assert_true(whole && none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(locks_in_order, begin),
		cmocka_unit_test_setup(no_locks, begin),
		cmocka_unit_test_setup(entries_that_are_gone, begin),
		cmocka_unit_test_setup(some_at_a_time, begin),
		cmocka_unit_test_setup(an_error_ends_it, begin),
		cmocka_unit_test_setup(a_user_with_little_room, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
