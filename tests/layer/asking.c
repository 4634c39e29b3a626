/* SPDX-License-Identifier: MIT
 *
 * Readers: one request answers all readers of the same thing, users take turns, and no more
 * requests are under way than the limits say.
 */
#include "pure/limits.h"
#include "rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define COUNT 80

struct asker_of {
	struct reader reader; /* first */
	struct lc_call call;  /* which the reader is of */
	struct rig *rig;
	int number;
	bool asks_again;
};

static struct asker_of all[COUNT];

static int set_up(void **state)
{
	struct rig *rig = rig_begin_ready();

	memset(all, 0, sizeof(all));
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	for (int i = 0; i < COUNT; i++) {
		reader_cancel(&all[i].reader);
		assert_int_equal(all[i].call.reads, 0);
		assert_int_equal(all[i].call.waiting, 0);
	}
	rig_end_session(rig, false);
	asking_finish(&rig->lc);
	rig_finish(rig);
	return 0;
}

/* "3: 'data'", "3: ENOENT", "3: 2 names, 1 entry". */
static void answer(struct reader *reader, struct reading *reading)
{
	struct asker_of *asker = (struct asker_of *)reader;

	assert_null(reader->reading);
	if (reading->error < 0)
		rig_tell(asker->rig, "%d: %s", asker->number, strerrorname_np(-reading->error));
	else if (reading->data)
		rig_tell(asker->rig, "%d: '%s'", asker->number, reading->data);
	else
		rig_tell(asker->rig, "%d: %zu names, %zu queued", asker->number,
		         reading->name_count, reading->queue.count);
	if (asker->asks_again)
		assert_int_equal(reader_ask(reader, &asker->call, READING_LOCK, "/locks/b"), 0);
}

static void ask_as(struct rig *rig, int number, uid_t uid, enum reading_kind kind, const char *path)
{
	struct asker_of *asker = &all[number];

	asker->rig = rig;
	asker->number = number;
	asker->reader.answer = answer;
	asker->call.lc = &rig->lc;
	asker->call.uid = uid;
	assert_int_equal(reader_ask(&asker->reader, &asker->call, kind, path), 0);
}

static void ask(struct rig *rig, int number, const char *path)
{
	ask_as(rig, number, 5, READING_LOCK, path);
}

static void expect_asked(struct rig *rig, const char *text)
{
	asking_send(&rig->lc);
	rig_expect_sent(rig, text);
}

static void expect_answered(struct rig *rig, const char *text)
{
	rig_forget(rig);
	asking_tell(&rig->lc);
	rig_expect_told(rig, text);
	rig->now_us += TOLD_REST_US;
}

static void answer_names(struct rig *rig, const char *const *names, int count)
{
	struct ensemble_stat stat = {.czxid = 50, .mzxid = 50, .children = count};

	rig_answer(rig,
	           &(struct ensemble_answer){.stat = &stat, .names = names, .name_count = count});
}

static void answer_slots(struct rig *rig, const char *data)
{
	struct ensemble_stat stat = {.czxid = 50, .mzxid = 50};

	rig_answer(rig, &(struct ensemble_answer){
				.stat = &stat, .data = data, .data_len = (int)strlen(data)});
}

/* ---- one request for all ---- */

static void shared(void **state)
{
	struct rig *rig = *state;

	ask(rig, 1, "/locks/a");
	ask(rig, 2, "/locks/a");
	ask_as(rig, 3, 6, READING_LOCK, "/locks/a");
	ask(rig, 4, "/locks/b");
	ask_as(rig, 5, 5, READING_ENTRY, "/locks/a"); /* another question */
	rig_expect_sent(rig, "");
	expect_asked(rig, "get /locks/a, get /locks/b, get /locks/a");
	expect_asked(rig, "");
	assert_int_equal(asking_wait(&rig->lc), INT64_MAX); /* nobody wants a list */
	rig_answer_data(rig, 0, "x");
	rig_expect_told(rig, "");
	expect_answered(rig, "1: 'x', 3: 'x', 2: 'x'"); /* users take turns */
	rig_answer_data(rig, 0, "y");
	rig_answer_error(rig, ENSEMBLE_NONODE); /* for an entry no second read is needed */
	expect_answered(rig, "4: 'y', 5: ENOENT");
	assert_null(rig->reads.reads.users);
	assert_null(rig->reads.due.users);
}

/* A late reader needs a new answer: the one under way may miss the reader's own changes. */
static void later_ones_wait_for_the_next(void **state)
{
	struct rig *rig = *state;

	ask(rig, 1, "/locks/a");
	expect_asked(rig, "get /locks/a");
	ask(rig, 2, "/locks/a");
	expect_asked(rig, "");
	ask(rig, 3, "/locks/a");
	expect_asked(rig, "");
	assert_int_equal(rig->reads.reads.going, 2); /* they share one place */
	rig_answer_data(rig, 0, "old");
	expect_asked(rig, "get /locks/a");
	expect_answered(rig, "1: 'old'");
	rig_answer_data(rig, 0, "new");
	expect_answered(rig, "2: 'new', 3: 'new'");
}

static void cancelled(void **state)
{
	struct rig *rig = *state;

	ask(rig, 1, "/locks/a");
	reader_cancel(&all[1].reader);
	expect_asked(rig, "");
	ask(rig, 1, "/locks/a");
	ask(rig, 2, "/locks/a");
	expect_asked(rig, "get /locks/a");
	reader_cancel(&all[1].reader); /* asked */
	rig_answer_data(rig, 0, "x");
	expect_asked(rig, "");
	reader_cancel(&all[2].reader); /* answered */
	reader_cancel(&all[2].reader);
	expect_answered(rig, "");
	assert_null(rig->reads.due.users);
	/* The answer that nobody wants any more uses its user's share until it comes. */
	ask(rig, 1, "/locks/a");
	expect_asked(rig, "get /locks/a");
	reader_cancel(&all[1].reader);
	assert_int_equal(rig->reads.reads.going, 1);
	rig_answer_data(rig, 0, "x");
	assert_null(rig->reads.reads.users);
}

static void again_from_inside(void **state)
{
	struct rig *rig = *state;

	ask(rig, 1, "/locks/a");
	all[1].asks_again = true;
	expect_asked(rig, "get /locks/a");
	rig_answer_data(rig, 0, "x");
	expect_answered(rig, "1: 'x'");
	all[1].asks_again = false;
	expect_asked(rig, "get /locks/b");
	rig_answer_data(rig, 0, "y");
	expect_answered(rig, "1: 'y'");
}

/* ---- answers ---- */

static void not_there_after_a_sync(void **state)
{
	struct rig *rig = *state;

	ask(rig, 1, "/locks/a");
	expect_asked(rig, "get /locks/a");
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_sent(rig, "sync /locks/a, get /locks/a");
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	expect_answered(rig, "1: ENOENT");
	/* The next question needs a sync of its own. */
	ask(rig, 1, "/locks/a");
	expect_asked(rig, "get /locks/a");
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_sent(rig, "sync /locks/a, get /locks/a");
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_answer_data(rig, 0, "x");
	expect_answered(rig, "1: 'x'");
}

static void refused(void **state)
{
	struct rig *rig = *state;

	ask(rig, 1, "/locks/a");
	ask(rig, 2, "/locks/a");
	expect_asked(rig, "get /locks/a");
	rig_answer_error(rig, ENSEMBLE_NOAUTH);
	expect_answered(rig, "1: EACCES, 2: EACCES");
}

static void asked_on_the_next_connection(void **state)
{
	struct rig *rig = *state;

	ask(rig, 1, "/locks/a");
	expect_asked(rig, "get /locks/a");
	ask(rig, 2, "/locks/a");
	rig_disconnect(rig);
	rig_forget(rig);
	expect_asked(rig, "");
	rig_connect(rig, RIG_SESSION);
	rig_forget(rig);
	expect_asked(rig, ""); /* not before the first heartbeat is answered */
	rig_answer_version(rig, 1);
	rig_prove(rig);
	rig_forget(rig);
	expect_asked(rig, "get /locks/a");
	rig_answer_data(rig, 0, "x");
	expect_answered(rig, "1: 'x', 2: 'x'");
	/* What was said of a sync on the last connection says nothing on the next. */
	ask(rig, 1, "/locks/a");
	expect_asked(rig, "get /locks/a");
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_sent(rig, "sync /locks/a, get /locks/a");
	rig_reconnect(rig);
	rig_forget(rig);
	expect_asked(rig, "get /locks/a");
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_sent(rig, "sync /locks/a, get /locks/a");
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	expect_answered(rig, "1: ENOENT");
	/* Nobody wants to know it any more. */
	ask(rig, 1, "/locks/a");
	expect_asked(rig, "get /locks/a");
	rig_disconnect(rig);
	assert_non_null(rig->reads.unsent);
	reader_cancel(&all[1].reader);
	assert_null(rig->reads.unsent);
	assert_null(rig->reads.reads.users);
}

/* ---- lists ---- */

static const char *const plain[] = {"below", "x-lock-0000000001"};
static const char *const queued[] = {"x-lock-0000000001", "y-lock-0000000002", "below"};

static void listed(void **state)
{
	struct rig *rig = *state;

	ask_as(rig, 1, 5, READING_QUEUE, "/locks/a");
	expect_asked(rig, "children /locks/a");
	answer_names(rig, plain, 2);
	expect_answered(rig, "1: 2 names, 1 queued");
}

/* Where several entries are queued, the number of slots decides which of them hold. */
static void listed_with_slots(void **state)
{
	struct rig *rig = *state;

	ask_as(rig, 1, 5, READING_QUEUE, "/locks/a");
	expect_asked(rig, "children /locks/a");
	answer_names(rig, queued, 3);
	rig_expect_sent(rig, "get /locks/a, children /locks/a");
	answer_slots(rig, "zklockfs: 1\nslots: 2\n\n");
	answer_names(rig, queued, 3);
	expect_answered(rig, "1: 3 names, 2 queued");
	/* The number of slots is known now. */
	rig->now_us += 1000;
	ask_as(rig, 1, 5, READING_QUEUE, "/locks/a");
	expect_asked(rig, "children /locks/a");
	answer_names(rig, queued, 3);
	expect_answered(rig, "1: 3 names, 2 queued");
}

static void listed_and_watched(void **state)
{
	struct rig *rig = *state;

	ask_as(rig, 1, 5, READING_QUEUE, "/locks/a");
	ask_as(rig, 2, 5, READING_QUEUE, "/locks/a");
	all[2].reader.watch = true;
	expect_asked(rig, "children watched /locks/a");
	answer_names(rig, plain, 2);
	expect_answered(rig, "1: 2 names, 1 queued, 2: 2 names, 1 queued");
}

/* One list at a time, and then a rest: the longer the list was, the longer the rest. */
static void one_list_at_a_time(void **state)
{
	struct rig *rig = *state;

	ask_as(rig, 1, 5, READING_QUEUE, "/locks/a");
	ask_as(rig, 2, 6, READING_QUEUE, "/locks/b");
	ask(rig, 3, "/locks/c");
	expect_asked(rig, "get /locks/c, children /locks/a");
	rig_answer_data(rig, 0, "x");
	ask(rig, 4, "/locks/d");
	expect_asked(rig, "get /locks/d");
	answer_names(rig, plain, 2);
	rig_answer_data(rig, 0, "x"); /* this is no list: the rest stays as it was */
	asking_tell(&rig->lc);
	expect_asked(rig, "");
	/* The loop wakes at the end of the rest, if there is contact. */
	assert_int_equal(asking_wait(&rig->lc), 2 * LIST_REST_US);
	rig->session.state = LC_SUSPENDED;
	assert_int_equal(asking_wait(&rig->lc), INT64_MAX);
	rig->session.state = LC_READY;
	rig_run(rig, 2 * LIST_REST_US - 1);
	expect_asked(rig, "");
	rig_run(rig, 1);
	assert_int_equal(asking_wait(&rig->lc), 0);
	expect_asked(rig, "children /locks/b");
	ask_as(rig, 5, 6, READING_QUEUE, "/locks/e");
	assert_int_equal(asking_wait(&rig->lc), INT64_MAX); /* one is under way */
}

/* ---- shares ---- */

static void each_user_has_a_share(void **state)
{
	struct rig *rig = *state;
	int sent = 0;

	for (int i = 0; i < 20; i++) {
		char path[16];

		snprintf(path, sizeof(path), "/locks/%d", i);
		ask(rig, i, path);
	}
	ask_as(rig, 20, 6, READING_LOCK, "/locks/six");
	asking_send(&rig->lc);
	for (const char *text = rig->sent; (text = strstr(text, "get ")); text++)
		sent++;
	assert_int_equal(sent, USER_READS_MAX + 1);
	/* The turn of user 6 came second. */
	assert_memory_equal(rig->sent, "get /locks/0, get /locks/six, get /locks/1, ", 43);
	rig_forget(rig);
	rig_answer_data(rig, 0, "x");
	expect_asked(rig, "get /locks/16");
	rig_answer_data(rig, 0, "x"); /* of user 6 */
	expect_asked(rig, "");
}

static void only_so_many_in_all(void **state)
{
	struct rig *rig = *state;
	int sent = 0;

	for (int i = 0; i < 70; i++) {
		char path[16];

		snprintf(path, sizeof(path), "/locks/%d", i);
		ask_as(rig, i, i < 30 ? 0 : 5 + (uid_t)i % 3, READING_LOCK, path);
	}
	asking_send(&rig->lc);
	for (const char *text = rig->sent; (text = strstr(text, "get ")); text++)
		sent++;
	assert_int_equal(sent, READS_MAX);
	rig_forget(rig);
	for (int i = 0; i < READS_MAX; i++)
		rig_answer_data(rig, 0, "x");
	for (int i = 30; i < 70; i++)
		reader_cancel(&all[i].reader);
	asking_send(&rig->lc);
	for (int i = 0; i < 30; i++)
		reader_cancel(&all[i].reader);
	rig_forget(rig);
	for (int i = 0; i < 30; i++) {
		char path[16];

		snprintf(path, sizeof(path), "/locks/r%d", i);
		ask_as(rig, i, 0, READING_LOCK, path);
	}
	while (rig->unanswered)
		rig_answer_data(rig, 0, "x");
	asking_send(&rig->lc);
	sent = 0;
	for (const char *text = rig->sent; (text = strstr(text, "get ")); text++)
		sent++;
	assert_int_equal(sent, ROOT_READS_MAX);
}

/* Readers may ask again at once, so only some are told in a turn, and then none for a while. */
static void told_some_at_a_time(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(asking_wait(&rig->lc), INT64_MAX);
	for (int i = 0; i < TOLD_MAX + 2; i++)
		ask(rig, i, "/locks/a");
	expect_asked(rig, "get /locks/a");
	rig_answer_data(rig, 0, "x");
	assert_int_equal(asking_wait(&rig->lc), 0);
	rig_forget(rig);
	asking_tell(&rig->lc);
	assert_non_null(strstr(rig->told, "0: 'x', 1: 'x'"));
	assert_non_null(strstr(rig->told, "15: 'x'"));
	assert_null(strstr(rig->told, "16: 'x'"));
	rig_forget(rig);
	assert_int_equal(asking_wait(&rig->lc), TOLD_REST_US);
	rig->now_us += TOLD_REST_US - 1;
	asking_tell(&rig->lc);
	rig_expect_told(rig, "");
	rig->now_us += 1;
	asking_tell(&rig->lc);
	rig_expect_told(rig, "16: 'x', 17: 'x'");
	assert_int_equal(asking_wait(&rig->lc), INT64_MAX);
}

/* How a call knows whether its questions waited here or at the ensemble. */
static void told_to_the_call(void **state)
{
	struct rig *rig = *state;
	struct lc_call *call = &all[1].call;

	ask(rig, 1, "/locks/a");
	assert_int_equal(call->reads, 1);
	assert_int_equal(call->waiting, 1);
	rig->now_us += MS;
	expect_asked(rig, "get /locks/a");
	assert_int_equal(call->reads, 1);
	assert_int_equal(call->waiting, 0);
	assert_int_equal(call->sent_us, rig->now_us);
	assert_false(reader_is_answered(&all[1].reader));
	rig_answer_data(rig, 0, "x");
	assert_true(reader_is_answered(&all[1].reader));
	expect_answered(rig, "1: 'x'");
	assert_int_equal(call->reads, 0);
	assert_false(reader_is_answered(&all[1].reader));
}

#define ASKING_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ASKING_TEST(shared),
		ASKING_TEST(later_ones_wait_for_the_next),
		ASKING_TEST(cancelled),
		ASKING_TEST(again_from_inside),
		ASKING_TEST(not_there_after_a_sync),
		ASKING_TEST(refused),
		ASKING_TEST(asked_on_the_next_connection),
		ASKING_TEST(listed),
		ASKING_TEST(listed_with_slots),
		ASKING_TEST(listed_and_watched),
		ASKING_TEST(one_list_at_a_time),
		ASKING_TEST(each_user_has_a_share),
		ASKING_TEST(only_so_many_in_all),
		ASKING_TEST(told_some_at_a_time),
		ASKING_TEST(told_to_the_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
