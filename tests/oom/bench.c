/* SPDX-License-Identifier: MIT
 *
 * bench.c - see bench.h.
 */
#include "bench.h"

#include "name.h"
#include "trace.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define BEGIN_US (100 * SECOND)

void bench_violation(struct bench *bench, const char *format, ...)
{
	va_list args;

	if (bench->violation[0] != '\0')
		return;
	va_start(args, format);
	vsnprintf(bench->violation, sizeof(bench->violation), format, args);
	va_end(args);
	trace("violation: %s", bench->violation);
}

/* ---- the invariants ---- */

static bool entry_of_lock(const struct node *node)
{
	return name_is_numbered(node->name) && node->stat.ephemeral_owner != 0;
}

static bool foreign_waits(struct bench *bench, int lock)
{
	struct node *node = tree_find(&bench->world.committed, bench->locks[lock].path);

	if (!bench->foreign || !node)
		return false;
	DL_FOREACH(node->children, node)
		if (node->stat.ephemeral_owner == bench->foreign)
			return true;
	return false;
}

/* It holds still, but who was to take its place does as well: that is one. */
static bool replaced(const struct taker *taker)
{
	const struct bench *bench = taker->bench;

	for (int i = 0; i < bench->taker_count; i++)
		if (bench->takers[i].instead == taker && bench->takers[i].phase == HELD)
			return true;
	return false;
}

/* After everything that happens. */
static void look(struct bench *bench)
{
	int valid[LOCKS_MAX][2] = {0}, held[LOCKS_MAX] = {0}, waits[LOCKS_MAX] = {0};

	for (int i = 0; i < bench->taker_count; i++) {
		struct taker *taker = &bench->takers[i];

		waits[taker->lock] += taker->phase == WAITING;
		if (taker->phase != HELD)
			continue;
		held[taker->lock]++;
		if (lc_holds(taker->lc) && !taker->evicted && !replaced(taker))
			valid[taker->lock][taker->mode]++;
	}
	for (int i = 0; i < bench->lock_count; i++) {
		int alone = valid[i][LC_EXCLUSIVE], shared = valid[i][LC_SHARED];

		if (alone > bench->locks[i].slots || (alone && shared))
			bench_violation(bench, "%s: %d holders and %d that share",
			                bench->locks[i].name, alone, shared);
		if (held[i] || (waits[i] && foreign_waits(bench, i)))
			bench->locks[i].busy_us = bench->agenda.now_us;
	}
}

static int64_t longest_wait(const struct bench *bench)
{
	return RECHECK_US + SLACK_US + bench->spell_us;
}

/* How long it has waited for a lock that was free. */
static void judge_wait(struct taker *taker)
{
	struct bench *bench = taker->bench;
	int64_t since_us = bench->locks[taker->lock].busy_us;
	int64_t waited_us;

	if (since_us < taker->took_us)
		since_us = taker->took_us;
	waited_us = bench->agenda.now_us - since_us;
	if (bench->longest_wait_us < waited_us)
		bench->longest_wait_us = waited_us;
	if (waited_us > longest_wait(bench))
		bench_violation(bench, "taker %d waited %d s for a free lock",
		                (int)(taker - bench->takers), (int)(waited_us / SECOND));
}

/* It has the lock: its entry is there, and nobody's before it but a leaver's of its own. */
static void judge_grant(struct taker *taker)
{
	struct bench *bench = taker->bench;
	struct node *own = taker_node(taker), *node;
	int before = 0;

	if (taker->evicted)
		return;
	/* Somebody has ended its session, and nobody can know that before it is told. */
	if (!own && !world_session_alive(&bench->world, taker->mount->wire.session)) {
		taker->evicted = true;
		return;
	}
	if (!own) {
		bench_violation(bench, "taker %d is granted without an entry",
		                (int)(taker - bench->takers));
		return;
	}
	DL_FOREACH(own->parent->children, node) {
		bool shared = strstr(node->name, "-rlock-");

		if (!entry_of_lock(node) || node->stat.czxid >= own->stat.czxid ||
		    node->stat.ephemeral_owner == own->stat.ephemeral_owner)
			continue;
		before++;
		if (taker->mode == LC_SHARED ? !shared
		                             : shared || before >= bench->locks[taker->lock].slots)
			bench_violation(bench, "taker %d is granted behind %s",
			                (int)(taker - bench->takers), node->name);
	}
}

/* Whoever sees less of the others may get what it would not have got, or the other
 * way round where it does not wait for ever. */
static void judge_taker(struct taker *taker, int number)
{
	struct bench *bench = taker->bench;
	int result = taker->result, expected = bench->expected->takers[number];

	if (result == expected || result == 0 || result == 1 || result == -ENOMEM ||
	    result == -ENOLCK || taker->evicted)
		return;
	/* What comes late comes after the draining; or after the time of one that does not wait. */
	if (result == -ESHUTDOWN && bench->drained)
		return;
	if (((result == -EAGAIN || result == -EHOSTUNREACH) && taker->wait_us == 0) ||
	    (result == -ETIMEDOUT && taker->wait_us > 0 && taker->wait_us < LC_FOREVER) ||
	    (result == -EDEADLK && taker->instead))
		return;
	bench_violation(bench, "taker %d is told %s instead of %s", number,
	                strerrorname_np(-result),
	                expected < 0 ? strerrorname_np(-expected) : "success");
}

static void judge_question(struct question *question, int number)
{
	struct bench *bench = question->bench;
	int result = question->result, expected = bench->expected->questions[number];

	/* 1: was cancelled before. -EHOSTUNREACH: after a break the answer is chance. */
	if (question->cancelled || expected == 1 || expected == -EHOSTUNREACH ||
	    result == -ENOMEM || result == -EHOSTUNREACH ||
	    (question->also && result == question->also))
		return;
	if (result != expected && !(question->also && result == 0))
		bench_violation(bench, "question %d is answered %s instead of %s", number,
		                result < 0 ? strerrorname_np(-result) : "success",
		                expected < 0 ? strerrorname_np(-expected) : "success");
	else if (result == 0 && !question->loose &&
	         question->count != bench->expected->counts[number])
		bench_violation(bench, "question %d finds %zu instead of %zu", number,
		                question->count, bench->expected->counts[number]);
}

/* ---- mounts ---- */

static void start(void *ctx, uint64_t again)
{
	struct mount *mount = ctx;
	int r = mount_start(mount, mount->bench->lead_us[mount->index]);

	(void)again;
	if (r == 0)
		return;
	if (r != -ENOMEM)
		bench_violation(mount->bench, "lc_create: %s", strerrorname_np(-r));
	agenda_in(mount->agenda, SECOND / 10, start, mount, 1); /* as systemd would */
}

struct mount *begin_mount(struct bench *bench, int64_t lead_us)
{
	int index = bench->mount_count++;

	bench->lead_us[index] = lead_us;
	mount_init(&bench->mounts[index], bench, &bench->world, index, 0);
	start(&bench->mounts[index], 0);
	return &bench->mounts[index];
}

void end_session(struct mount *mount)
{
	struct bench *bench = mount->bench;

	for (int i = 0; i < bench->taker_count; i++)
		if (bench->takers[i].mount == mount && bench->takers[i].phase == HELD)
			bench->takers[i].evicted = true;
	world_close_session(&bench->world, mount->wire.session);
}

void end_mount(struct mount *mount, bool farewell)
{
	struct bench *bench = mount->bench;

	if (!mount->lc)
		return;
	lc_destroy(mount->lc, farewell);
	mount->lc = NULL;
	for (int i = 0; i < bench->taker_count; i++)
		if (bench->takers[i].mount == mount && bench->takers[i].phase != NEVER)
			bench->takers[i].phase = LEFT;
	for (int i = 0; i < bench->question_count; i++)
		if (bench->questions[i].mount == mount && bench->questions[i].call) {
			bench->questions[i].call = NULL;
			bench->questions[i].cancelled = true;
		}
	wire_finish(&mount->wire);
}

/* ---- takers ---- */

struct node *taker_node(struct taker *taker)
{
	struct bench *bench = taker->bench;
	struct node *node = tree_find(&bench->world.committed, bench->locks[taker->lock].path);

	if (!node || (taker->phase != WAITING && taker->phase != HELD))
		return NULL;
	/* By its name: the token may not be known before it is asked for. */
	DL_FOREACH(node->children, node)
		if (lc_znode(taker->lc) && !strcmp(node->name, lc_znode(taker->lc)))
			return node;
	return NULL;
}

void leave(struct taker *taker)
{
	struct bench *bench = taker->bench;
	bool was_inside = bench->inside;

	if (taker->phase == NEVER || taker->phase == LEFT)
		return;
	if (taker->phase == HELD)
		bench->locks[taker->lock].busy_us = bench->agenda.now_us;
	taker->phase = LEFT;
	bench->inside = true;
	lc_leave(taker->lc);
	bench->inside = was_inside;
	mount_wake(taker->mount); /* as the loop does after requests */
}

static void leave_later(void *ctx, uint64_t arg)
{
	(void)arg;
	leave(ctx);
}

static void expect_callback(struct taker *taker)
{
	if (taker->bench->inside)
		bench_violation(taker->bench, "a callback inside the call that caused it");
	if (taker->phase == LEFT)
		bench_violation(taker->bench, "a callback after lc_leave()");
}

static void taken(void *ctx, int err)
{
	struct taker *taker = ctx;
	struct bench *bench = taker->bench;

	trace("m%d: taker %d: taken(%d)", taker->mount->index, (int)(taker - bench->takers), err);
	expect_callback(taker);
	if (taker->told)
		bench_violation(bench, "taken() comes twice");
	taker->told = true;
	taker->result = err;
	if (taker->phase != WAITING)
		return;
	if (err < 0) {
		leave(taker);
		return;
	}
	judge_wait(taker);
	taker->phase = HELD;
	judge_grant(taker);
	if (taker->instead)
		leave(taker->instead);
	if (taker->hold_us == 0 || bench->ending)
		leave(taker);
	else if (taker->hold_us > 0)
		agenda_in(&bench->agenda, taker->hold_us, leave_later, taker, 0);
}

static void lost(void *ctx)
{
	struct taker *taker = ctx;

	trace("m%d: taker %d: lost", taker->mount->index, (int)(taker - taker->bench->takers));
	expect_callback(taker);
	if (taker->phase != HELD) {
		bench_violation(taker->bench, "lost() of what was not held");
		return;
	}
	taker->phase = LOST;
	lc_lost_done(taker->lc);
	if (taker->hold_us != UNTIL_TOLD)
		leave(taker);
}

static struct taker *request(struct mount *mount, int lock, enum lc_mode mode,
                             struct taker *instead, int64_t wait_us, int64_t hold_us)
{
	struct bench *bench = mount->bench;
	struct taker *taker = &bench->takers[bench->taker_count++];
	struct lc_request request = {
		.lock = bench->locks[lock].name,
		.mode = mode,
		.instead = instead ? instead->lc : NULL,
		.wait_us = wait_us,
		.pid = 1000 + bench->taker_count,
		.uid = (uid_t)(bench->taker_count % 2),
		.command = "test",
		.reason = "why",
	};

	*taker = (struct taker){.bench = bench,
	                        .mount = mount,
	                        .lock = lock,
	                        .mode = mode,
	                        .instead = instead,
	                        .wait_us = wait_us,
	                        .hold_us = hold_us,
	                        .took_us = bench->agenda.now_us,
	                        .result = -ENOMEM};
	if (!mount->lc)
		return taker;
	bench->inside = true;
	taker->result = lc_take(mount->lc, &request, taken, lost, taker, &taker->lc);
	bench->inside = false;
	trace("m%d: taker %d: lc_take -> %d", mount->index, bench->taker_count - 1, taker->result);
	if (taker->result == 0) {
		taker->result = 1;
		taker->phase = WAITING;
	}
	mount_wake(mount);
	return taker;
}

struct taker *take(struct mount *mount, int lock, int64_t wait_us, int64_t hold_us)
{
	return request(mount, lock, LC_EXCLUSIVE, NULL, wait_us, hold_us);
}

struct taker *take_shared(struct mount *mount, int lock, int64_t wait_us, int64_t hold_us)
{
	return request(mount, lock, LC_SHARED, NULL, wait_us, hold_us);
}

struct taker *upgrade(struct taker *taker, int64_t wait_us, int64_t hold_us)
{
	/* It may not have got so far, because memory was short. */
	return request(taker->mount, taker->lock, LC_EXCLUSIVE, taker->phase == HELD ? taker : NULL,
	               wait_us, hold_us);
}

void evict(struct taker *taker)
{
	struct node *node = taker_node(taker);

	if (!node)
		return;
	taker->evicted = true;
	remove_node(taker->bench, node->path);
}

/* ---- questions ---- */

static void answered(struct question *question, int err, size_t count)
{
	struct bench *bench = question->bench;

	trace("question %d: answered %d, %zu", (int)(question - bench->questions), err, count);
	if (bench->inside)
		bench_violation(bench, "an answer inside the call that asked");
	if (question->result != 1 || question->cancelled)
		bench_violation(bench, "question %d is answered again",
		                (int)(question - bench->questions));
	if (bench->agenda.now_us - question->asked_us > LC_CALL_TIMEOUT_US + SECOND)
		bench_violation(bench, "question %d is answered late",
		                (int)(question - bench->questions));
	question->call = NULL;
	question->result = err;
	question->count = count;
}

static void stat_done(void *ctx, int err, const struct lc_lock_info *info)
{
	answered(ctx, err, info ? info->has_attributes : 0);
}

static void list_done(void *ctx, int err, const struct lc_listing *listing)
{
	answered(ctx, err, listing ? listing->entry_count * 1000 + listing->lock_count : 0);
}

static void entries_done(void *ctx, int err, const struct lc_entry_info *infos, size_t count)
{
	size_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += strlen(infos[i].entry.znode);
	answered(ctx, err, count * 1000 + bytes);
}

static void done(void *ctx, int err)
{
	answered(ctx, err, 0);
}

static struct question *new_question(struct mount *mount, int also)
{
	struct bench *bench = mount->bench;
	struct question *question = &bench->questions[bench->question_count++];

	*question = (struct question){.bench = bench,
	                              .mount = mount,
	                              .also = also,
	                              .result = -ENOMEM,
	                              .asked_us = bench->agenda.now_us};
	bench->inside = true; /* until asked() */
	return question;
}

static struct question *asked(struct question *question, int r)
{
	struct bench *bench = question->bench;

	bench->inside = false;
	trace("question %d: asked -> %d", (int)(question - bench->questions), r);
	question->result = r == 0 ? 1 : r;
	if (r < 0)
		question->call = NULL;
	if (question->mount->lc)
		mount_wake(question->mount);
	return question;
}

struct question *ask_stat(struct mount *mount, const char *lock, int also)
{
	struct question *q = new_question(mount, also);

	return asked(q, mount->lc ? lc_stat(mount->lc, lock, 0, stat_done, q, &q->call) : -ENOMEM);
}

struct question *ask_list(struct mount *mount, const char *lock, int also)
{
	struct question *q = new_question(mount, also);

	return asked(q, mount->lc ? lc_list(mount->lc, lock, 0, list_done, q, &q->call) : -ENOMEM);
}

struct question *ask_entries(struct mount *mount, const char *lock, const char *znode, int also)
{
	struct question *q = new_question(mount, also);

	return asked(q, mount->lc ? lc_entries(mount->lc, lock, 0, znode, entries_done, q, &q->call)
	                          : -ENOMEM);
}

struct question *ask_entry(struct mount *mount, const char *lock, const char *znode, int also)
{
	struct question *q = new_question(mount, also);
	struct lc_entry known = {.znode = znode, .number = 0, .host = "-"};

	return asked(q, mount->lc
	                        ? lc_known(mount->lc, lock, 0, &known, 1, entries_done, q, &q->call)
	                        : -ENOMEM);
}

struct question *ask_mkdir(struct mount *mount, const char *lock, int also)
{
	struct question *q = new_question(mount, also);
	struct lc_attributes attributes = {.uid = 1, .gid = 2, .mode = 0755, .door_mode = 0666};

	return asked(q, mount->lc ? lc_mkdir(mount->lc, lock, &attributes, done, q, &q->call)
	                          : -ENOMEM);
}

struct question *ask_rmdir(struct mount *mount, const char *lock, int also)
{
	struct question *q = new_question(mount, also);

	return asked(q, mount->lc ? lc_rmdir(mount->lc, lock, 0, done, q, &q->call) : -ENOMEM);
}

struct question *ask_confirm(struct taker *taker, int also)
{
	struct question *q = new_question(taker->mount, also);

	/* A taker that has nothing to confirm because memory was short. */
	return asked(q, taker->phase == HELD ? lc_confirm(taker->lc, done, q, &q->call) : -ENOMEM);
}

static void value_done(void *ctx, int err, const char *value, size_t len)
{
	(void)value;
	answered(ctx, err, len);
}

struct question *ask_value(struct mount *mount, const char *lock, int also)
{
	struct question *q = new_question(mount, also);

	return asked(q,
	             mount->lc ? lc_value(mount->lc, lock, 0, value_done, q, &q->call) : -ENOMEM);
}

struct question *ask_change(struct mount *mount, const char *lock, const struct lc_change *change,
                            int also)
{
	struct question *q = new_question(mount, also);

	return asked(q,
	             mount->lc ? lc_change(mount->lc, lock, change, done, q, &q->call) : -ENOMEM);
}

struct question *ask_set_value(struct taker *taker, const char *value, bool append, int also)
{
	struct question *q = new_question(taker->mount, also);

	return asked(q, taker->phase == HELD ? lc_set_value(taker->lc, value, strlen(value), append,
	                                                    done, q, &q->call)
	                                     : -ENOMEM);
}

struct question *ask_evict(struct mount *mount, const char *lock, const char *znode, int also)
{
	struct question *q = new_question(mount, also);

	return asked(q, mount->lc ? lc_evict(mount->lc, lock, znode,
	                                     &(struct lc_evictor){.name = "somebody"}, done, q,
	                                     &q->call)
	                          : -ENOMEM);
}

/* Yes is told by the count. */
static void waited_for(void *ctx, int err)
{
	answered(ctx, err == 1 ? 0 : err, err == 1);
}

static void stirred(void *ctx)
{
	struct taker *taker = ctx;

	expect_callback(taker);
	taker->stirred++;
}

struct question *ask_waited_for(struct taker *taker, bool attend, int also)
{
	struct question *q = new_question(taker->mount, also);

	if (taker->phase == HELD)
		lc_attend(taker->lc, attend ? stirred : NULL);
	return asked(q, taker->phase == HELD ? lc_waited_for(taker->lc, waited_for, q, &q->call)
	                                     : -ENOMEM);
}

void cancel(struct question *question)
{
	if (!question->call)
		return;
	question->cancelled = true;
	lc_cancel(question->call);
	question->call = NULL;
}

/* ---- the world's other inhabitants ---- */

int make_lock(struct bench *bench, const char *name)
{
	int lock = bench->lock_count++;

	bench->locks[lock].name = name;
	bench->locks[lock].slots = 1;
	snprintf(bench->locks[lock].path, sizeof(bench->locks[lock].path), ROOT "/%s", name);
	world_do(&bench->world, 0, OP(.kind = ENSEMBLE_CREATE, .path = bench->locks[lock].path), 1,
	         NULL);
	run(bench, 10 * MS);
	return lock;
}

void set_slots(struct bench *bench, int lock, int slots)
{
	char data[128];
	int len = snprintf(data, sizeof(data),
	                   "zklockfs: 1\nuid: 1\ngid: 1\nmode: 755\ndoor_mode: 644\n"
	                   "slots: %d\n\n",
	                   slots);
	struct ensemble_op op = {.kind = ENSEMBLE_SET,
	                         .path = bench->locks[lock].path,
	                         .data = data,
	                         .data_len = len,
	                         .version = ENSEMBLE_ANY_VERSION};

	if (bench->locks[lock].slots < slots)
		bench->locks[lock].slots = slots;
	world_do(&bench->world, 0, &op, 1, NULL);
	run(bench, 10 * MS);
}

void make_entry(struct bench *bench, int lock, const char *prefix, char ret_path[128])
{
	char path[128];
	const char *made = "";

	if (!bench->foreign)
		bench->foreign = world_foreign_session(&bench->world, false);
	run(bench, 10 * MS);
	snprintf(path, sizeof(path), "%s/%s", bench->locks[lock].path, prefix);
	world_do(&bench->world, bench->foreign,
	         OP(.kind = ENSEMBLE_CREATE, .path = path, .ephemeral = true, .sequence = true), 1,
	         &made);
	snprintf(ret_path, 128, "%s", made);
	run(bench, 10 * MS);
}

void remove_node(struct bench *bench, const char *path)
{
	world_do(&bench->world, 0,
	         OP(.kind = ENSEMBLE_DELETE, .path = path, .version = ENSEMBLE_ANY_VERSION), 1,
	         NULL);
}

/* ---- the course of a run ---- */

void run(struct bench *bench, int64_t duration_us)
{
	int64_t until_us = bench->agenda.now_us + duration_us;

	while (bench->agenda.count && bench->agenda.heap[0].when_us <= until_us) {
		agenda_step(&bench->agenda);
		look(bench);
	}
	bench->agenda.now_us = until_us;
}

void bench_begin(struct bench *bench, const struct outcome *expected, int64_t spell_us)
{
	struct world_config config = {
		.servers = 1, .tick_us = 2 * SECOND, .delay_max_us = 2000, .commit_max_us = 1000};

	memset(bench, 0, sizeof(*bench));
	bench->expected = expected;
	bench->spell_us = spell_us;
	agenda_init(&bench->agenda, BEGIN_US);
	world_init(&bench->world, &bench->agenda, (struct rng){4711}, &config);
	world_do(&bench->world, 0, OP(.kind = ENSEMBLE_CREATE, .path = ROOT), 1, NULL);
	run(bench, SECOND);
}

static bool everybody_answered(const struct bench *bench)
{
	for (int i = 0; i < bench->taker_count; i++)
		if (bench->takers[i].phase == WAITING || bench->takers[i].phase == HELD)
			return false;
	for (int i = 0; i < bench->question_count; i++)
		if (bench->questions[i].call)
			return false;
	return true;
}

static struct node *left_over(struct bench *bench)
{
	for (int i = 0; i < bench->lock_count; i++) {
		struct node *node = tree_find(&bench->world.committed, bench->locks[i].path);

		if (!node)
			continue;
		DL_FOREACH(node->children, node)
			if (entry_of_lock(node) && node->stat.ephemeral_owner != bench->foreign)
				return node;
	}
	return NULL;
}

static bool all_clear(struct bench *bench)
{
	for (int i = 0; i < bench->mount_count; i++)
		if (bench->mounts[i].lc && !lc_idle(bench->mounts[i].lc))
			return false;
	return !left_over(bench);
}

/* Wait until it is so, or for as long as it may take. */
static bool wait_for(struct bench *bench, bool (*so)(struct bench *bench), int64_t patience_us)
{
	int64_t until_us = bench->agenda.now_us + patience_us;

	while (!so(bench)) {
		if (bench->agenda.now_us >= until_us || bench->violation[0] != '\0')
			return false;
		run(bench, SECOND / 10);
	}
	return true;
}

static bool answered_so(struct bench *bench)
{
	return everybody_answered(bench);
}

void bench_end(struct bench *bench)
{
	struct node *node;

	bench->ending = true;
	if (bench->foreign)
		world_close_session(&bench->world, bench->foreign);
	for (int i = 0; i < bench->taker_count; i++)
		if (bench->takers[i].phase == HELD || bench->takers[i].phase == LOST)
			leave(&bench->takers[i]);
	if (!wait_for(bench, answered_so, 2 * longest_wait(bench)))
		for (int i = 0; i < bench->taker_count; i++)
			if (bench->takers[i].phase == WAITING)
				bench_violation(bench, "taker %d waits for ever", i);
	for (int i = 0; i < bench->question_count; i++)
		if (bench->questions[i].call)
			bench_violation(bench, "question %d is never answered", i);
	for (int i = 0; i < bench->taker_count; i++)
		leave(&bench->takers[i]);
	if (!wait_for(bench, all_clear, longest_wait(bench))) {
		node = left_over(bench);
		if (node)
			bench_violation(bench, "an entry is left: %s", node->path);
		bench_violation(bench, "an engine is not idle");
	}
	for (int i = 0; bench->expected && i < bench->taker_count; i++)
		judge_taker(&bench->takers[i], i);
	for (int i = 0; bench->expected && i < bench->question_count; i++)
		judge_question(&bench->questions[i], i);
	for (int i = 0; i < bench->mount_count; i++)
		end_mount(&bench->mounts[i], true);
	if (memory_alive() != 0)
		bench_violation(bench, "%ld blocks are not freed", memory_alive());
	for (int i = 0; i < bench->mount_count; i++)
		wire_finish(&bench->mounts[i].wire);
	world_finish(&bench->world);
	agenda_finish(&bench->agenda);
}

void bench_outcome(const struct bench *bench, struct outcome *ret_outcome)
{
	for (int i = 0; i < bench->taker_count; i++)
		ret_outcome->takers[i] = bench->takers[i].result;
	for (int i = 0; i < bench->question_count; i++) {
		ret_outcome->questions[i] = bench->questions[i].result;
		ret_outcome->counts[i] = bench->questions[i].count;
	}
}
