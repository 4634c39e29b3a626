/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include "grant/grant.h"
#include "lock/known.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct rig_request {
	ensemble_answer_fn *answer;
	void *ctx;
	char *text;
	struct rig_request *prev, *next;
};

struct rig *rig_of(struct lc *lc)
{
	return (struct rig *)((char *)lc - offsetof(struct rig, lc));
}

static void append(char *list, size_t size, const char *text)
{
	size_t len = strlen(list);

	assert_true(len + strlen(text) + 3 < size);
	snprintf(list + len, size - len, "%s%s", len > 0 ? ", " : "", text);
}

static void record_sent(struct rig *rig, const char *text)
{
	append(rig->sent, sizeof(rig->sent), text);
}

void rig_tell(struct rig *rig, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	append(rig->told, sizeof(rig->told), text);
}

/* ---- the port ---- */

static struct rig *rig_below(struct ensemble *ensemble)
{
	return (struct rig *)ensemble;
}

static int port_open(struct ensemble *ensemble, int64_t timeout_us,
                     const struct ensemble_session *session, const struct ensemble_events *events,
                     void *ctx)
{
	struct rig *rig = rig_below(ensemble);
	char text[40];

	assert_ptr_equal(ctx, &rig->lc);
	rig->port_events = events;
	snprintf(text, sizeof(text), "open %d s%s", (int)(timeout_us / SECOND),
	         session ? " again" : "");
	record_sent(rig, text);
	return rig->open_result;
}

static void answer_all(struct rig *rig, enum ensemble_result result)
{
	struct rig_request *last = rig->unanswered ? rig->unanswered->prev : NULL;

	/* Requests that an answer function sends belong to the next connection. */
	for (bool done = !last; !done;) {
		done = rig->unanswered == last;
		rig_answer_error(rig, result);
	}
}

static void port_close(struct ensemble *ensemble, bool end_session)
{
	struct rig *rig = rig_below(ensemble);

	record_sent(rig, end_session ? "close, farewell" : "close");
	answer_all(rig, ENSEMBLE_GONE);
}

static void port_rest(struct ensemble *ensemble)
{
	record_sent(rig_below(ensemble), "rest");
}

static void port_drop(struct ensemble *ensemble)
{
	record_sent(rig_below(ensemble), "drop");
}

/* Shortens the names of entries of this mount. */
static void print_path(char *text, size_t size, const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	uint64_t id;
	int digits = 0;

	snprintf(text, size, "%s", path);
	if (sscanf(name, "_c_00000000-0000-0001-0000-%12" SCNx64 "-%n", &id, &digits) == 1 &&
	    digits)
		snprintf(text + (name - path), size - (size_t)(name - path), "#%d-%.0d", (int)id,
		         atoi(strrchr(name, '_') > strrchr(name, '-') ? strrchr(name, '_') + 1
		                                                      : strrchr(name, '-') + 1));
}

static size_t print_op(char *text, size_t size, const struct ensemble_op *op)
{
	static const char *const words[] = {
		[ENSEMBLE_CREATE] = "create",   [ENSEMBLE_DELETE] = "delete",
		[ENSEMBLE_SET] = "set",         [ENSEMBLE_CHECK] = "check",
		[ENSEMBLE_GET] = "get",         [ENSEMBLE_CHILDREN] = "children",
		[ENSEMBLE_UNWATCH] = "unwatch", [ENSEMBLE_SYNC] = "sync",
	};
	const char *word = op->kind == ENSEMBLE_GET && op->watch ? "watch" : words[op->kind];
	bool versioned = op->kind == ENSEMBLE_SET || op->kind == ENSEMBLE_DELETE ||
	                 op->kind == ENSEMBLE_CHECK;
	char path[400];
	size_t n;

	print_path(path, sizeof(path), op->path);
	n = (size_t)snprintf(text, size, "%s%s%s %s", word, op->ephemeral ? " ephemeral" : "",
	                     op->kind == ENSEMBLE_CHILDREN && op->watch ? " watched" : "", path);
	assert_int_equal(op->sequence,
	                 op->ephemeral && strchr("-_", op->path[strlen(op->path) - 1]) != NULL);
	if (versioned && op->version != ENSEMBLE_ANY_VERSION)
		n += (size_t)snprintf(text + n, size - n, " v%d", (int)op->version);
	if (op->kind == ENSEMBLE_SET || (op->kind == ENSEMBLE_CREATE && !op->sequence))
		n += (size_t)snprintf(text + n, size - n, " '%.*s'", op->data_len,
		                      op->data ? (const char *)op->data : "");
	assert_true(n < size);
	for (char *c = text; *c; c++)
		if (*c == '\n')
			*c = '|';
	return n;
}

static void port_submit(struct ensemble *ensemble, const struct ensemble_op *ops, int count,
                        ensemble_answer_fn *answer, void *ctx)
{
	struct rig *rig = rig_below(ensemble);
	struct rig_request *request = calloc(1, sizeof(*request));
	char text[8192];
	size_t n = 0;

	assert_non_null(request);
	assert_true(count > 0 && count <= ENSEMBLE_OPS_MAX);
	for (int i = 0; i < count; i++) {
		if (i > 0)
			n += (size_t)snprintf(text + n, sizeof(text) - n, " + ");
		n += print_op(text + n, sizeof(text) - n, &ops[i]);
	}
	if (!rig->has_letters && strncmp(text, "watch ", 6) == 0 && strstr(text, "-pokes")) {
		free(request);
		answer(ctx, &(struct ensemble_answer){.stat = &(struct ensemble_stat){0}});
		return;
	}
	record_sent(rig, text);
	*request = (struct rig_request){.answer = answer, .ctx = ctx, .text = strdup(text)};
	DL_APPEND(rig->unanswered, request);
}

static const char *port_server(struct ensemble *ensemble)
{
	(void)ensemble;
	return "server:2181";
}

static const struct ensemble_port recording_port = {
	.open = port_open,
	.close = port_close,
	.rest = port_rest,
	.drop = port_drop,
	.submit = port_submit,
	.server = port_server,
};

/* ---- callbacks of the session ---- */

static void session_beaten(struct lc *lc, bool resumed)
{
	rig_tell(rig_of(lc), "beaten%s", resumed ? " resumed" : "");
	if (resumed) {
		watches_resume(lc);
		session_prove(lc);
	}
}

static void session_letters(struct lc *lc, const void *letters, size_t len, bool all)
{
	if (len > 0 || all)
		rig_tell(rig_of(lc), "letters %.*s%s", (int)len, (const char *)letters,
		         all ? "all" : "");
	loss_by_letters(lc, letters, len, all);
}

static void session_alive(struct lc *lc)
{
	rig_tell(rig_of(lc), "alive");
}

static void session_extended(struct lc *lc)
{
	rig_tell(rig_of(lc), "extended");
}

static void session_over(struct lc *lc)
{
	rig_tell(rig_of(lc), "over");
}

static void session_disconnected(struct lc *lc)
{
	rig_tell(rig_of(lc), "disconnected");
	batch_clear(lc);
}

static void session_ended(struct lc *lc)
{
	rig_tell(rig_of(lc), "ended");
	batch_clear(lc);
	watches_clear(lc);
}

static void session_unusable(struct lc *lc)
{
	rig_tell(rig_of(lc), "unusable %s", strerrorname_np(-lc->session->why));
}

static bool session_unused(const struct lc *lc)
{
	return !rig_of((struct lc *)lc)->in_use;
}

static void session_changed(struct lc *lc, const char *path, enum ensemble_change change)
{
	static const char *const words[] = {
		[ENSEMBLE_DATA] = "data",
		[ENSEMBLE_NAMES] = "names",
		[ENSEMBLE_DELETED] = "deleted",
	};

	rig_tell(rig_of(lc), "changed %s %s", path, words[change]);
}

static const struct session_events session_recorder = {
	.beaten = session_beaten,
	.letters = session_letters,
	.alive = session_alive,
	.extended = session_extended,
	.over = session_over,
	.disconnected = session_disconnected,
	.ended = session_ended,
	.unusable = session_unusable,
	.unused = session_unused,
	.changed = session_changed,
};

/* ---- what an entry's answers mean to its taker ---- */

/* The linker puts this function in the place of the engine's (`wrapped` in meson.build), which it
 * calls in a test with takers. */
#define WRAPPED(name, entry, parameters, arguments, ...)     \
	void __wrap_##name parameters;                       \
	void __real_##name parameters;                       \
	void __wrap_##name parameters                        \
	{                                                    \
		struct rig *rig = rig_of((entry)->lock->lc); \
                                                             \
		if (rig->has_takers)                         \
			__real_##name arguments;             \
		else                                         \
			rig_tell(rig, __VA_ARGS__);          \
	}

WRAPPED(known_made, entry, (struct entry * entry), (entry), "%d made", entry->data.pid)
WRAPPED(known_gone, entry, (struct entry * entry), (entry), "%d absent", entry->data.pid)
WRAPPED(taker_not_made, &taker->entry, (struct lc_taker * taker, enum ensemble_result why),
        (taker, why), "%d not made: %s", taker->entry.data.pid, strerrorname_np(-errno_of(why)))
WRAPPED(taker_proved, &taker->entry, (struct lc_taker * taker), (taker), "%d seen",
        taker->entry.data.pid)
WRAPPED(loss_of_node, &taker->entry, (struct lc_taker * taker), (taker), "%d gone",
        taker->entry.data.pid)
WRAPPED(loss_by_mark, &taker->entry, (struct lc_taker * taker, const char *by), (taker, by),
        "%d marked by %s", taker->entry.data.pid, by)
WRAPPED(taker_try_later, &taker->entry, (struct lc_taker * taker), (taker), "%d later",
        taker->entry.data.pid)
WRAPPED(taker_step, &taker->entry, (struct lc_taker * taker), (taker), "%d changed",
        taker->entry.data.pid)

void rig_make_entry(struct rig *rig, struct entry *entry, const char *lock, pid_t pid,
                    enum lc_mode mode)
{
	struct lock *found;

	assert_int_equal(lock_get(&rig->lc, lock, 0, &found), 0);
	*entry = (struct entry){.data.pid = pid, .data.uid = 5, .mode = mode};
	strcpy(entry->data.command, "sh");
	assert_int_equal(entry_init(&rig->lc, entry, found), 0);
}

void rig_free_entry(struct entry *entry)
{
	struct lc *lc = entry->lock->lc;

	entry_finish(entry);
	lock_unuse(entry->lock);
	locks_forget_idle(lc);
}

const char *rig_entry_path(const struct entry *entry, int number)
{
	static char path[300];
	const struct lc *lc = entry->lock->lc;
	char prefix[NAME_PREFIX_MAX];

	name_format(prefix, lc->clients, lc->session->half, entry->id.number, "m0", entry->data.pid,
	            entry->mode);
	snprintf(path, sizeof(path), "%s/%s%010d", entry->lock->path, prefix, number);
	return path;
}

/* ---- the host ---- */

static int64_t clock_us(void *ctx)
{
	return ((struct rig *)ctx)->now_us;
}

static int64_t wall_ms(void *ctx)
{
	return ((struct rig *)ctx)->now_us / 1000;
}

static void random_bytes(void *ctx, void *ret_bytes, size_t len)
{
	struct rig *rig = ctx;

	assert_int_equal(len, sizeof(rig->randoms));
	rig->randoms++;
	memcpy(ret_bytes, &rig->randoms, len);
}

static void report(void *ctx, enum lc_level level, const char *text)
{
	struct rig *rig = ctx;

	(void)level;
	append(rig->reported, sizeof(rig->reported), text);
}

/* ---- begin and end ---- */

struct rig *rig_begin(void)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	rig->ensemble.port = &recording_port;
	rig->now_us = 1000 * SECOND;
	rig->lc = (struct lc){
		.clients = &clients_all[0],
		.config = {.host = "m0",
	                   .session_timeout_us = RIG_TIMEOUT_US,
	                   .tick_time_us = 2 * SECOND,
	                   .clock_us = clock_us,
	                   .wall_ms = wall_ms,
	                   .random = random_bytes,
	                   .report = report,
	                   .ctx = rig},
		.root = strdup("/locks"),
		.host = "m0",
		.ensemble = &rig->ensemble,
		.home = &rig->home,
		.session = &rig->session,
		.quota = &rig->quota,
		.watches = &rig->watches,
		.locks = &rig->locks,
		.entries = &rig->entries,
		.batch = &rig->batch,
		.takers = &rig->takers,
		.reads = &rig->reads,
		.calls = &rig->calls,
		.evictions = &rig->evictions,
	};
	assert_int_equal(session_begin(&rig->lc, &session_recorder), 0);
	return rig;
}

struct rig *rig_begin_ready(void)
{
	struct rig *rig = rig_begin();

	rig_connect(rig, RIG_SESSION);
	rig_find_home(rig);
	rig_answer_version(rig, 0);
	rig_forget(rig);
	assert_true(lc_ready(&rig->lc));
	return rig;
}

void rig_finish(struct rig *rig)
{
	session_finish(&rig->lc, false);
	assert_null(rig->unanswered);
	assert_null(rig->lc.timers.first);
	assert_null(rig->quota.users);
	assert_null(rig->entries.writers.users);
	assert_int_equal(rig->quota.entry_bytes, 0);
	assert_int_equal(rig->quota.watch_bytes, 0);
	session_free(&rig->lc);
	table_finish(&rig->entries.by_id);
	decide_finish(&rig->lc);
	free(rig->lc.root);
	free(rig);
}

/* ---- what happens ---- */

void rig_run(struct rig *rig, int64_t duration_us)
{
	int64_t until_us = rig->now_us + duration_us;

	for (const struct timer *next; (next = rig->lc.timers.first) && next->at_us <= until_us;) {
		if (next->at_us > rig->now_us)
			rig->now_us = next->at_us;
		timers_run(&rig->lc.timers, rig->now_us);
	}
	rig->now_us = until_us;
}

void rig_accept(struct rig *rig, int64_t session, int64_t timeout_us)
{
	if (rig->session.id == session)
		rig->port_events->renews(&rig->lc);
	rig->port_events->connected(&rig->lc, &(struct ensemble_session){.id = session}, timeout_us,
	                            rig->now_us);
}

void rig_connect(struct rig *rig, int64_t session)
{
	rig_accept(rig, session, RIG_TIMEOUT_US);
}

void rig_disconnect(struct rig *rig)
{
	rig->port_events->disconnected(&rig->lc);
	answer_all(rig, ENSEMBLE_UNKNOWN);
}

void rig_end_session(struct rig *rig, bool refused)
{
	answer_all(rig, refused ? ENSEMBLE_UNKNOWN : ENSEMBLE_GONE);
	rig->port_events->ended(&rig->lc, refused);
	if (rig->session.inquiry != INQUIRY_NONE) {
		rig->session.inquiry = INQUIRY_OVER;
		timer_set(&rig->lc.timers, &rig->session.retry, rig->now_us);
		rig_run(rig, 0);
	}
}

void rig_say_over(struct rig *rig)
{
	rig->port_events->ended(&rig->lc, false);
}

static bool is_disrupted;

static bool disrupted(void *ctx)
{
	bool was = is_disrupted;

	(void)ctx;
	is_disrupted = false;
	return was;
}

void rig_doubt_now(struct rig *rig)
{
	rig->lc.config.disrupted = disrupted;
	is_disrupted = true;
	assert_true(lc_doubted(&rig->lc));
}

void rig_doubt(struct rig *rig)
{
	rig->now_us += SECOND;
	rig_doubt_now(rig);
}

void rig_prove(struct rig *rig)
{
	struct rig_request *request;

	DL_FOREACH(rig->unanswered, request)
		if (strncmp(request->text, "set " RIG_NODE " ", strlen("set " RIG_NODE " ")) == 0)
			break;
	assert_non_null(request);
	DL_DELETE(rig->unanswered, request);
	DL_PREPEND(rig->unanswered, request);
	rig_answer_version(rig, 1);
}

void rig_reconnect(struct rig *rig)
{
	rig_disconnect(rig);
	rig_connect(rig, RIG_SESSION);
	while (!lc_ready(&rig->lc))
		rig_answer_version(rig, 1);
	rig_prove(rig);
}

const char *rig_unanswered(const struct rig *rig)
{
	return rig->unanswered ? rig->unanswered->text : "";
}

void rig_answer(struct rig *rig, const struct ensemble_answer *answer)
{
	struct rig_request request, *first = rig->unanswered;

	assert_non_null(first);
	request = *first;
	DL_DELETE(rig->unanswered, first);
	free(first->text);
	free(first);
	request.answer(request.ctx, answer);
}

void rig_answer_error(struct rig *rig, enum ensemble_result result)
{
	rig_answer(rig, &(struct ensemble_answer){.result = result});
}

static struct ensemble_stat own_stat(int32_t version, int64_t czxid)
{
	return (struct ensemble_stat){
		.version = version, .czxid = czxid, .mzxid = czxid, .ephemeral_owner = RIG_SESSION};
}

void rig_answer_version(struct rig *rig, int32_t version)
{
	struct ensemble_stat stat = own_stat(version, 100);

	rig_answer(rig, &(struct ensemble_answer){.stat = &stat});
}

void rig_answer_data(struct rig *rig, int32_t version, const char *data)
{
	struct ensemble_stat stat = own_stat(version, 100);

	rig_answer(rig, &(struct ensemble_answer){
				.stat = &stat, .data = data, .data_len = (int)strlen(data)});
}

void rig_answer_created(struct rig *rig, const char *path, int64_t czxid)
{
	struct ensemble_stat stat = own_stat(0, czxid);

	rig_answer(rig, &(struct ensemble_answer){.path = path, .stat = &stat});
}

void rig_find_home(struct rig *rig)
{
	rig_answer(rig, &(struct ensemble_answer){.result = ENSEMBLE_OK});
	rig_answer_mark(rig, 50, RIG_NUMBER);
}

void rig_find_nothing(struct rig *rig)
{
	rig_answer(rig, &(struct ensemble_answer){.result = ENSEMBLE_OK});
	rig_answer_error(rig, ENSEMBLE_NONODE);
}

void rig_answer_mark(struct rig *rig, int64_t czxid, const char *number)
{
	struct ensemble_stat stat = {.czxid = czxid, .ctime_ms = 1600000000000};

	rig_answer(rig, &(struct ensemble_answer){
				.stat = &stat, .data = number, .data_len = (int)strlen(number)});
}

/* ---- what is expected ---- */

static void expect_text(char *list, const char *text)
{
	assert_string_equal(list, text);
	list[0] = '\0';
}

void rig_expect_sent(struct rig *rig, const char *text)
{
	expect_text(rig->sent, text);
}

void rig_expect_told(struct rig *rig, const char *text)
{
	expect_text(rig->told, text);
}

void rig_expect_sent_after(struct rig *rig, int64_t duration_us, const char *text)
{
	rig_run(rig, duration_us - 1);
	rig_expect_sent(rig, "");
	rig_run(rig, 1);
	rig_expect_sent(rig, text);
}

void rig_expect_told_after(struct rig *rig, int64_t duration_us, const char *text)
{
	rig_run(rig, duration_us - 1);
	rig_expect_told(rig, "");
	rig_run(rig, 1);
	rig_expect_told(rig, text);
}

void rig_forget(struct rig *rig)
{
	rig->sent[0] = rig->told[0] = rig->reported[0] = '\0';
}

void rig_expect_reported(struct rig *rig, const char *text)
{
	expect(strstr(rig->reported, text), "'%s' is not reported, but '%s'", text, rig->reported);
	rig->reported[0] = '\0';
}
