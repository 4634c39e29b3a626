/* SPDX-License-Identifier: MIT
 *
 * questions.c - the scenarios of questions: reasons, confirming, a lock's data, its queue,
 * evicting. As in scenarios.c, each line runs whatever the result of the line before.
 */
#include "scenarios.h"

#include "pure/name.h"

#include <errno.h>
#include <string.h>

static bool shows(struct visitor *taker, const char *reason)
{
	struct node *node = visitor_node(taker);

	return !node || taker->taker.phase != HELD ||
	       (node->data && memmem(node->data, (size_t)node->data_len, reason, strlen(reason)));
}

static int set_reason(struct visitor *taker, const char *reason)
{
	return taker->taker.phase == HELD ? lc_set_reason(taker->taker.lc, reason, strlen(reason))
	                                  : -EIO;
}

void play_reason(struct bench *bench)
{
	int lock = make_lock(bench, "a");
	struct host *host = begin_host(bench, 0);
	struct visitor *taker;
	int r;

	settle(bench);
	taker = take(host, lock, LC_FOREVER, UNTIL_TOLD);
	run(bench, HOLD);
	set_reason(taker, "first");
	set_reason(taker, "second");
	run(bench, HOLD);
	set_reason(taker, "third");
	break_connection(host, 0);
	run(bench, SECOND);
	r = set_reason(taker, "fourth");
	run(bench, 5 * SECOND + bench->spell_us);
	if (r == 0 && !shows(taker, "reason: fourth"))
		bench_violation(bench, "a reason that was accepted is not shown");
}

void play_confirm(struct bench *bench)
{
	int lock = make_lock(bench, "a");
	struct host *host = begin_host(bench, 0);
	struct visitor *taker;
	struct node *about, *node;

	settle(bench);
	taker = take(host, lock, LC_FOREVER, UNTIL_TOLD);
	run(bench, HOLD);
	ask_confirm(taker, 0);
	run(bench, HOLD);
	cancel(ask_confirm(taker, 0));
	run(bench, HOLD);
	/* The heartbeat's node is gone. */
	about = tree_find(&bench->stage.world.committed, ROOT "/.zklockfs");
	node = about ? about->children : NULL;
	if (node)
		remove_node(bench, node->path);
	ask_confirm(taker, 0);
	run(bench, SECOND);
	evict(taker);
	ask_confirm(taker, 0);
	run(bench, SECOND);
}

void play_data(struct bench *bench)
{
	struct lc_change mode = {.set_mode = true, .attributes = {.uid = 1, .mode = 0700}},
			 slots = {.slots = 3};
	int lock = make_lock(bench, "a");
	struct host *host = begin_host(bench, 0);
	struct visitor *taker;

	settle(bench);
	taker = take(host, lock, LC_FOREVER, UNTIL_TOLD);
	run(bench, HOLD);
	ask_change(host, "a", &mode, 0);
	ask_change(host, "a", &slots, 0);
	ask_set_value(taker, "v42", false, 0);
	run(bench, HOLD);
	ask_set_value(taker, "v43", true, 0);
	loose(ask_value(host, "a", 0));
	cancel(ask_change(host, "a", &slots, 0));
	cancel(ask_value(host, "a", 0));
	run(bench, MS);
	cancel(ask_set_value(taker, "v44", true, 0));
	ask_change(host, "nowhere", &mode, 0);
	ask_value(host, "nowhere", 0);
	run(bench, MS);
	break_connection(host, -1);
	run(bench, SECOND);
	evict(taker);
	ask_set_value(taker, "v45", false, 0);
	run(bench, SECOND);
}

void play_evicting(struct bench *bench)
{
	int lock = make_lock(bench, "a");
	struct host *host = begin_host(bench, 0);
	char ours[128], other[128];

	make_entry(bench, lock, "_c_12345678-1234-1234-1234-123456789abc-host.77-lock-", ours);
	make_entry(bench, lock, "other-lock-", other);
	settle(bench);
	ask_evict(host, "a", strrchr(other, '/') + 1, -ENOENT);
	run(bench, HOLD);
	ask_evict(host, "a", strrchr(other, '/') + 1, -ENOENT);
	cancel(ask_evict(host, "a", strrchr(ours, '/') + 1, 0));
	ask_evict(host, "a", strrchr(ours, '/') + 1, 0);
	run(bench, HOLD);
	ask_evict(host, "a", strrchr(ours, '/') + 1, 0);
	run(bench, MS);
	break_connection(host, 0);
	run(bench, 2 * TIMEOUT_US);
	/* An entry that is still to be deleted when the engine ends. */
	make_entry(bench, lock, "_c_12345678-1234-1234-1234-123456789abc-host.78-lock-", ours);
	ask_evict(host, "a", strrchr(ours, '/') + 1, 0);
	run(bench, HOLD);
	remove_node(bench, ours);
}

void play_waiters(struct bench *bench)
{
	int lock = make_lock(bench, "a");
	struct host *one = begin_host(bench, 0), *two = begin_host(bench, 0);
	struct visitor *holder, *waiter;

	settle(bench);
	holder = take(one, lock, LC_FOREVER, UNTIL_TOLD);
	run(bench, HOLD);
	loose(ask_waiters(holder, true, 0));
	run(bench, HOLD);
	waiter = take(two, lock, LC_FOREVER, HOLD);
	run(bench, HOLD);
	loose(ask_waiters(holder, true, 0));
	run(bench, HOLD);
	cancel(ask_waiters(holder, true, 0));
	leave(waiter);
	run(bench, HOLD);
	loose(ask_waiters(holder, false, 0));
	run(bench, HOLD);
	leave(holder);
	if (!bench->expected && holder->taker.waiters_changed != 2)
		bench_violation(bench, "told %d times that a waiter came or went",
		                holder->taker.waiters_changed);
	run(bench, SECOND);
}

void play_questions(struct bench *bench)
{
	int lock = make_lock(bench, "a");
	struct host *host = begin_host(bench, 0);
	char one[128], two[128];

	make_lock(bench, "a/x");
	make_lock(bench, "a/y");
	make_entry(bench, lock, "_c_12345678-1234-1234-1234-123456789abc-host.77-lock-", one);
	make_entry(bench, lock, "other-lock-", two);
	settle(bench);
	ask_stat(host, "a", 0);
	ask_stat(host, "nowhere", 0);
	ask_list(host, "a", 0);
	ask_list(host, "", 0);
	ask_entries(host, "a", NULL, 0);
	ask_entries(host, "a", strrchr(two, '/') + 1, 0);
	ask_entries(host, "a", "none-lock-0000000007", 0);
	ask_entry(host, "a", strrchr(one, '/') + 1, 0);
	run(bench, HOLD);
	ask_mkdir(host, "new", 0);
	run(bench, HOLD);
	ask_mkdir(host, "new", -EEXIST);
	ask_stat(host, "new", -ENOENT);
	run(bench, HOLD);
	ask_rmdir(host, "new", -ENOENT);
	ask_rmdir(host, "a", 0);
	ask_rmdir(host, "a/x", 0);
	run(bench, HOLD);
	ask_rmdir(host, "nowhere", 0);
	ask_mkdir(host, "nowhere/b", 0);
	run(bench, HOLD);
	/* The entry goes between the listing and the read of the entry. */
	loose(ask_entries(host, "a", NULL, 0));
	remove_node(bench, one);
	run(bench, SECOND);
}

void play_questions_cancelled(struct bench *bench)
{
	int lock = make_lock(bench, "a");
	struct host *host = begin_host(bench, 0);
	struct question *asked[8];
	char entry[128];

	make_entry(bench, lock, "other-lock-", entry);
	settle(bench);
	for (int delay = 0; delay < 3; delay++) {
		asked[0] = ask_stat(host, "a", 0);
		asked[1] = ask_list(host, "a", 0);
		asked[2] = ask_entries(host, "a", NULL, 0);
		asked[3] = ask_entry(host, "a", strrchr(entry, '/') + 1, 0);
		asked[4] = ask_mkdir(host, "new", -EEXIST);
		asked[5] = ask_rmdir(host, "a", 0);
		asked[6] = ask_stat(host, "nowhere", 0);
		asked[7] = ask_rmdir(host, "new", -ENOENT);
		run(bench, delay * 3 * MS);
		for (int i = 0; i < 8; i++)
			cancel(asked[i]);
		run(bench, HOLD);
	}
	/* Questions without an answer are asked again, except questions that write. */
	for (int i = 0; i < 2; i++) {
		ask_list(host, "a", 0);
		ask_entries(host, "a", NULL, 0);
		ask_mkdir(host, i ? "late" : "later", 0);
		run(bench, MS / 5);
		break_connection(host, i ? -1 : 0);
		run(bench, SECOND);
	}
}
