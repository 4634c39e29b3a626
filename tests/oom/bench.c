/* SPDX-License-Identifier: MIT */
#include "bench.h"

#include "pure/name.h"
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

static struct bench *bench_of(const struct host *host)
{
	return ((struct stage *)host->owner)->owner;
}

static bool entry_of_lock(const struct node *node)
{
	return name_is_numbered(node->name) && node->stat.ephemeral_owner != 0;
}

static bool foreign_waits(struct bench *bench, int lock)
{
	struct node *node = tree_find(&bench->stage.world.committed, bench->locks[lock].path);

	if (!bench->foreign || !node)
		return false;
	DL_FOREACH(node->children, node)
		if (node->stat.ephemeral_owner == bench->foreign)
			return true;
	return false;
}

/* It still holds, and so does the visitor that takes its place: the two count as one. */
static bool replaced(const struct visitor *visitor)
{
	const struct bench *bench = visitor->bench;

	for (int i = 0; i < bench->visitor_count; i++)
		if (bench->visitors[i].replaces == visitor &&
		    bench->visitors[i].taker.phase == HELD)
			return true;
	return false;
}

/* Checks the holders of all locks; called after each event. */
static void look(struct bench *bench)
{
	int valid[LOCKS_MAX][2] = {0}, held[LOCKS_MAX] = {0}, waits[LOCKS_MAX] = {0};

	for (int i = 0; i < bench->visitor_count; i++) {
		struct visitor *visitor = &bench->visitors[i];

		waits[visitor->lock] += visitor->taker.phase == WAITING;
		if (visitor->taker.phase != HELD)
			continue;
		held[visitor->lock]++;
		if (lc_holds(visitor->taker.lc) && !visitor->evicted && !replaced(visitor))
			valid[visitor->lock][visitor->taker.mode]++;
	}
	for (int i = 0; i < bench->lock_count; i++) {
		int alone = valid[i][LC_EXCLUSIVE], shared = valid[i][LC_SHARED];

		if (alone > bench->locks[i].slots || (alone && shared))
			bench_violation(bench, "%s: %d holders and %d that share",
			                bench->locks[i].name, alone, shared);
		if (held[i] || (waits[i] && foreign_waits(bench, i)))
			bench->locks[i].busy_us = bench->stage.agenda.now_us;
	}
}

static int64_t longest_wait(const struct bench *bench)
{
	return RECHECK_US + SLACK_US + bench->spell_us;
}

/* Judges how long the visitor has waited while the lock was free. */
static void judge_wait(struct visitor *visitor)
{
	struct bench *bench = visitor->bench;
	int64_t since_us = bench->locks[visitor->lock].busy_us;
	int64_t waited_us;

	if (since_us < visitor->took_us)
		since_us = visitor->took_us;
	waited_us = bench->stage.agenda.now_us - since_us;
	if (bench->longest_wait_us < waited_us)
		bench->longest_wait_us = waited_us;
	if (waited_us > longest_wait(bench))
		bench_violation(bench, "taker %d waited %d s for a free lock",
		                (int)(visitor - bench->visitors), (int)(waited_us / SECOND));
}

/* A visitor with the lock has an entry, and only leavers of its own mount may be before it. */
static void judge_grant(struct visitor *visitor)
{
	struct bench *bench = visitor->bench;
	struct node *own = visitor_node(visitor), *node;
	int before = 0;

	if (visitor->evicted)
		return;
	/* Its session was ended by an operator, and the mount does not know that yet. */
	if (!own && !world_session_alive(&bench->stage.world, visitor->taker.host->wire.session)) {
		visitor->evicted = true;
		return;
	}
	if (!own) {
		bench_violation(bench, "taker %d is granted without an entry",
		                (int)(visitor - bench->visitors));
		return;
	}
	DL_FOREACH(own->parent->children, node) {
		bool shared = strstr(node->name, "-rlock-");

		if (!entry_of_lock(node) || node->stat.czxid >= own->stat.czxid ||
		    node->stat.ephemeral_owner == own->stat.ephemeral_owner)
			continue;
		before++;
		if (visitor->taker.mode == LC_SHARED
		            ? !shared
		            : shared || before >= bench->locks[visitor->lock].slots)
			bench_violation(bench, "taker %d is granted behind %s",
			                (int)(visitor - bench->visitors), node->name);
	}
}

/* Failures of other takers change the queue: a visitor may get a lock that it would not get
 * otherwise, or not get it, unless it waits for ever. */
static void judge_visitor(struct visitor *visitor, int number)
{
	struct bench *bench = visitor->bench;
	int result = visitor->taker.result, expected = bench->expected->takers[number];

	if (result == expected || result == 0 || result == 1 || result == -ENOMEM ||
	    result == -ENOLCK || visitor->evicted)
		return;
	/* With a delay, the answer may come after the draining, or after the time of a try. */
	if (result == -ESHUTDOWN && bench->drained)
		return;
	if (((result == -EAGAIN || result == -EHOSTUNREACH) && visitor->wait_us == 0) ||
	    (result == -ETIMEDOUT && visitor->wait_us > 0 && visitor->wait_us < LC_FOREVER) ||
	    (result == -EDEADLK && visitor->replaces))
		return;
	/* A try that does not learn of the holder here asks, and meets one that is incompatible. */
	if (result == -EPROTO && expected == -EAGAIN)
		return;
	bench_violation(bench, "taker %d is told %s instead of %s", number,
	                strerrorname_np(-result),
	                expected < 0 ? strerrorname_np(-expected) : "success");
}

static void judge_question(const struct question *question)
{
	struct bench *bench = bench_of(question->host);
	int number = question->number, also = bench->questions[number].also;
	int result = question->result, expected = bench->expected->questions[number];

	/* NONE: cancelled before its answer. -EHOSTUNREACH: after a break any answer may come. */
	if (question->cancelled || expected == NONE || expected == -EHOSTUNREACH ||
	    result == -ENOMEM || result == -EHOSTUNREACH || (also && result == also))
		return;
	if (result != expected && !(also && result == 0))
		bench_violation(bench, "question %d is answered %s instead of %s", number,
		                result < 0 ? strerrorname_np(-result) : "success",
		                expected < 0 ? strerrorname_np(-expected) : "success");
	else if (result == 0 && !bench->questions[number].loose &&
	         question->count != bench->expected->counts[number])
		bench_violation(bench, "question %d finds %zu instead of %zu", number,
		                question->count, bench->expected->counts[number]);
}

/* ---- hosts ---- */

static void start(void *ctx, uint64_t again)
{
	struct host *host = ctx;
	struct bench *bench = bench_of(host);
	int r = stage_start(host, ROOT, bench->lead_us[host->index]);

	(void)again;
	if (r == 0)
		return;
	if (r != -ENOMEM)
		bench_violation(bench, "lc_create: %s", strerrorname_np(-r));
	agenda_in(host->agenda, SECOND / 10, start, host, 1); /* as systemd does */
}

struct host *begin_host(struct bench *bench, int64_t lead_us)
{
	struct host *host = stage_host(&bench->stage, 77 + (uint64_t)bench->stage.host_count);

	bench->lead_us[host->index] = lead_us;
	start(host, 0);
	return host;
}

void end_session(struct host *host)
{
	struct bench *bench = bench_of(host);

	for (int i = 0; i < bench->visitor_count; i++)
		if (bench->visitors[i].taker.host == host && bench->visitors[i].taker.phase == HELD)
			bench->visitors[i].evicted = true;
	world_close_session(&bench->stage.world, host->wire.session);
}

void end_host(struct host *host, bool farewell)
{
	struct bench *bench = bench_of(host);

	if (!host->lc)
		return;
	stage_stop(host, farewell);
	for (int i = 0; i < bench->visitor_count; i++)
		if (bench->visitors[i].taker.host == host &&
		    bench->visitors[i].taker.phase != NEVER)
			bench->visitors[i].taker.phase = LEFT;
}

static int adopt(struct host *host)
{
	struct bench *bench = bench_of(host);
	int r = stage_adopt(host, bench->lead_us[host->index]);

	if (r < 0 && r != -ENOMEM)
		bench_violation(bench, "lc_adopt: %s", strerrorname_np(-r));
	return r;
}

static void claim_visitors(struct host *host, bool adopted)
{
	struct bench *bench = bench_of(host);

	for (int i = 0; i < bench->visitor_count; i++) {
		struct taker *taker = &bench->visitors[i].taker;

		if (taker->host != host || taker->phase == NEVER || taker->phase == LEFT)
			continue;
		if (adopted)
			stage_claim(taker);
		else
			taker->phase = LEFT;
	}
}

void reload_host(struct host *host)
{
	struct records *records = &host->notes.records;
	bool adopted = false;

	if (!host->lc)
		return;
	lc_record(host->lc);
	records_write(records);
	if (records->codec.failed) {
		stage_stop(host, false); /* nobody can go on */
	} else {
		notes_commit(&host->notes);
		adopted = adopt(host) == 0;
		if (!adopted)
			adopted = adopt(host) == 0; /* there may be memory now */
	}
	claim_visitors(host, adopted);
	if (adopted)
		lc_claimed(host->lc);
	else
		start(host, 0);
}

/* ---- visitors ---- */

struct node *visitor_node(struct visitor *visitor)
{
	struct bench *bench = visitor->bench;
	struct taker *taker = &visitor->taker;
	struct node *node =
		tree_find(&bench->stage.world.committed, bench->locks[visitor->lock].path);

	if (!node || (taker->phase != WAITING && taker->phase != HELD))
		return NULL;
	/* It is found by its name: the token may not be known yet. */
	DL_FOREACH(node->children, node)
		if (lc_znode(taker->lc) && !strcmp(node->name, lc_znode(taker->lc)))
			return node;
	return NULL;
}

void leave(struct visitor *visitor)
{
	struct bench *bench = visitor->bench;

	if (visitor->taker.phase == HELD)
		bench->locks[visitor->lock].busy_us = bench->stage.agenda.now_us;
	stage_leave(&visitor->taker);
}

static void leave_later(void *ctx, uint64_t arg)
{
	(void)arg;
	leave(ctx);
}

static void granted(struct visitor *visitor)
{
	struct bench *bench = visitor->bench;

	judge_wait(visitor);
	judge_grant(visitor);
	if (visitor->replaces)
		leave(visitor->replaces);
	if (visitor->hold_us == 0 || bench->ending)
		leave(visitor);
	else if (visitor->hold_us > 0)
		agenda_in(&bench->stage.agenda, visitor->hold_us, leave_later, visitor, 0);
}

static void told(struct taker *taker)
{
	struct visitor *visitor = taker->owner;

	switch (taker->phase) {
	case HELD:
		granted(visitor);
		break;
	case FAILED:
		leave(visitor);
		break;
	case LOST:
		if (visitor->hold_us != UNTIL_TOLD)
			leave(visitor);
		break;
	case NEVER:
	case WAITING:
	case LEFT:
		break;
	}
}

static struct visitor *request(struct host *host, int lock, enum lc_mode mode, struct visitor *old,
                               int64_t wait_us, int64_t hold_us)
{
	struct bench *bench = bench_of(host);
	struct visitor *visitor = &bench->visitors[bench->visitor_count++];

	*visitor = (struct visitor){.bench = bench,
	                            .lock = lock,
	                            .replaces = old,
	                            .wait_us = wait_us,
	                            .hold_us = hold_us,
	                            .took_us = bench->stage.agenda.now_us};
	stage_take(&visitor->taker, host,
	           &(struct lc_request){.lock = bench->locks[lock].name,
	                                .mode = mode,
	                                .replaces = old ? old->taker.lc : NULL,
	                                .wait_us = wait_us,
	                                .pid = 1000 + bench->visitor_count,
	                                .uid = (uid_t)(bench->visitor_count % 2),
	                                .command = "test",
	                                .reason = "why"});
	visitor->taker.owner = visitor;
	return visitor;
}

struct visitor *take(struct host *host, int lock, int64_t wait_us, int64_t hold_us)
{
	return request(host, lock, LC_EXCLUSIVE, NULL, wait_us, hold_us);
}

struct visitor *take_shared(struct host *host, int lock, int64_t wait_us, int64_t hold_us)
{
	return request(host, lock, LC_SHARED, NULL, wait_us, hold_us);
}

struct visitor *upgrade(struct visitor *visitor, int64_t wait_us, int64_t hold_us)
{
	/* The visitor may not hold, because memory was short. */
	return request(visitor->taker.host, visitor->lock, LC_EXCLUSIVE,
	               visitor->taker.phase == HELD ? visitor : NULL, wait_us, hold_us);
}

void evict(struct visitor *visitor)
{
	struct node *node = visitor_node(visitor);

	if (!node)
		return;
	visitor->evicted = true;
	remove_node(visitor->bench, node->path);
}

/* ---- questions ---- */

static struct question *may_be(struct question *question, int also)
{
	bench_of(question->host)->questions[question->number].also = also;
	return question;
}

void loose(struct question *question)
{
	bench_of(question->host)->questions[question->number].loose = true;
}

struct question *ask_stat(struct host *host, const char *lock, int also)
{
	return may_be(stage_ask_stat(host, lock, 0), also);
}

struct question *ask_list(struct host *host, const char *lock, int also)
{
	return may_be(stage_ask_list(host, lock, 0), also);
}

struct question *ask_entries(struct host *host, const char *lock, const char *znode, int also)
{
	return may_be(stage_ask_entries(host, lock, znode), also);
}

struct question *ask_entry(struct host *host, const char *lock, const char *znode, int also)
{
	return may_be(stage_ask_known(host, lock, znode), also);
}

struct question *ask_mkdir(struct host *host, const char *lock, int also)
{
	struct lc_attributes attributes = {
		.uid = 1, .gid = 2, .mode = 0755, .lock_file_mode = 0666};

	return may_be(stage_ask_mkdir(host, lock, &attributes), also);
}

struct question *ask_rmdir(struct host *host, const char *lock, int also)
{
	return may_be(stage_ask_rmdir(host, lock, 0), also);
}

/* A visitor that does not hold, because memory was short, cannot ask: it is refused. */
static bool holds(const struct visitor *visitor)
{
	return visitor->taker.phase == HELD;
}

struct question *ask_confirm(struct visitor *visitor, int also)
{
	return may_be(holds(visitor) ? stage_ask_confirm(&visitor->taker)
	                             : stage_refused(visitor->taker.host),
	              also);
}

struct question *ask_value(struct host *host, const char *lock, int also)
{
	return may_be(stage_ask_value(host, lock, 0), also);
}

struct question *ask_change(struct host *host, const char *lock, const struct lc_change *change,
                            int also)
{
	return may_be(stage_ask_change(host, lock, change), also);
}

struct question *ask_set_value(struct visitor *visitor, const char *value, bool append, int also)
{
	return may_be(holds(visitor)
	                      ? stage_ask_set_value(&visitor->taker, value, strlen(value), append)
	                      : stage_refused(visitor->taker.host),
	              also);
}

struct question *ask_evict(struct host *host, const char *lock, const char *znode, int also)
{
	return may_be(stage_ask_evict(host, lock, znode, &(struct lc_evictor){.name = "somebody"}),
	              also);
}

struct question *ask_waiters(struct visitor *visitor, bool watch, int also)
{
	if (!holds(visitor))
		return may_be(stage_refused(visitor->taker.host), also);
	stage_watch_waiters(&visitor->taker, watch);
	return may_be(stage_ask_waiters(&visitor->taker), also);
}

void cancel(struct question *question)
{
	stage_cancel(question);
}

/* ---- other clients ---- */

int make_lock(struct bench *bench, const char *name)
{
	int lock = bench->lock_count++;

	bench->locks[lock].name = name;
	bench->locks[lock].slots = 1;
	snprintf(bench->locks[lock].path, sizeof(bench->locks[lock].path), ROOT "/%s", name);
	world_do(&bench->stage.world, 0,
	         OP(.kind = ENSEMBLE_CREATE, .path = bench->locks[lock].path), 1, NULL);
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
	world_do(&bench->stage.world, 0, &op, 1, NULL);
	run(bench, 10 * MS);
}

void make_entry(struct bench *bench, int lock, const char *prefix, char ret_path[128])
{
	char path[128];
	const char *made = "";

	if (!bench->foreign)
		bench->foreign = world_foreign_session(&bench->stage.world, 0);
	run(bench, 10 * MS);
	snprintf(path, sizeof(path), "%s/%s", bench->locks[lock].path, prefix);
	world_do(&bench->stage.world, bench->foreign,
	         OP(.kind = ENSEMBLE_CREATE, .path = path, .ephemeral = true, .sequence = true), 1,
	         &made);
	snprintf(ret_path, 128, "%s", made);
	run(bench, 10 * MS);
}

void remove_node(struct bench *bench, const char *path)
{
	world_do(&bench->stage.world, 0,
	         OP(.kind = ENSEMBLE_DELETE, .path = path, .version = ENSEMBLE_ANY_VERSION), 1,
	         NULL);
}

/* ---- the course of a run ---- */

static void complain(struct stage *stage, const char *text)
{
	bench_violation(stage->owner, "%s", text);
}

static void stepped(struct stage *stage)
{
	look(stage->owner);
}

static const struct stage_hooks hooks = {.complain = complain, .stepped = stepped, .told = told};

void run(struct bench *bench, int64_t duration_us)
{
	stage_run(&bench->stage, duration_us);
}

void bench_begin(struct bench *bench, const struct outcome *expected, int64_t spell_us)
{
	memset(bench, 0, sizeof(*bench));
	bench->expected = expected;
	bench->spell_us = spell_us;
	stage_init(&bench->stage, BEGIN_US, 4711, &hooks, bench);
	stage_act(&bench->stage, 0, (struct ensemble_op){.kind = ENSEMBLE_CREATE, .path = ROOT},
	          NULL);
	run(bench, SECOND);
}

static bool everybody_answered(struct bench *bench)
{
	const struct question *question;

	for (int i = 0; i < bench->visitor_count; i++)
		if (bench->visitors[i].taker.phase == WAITING ||
		    bench->visitors[i].taker.phase == HELD)
			return false;
	DL_FOREACH(bench->stage.questions, question)
		if (question->call)
			return false;
	return true;
}

static struct node *left_over(struct bench *bench)
{
	for (int i = 0; i < bench->lock_count; i++) {
		struct node *node = tree_find(&bench->stage.world.committed, bench->locks[i].path);

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
	for (int i = 0; i < bench->stage.host_count; i++)
		if (bench->stage.hosts[i].lc && !lc_idle(bench->stage.hosts[i].lc))
			return false;
	return !left_over(bench);
}

/* Waits until so() is true. False: not within patience_us, or there is a violation. */
static bool wait_for(struct bench *bench, bool (*so)(struct bench *bench), int64_t patience_us)
{
	int64_t until_us = bench->stage.agenda.now_us + patience_us;

	while (!so(bench)) {
		if (bench->stage.agenda.now_us >= until_us || bench->violation[0] != '\0')
			return false;
		run(bench, SECOND / 10);
	}
	return true;
}

void bench_end(struct bench *bench)
{
	const struct question *question;
	struct node *node;

	bench->ending = true;
	if (bench->foreign)
		world_close_session(&bench->stage.world, bench->foreign);
	for (int i = 0; i < bench->visitor_count; i++)
		if (bench->visitors[i].taker.phase == HELD ||
		    bench->visitors[i].taker.phase == LOST)
			leave(&bench->visitors[i]);
	if (!wait_for(bench, everybody_answered, 2 * longest_wait(bench)))
		for (int i = 0; i < bench->visitor_count; i++)
			if (bench->visitors[i].taker.phase == WAITING)
				bench_violation(bench, "taker %d waits for ever", i);
	DL_FOREACH(bench->stage.questions, question)
		if (question->call)
			bench_violation(bench, "question %d is never answered", question->number);
	for (int i = 0; i < bench->visitor_count; i++)
		leave(&bench->visitors[i]);
	if (!wait_for(bench, all_clear, longest_wait(bench))) {
		node = left_over(bench);
		if (node)
			bench_violation(bench, "an entry is left: %s", node->path);
		bench_violation(bench, "an engine is not idle");
	}
	for (int i = 0; bench->expected && i < bench->visitor_count; i++)
		judge_visitor(&bench->visitors[i], i);
	DL_FOREACH(bench->stage.questions, question)
		if (bench->expected)
			judge_question(question);
	for (int i = 0; i < bench->stage.host_count; i++) {
		end_host(&bench->stage.hosts[i], true);
		records_finish(&bench->stage.hosts[i].notes.records);
	}
	if (memory_alive() != 0)
		bench_violation(bench, "%ld blocks are not freed", memory_alive());
}

void bench_outcome(struct bench *bench, struct outcome *ret_outcome)
{
	const struct question *question;

	for (int i = 0; i < bench->visitor_count; i++)
		ret_outcome->takers[i] = bench->visitors[i].taker.result;
	DL_FOREACH(bench->stage.questions, question) {
		ret_outcome->questions[question->number] = question->result;
		ret_outcome->counts[question->number] = question->count;
	}
}

void bench_finish(struct bench *bench)
{
	stage_finish(&bench->stage);
}
