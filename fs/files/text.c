/* SPDX-License-Identifier: MIT
 *
 * text.c - files that are read as text, as it was at the moment of opening; and those
 * that are written to, one command with each write: `slots`, `value` (value.c), and
 * `evict` to an entry of the queue.
 */
#include "files/text.h"

#include "files/lists.h"
#include "guard/guardian.h"
#include "hold/hold.h"
#include "hold/linger.h"
#include "host/clock.h"
#include "host/log.h"
#include "host/process.h"
#include "host/row.h"
#include "request/frontend.h"
#include "request/parked.h"
#include "setup/servers.h"
#include "setup/settings.h"
#include "tree/fixed.h"
#include "tree/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <utlist.h>

static const struct file_ops text_ops;

static struct text_file *text_of(struct open_file *file)
{
	return (struct text_file *)file;
}

/* ---- the facts of the mount, learnt when a file of .zklockfs is opened ---- */

/* Holds are in the order of their grants. */
static int64_t find_oldest_hold(const struct frontend *front, int64_t now)
{
	const struct hold *hold;

	DL_FOREACH(front->holds->held, hold)
		if (hold->audit.granted_us != 0) /* not lost */
			return now - hold->audit.granted_us;
	return 0;
}

/* A wait that a signal has interrupted goes on behind those that came meanwhile. */
static int64_t find_oldest_wait(const struct frontend *front, int64_t now)
{
	const struct hold *hold;
	int64_t oldest = 0;

	DL_FOREACH(front->holds->waiting, hold)
		if (now - hold->audit.asked_us > oldest)
			oldest = now - hold->audit.asked_us;
	return oldest;
}

static unsigned count_kept(const struct frontend *front)
{
	const struct lingering *lingering;
	unsigned count;

	DL_COUNT(front->holds->linger.lists[LINGERS_KEPT], lingering, count);
	return count;
}

/* The engine's clock goes on while the machine is suspended, as the wall clock does. */
static int64_t wall_time_ms(const struct frontend *front, int64_t at_us)
{
	int64_t ago_us = front->clock_us() - at_us;

	return at_us < 0 ? -1 : (clock_read_ns(CLOCK_REALTIME) / 1000 - ago_us) / 1000;
}

static int64_t ensemble_ahead_ms(const struct frontend *front)
{
	int64_t now_ms = clock_read_ns(CLOCK_REALTIME) / 1000000;

	return lc_ensemble_ms(front->lc, now_ms) - now_ms;
}

static uint64_t pid_namespace(void)
{
	struct stat stat_of;

	return stat("/proc/self/ns/pid", &stat_of) == 0 ? stat_of.st_ino : 0;
}

static void learn_processes(const struct frontend *front, struct facts *facts)
{
	struct guardian_counts stops = guardian_counts(front->guardian);

	log_count();
	facts->counts = counted;
	facts->terms = stops.terms;
	facts->kills = stops.kills;
	facts->spared = stops.spared;
	facts->looks_ended = stops.looks_ended;
	facts->guardian_up = front->guardian ? guardian_fd(front->guardian) >= 0 : -1;
}

static void learn_holds(const struct frontend *front, struct facts *facts)
{
	int64_t now = front->clock_us();

	facts->history = &front->holds->audit_log.history;
	facts->oldest_hold_us = find_oldest_hold(front, now);
	facts->oldest_wait_us = find_oldest_wait(front, now);
	facts->kept = count_kept(front);
}

/* Fills the facts, and has `view` write its text from them. 0 or -errno: those of `view`. */
static int about_text(struct frontend *front, uid_t reader, view_fn *view, struct text *ret_text)
{
	char watched_by[64], left_out[1024], wrong[1024], version[128];
	const struct servers *servers = front->facts.servers;
	const struct settings *settings = front->facts.settings;
	struct facts facts = {
		.mount = front->facts,
		.reader = reader,
		.addresses = servers->addresses,
		.left_out = servers_problems(servers, left_out, sizeof(left_out)),
		.tried = servers->tried,
		.clock_watched_by = watched_by,
		.tick_time_by = settings_tick_by(settings),
		.wrong_servers = settings_wrong(settings, wrong, sizeof(wrong)),
		.server_version = settings_judge_version(settings, version, sizeof(version)),
		.ensemble_ahead_ms = ensemble_ahead_ms(front),
		.pid_namespace = pid_namespace(),
		.open_bytes = front->files.bytes,
	};

	lc_status(front->lc, &facts.engine);
	if (facts.engine.resting || facts.engine.leaseless)
		facts.engine.lease_left_us = -1; /* whoever watches it raises no alarm */
	facts.away_since_ms = wall_time_ms(front, facts.engine.away_us);
	pauses_names(&front->pauses, watched_by, sizeof(watched_by));
	learn_processes(front, &facts);
	learn_holds(front, &facts);
	return view(&facts, ret_text);
}

/* ---- opening ---- */

void text_reply(struct frontend *front, struct request *req, struct node *node, const char *text,
                size_t len, int64_t czxid)
{
	uid_t uid = req->in.uid;
	struct open_file *file = open_file_new(front, &text_ops, node, uid);
	int r = file ? 0 : -errno;

	if (file)
		text_of(file)->czxid = czxid;
	if (file && text) {
		text_of(file)->content = content_get(&front->contents, node, uid, text, len);
		r = text_of(file)->content ? 0 : -errno;
	}
	reply_open(req, file, r);
}

/* An OPEN whose text has to be asked for. */
struct opening {
	struct parked parked;
	/* Only if the text is about an entry: */
	int64_t renewed_ago_ms; /* lc_renewed(); -1: not known */
	int64_t asked_us;       /*   when that was asked */
};

static void reply_opening(struct opening *opening, const char *text, size_t len, int64_t czxid)
{
	struct parked *parked = &opening->parked;

	text_reply(parked->front, parked->req, parked->node, text, len, czxid);
	parked_free(parked);
}

static void reply_infos(struct opening *opening, const struct lc_entry_info *infos, size_t count)
{
	struct parked *parked = &opening->parked;
	struct text text = {0};
	int r = parked->node->kind == NODE_HOLDER
	                ? view_holders(infos, count, &text)
	                : view_entry(&infos[0], opening->renewed_ago_ms, &text);

	if (r == 0)
		reply_opening(opening, text.data, text.len, 0);
	else
		parked_error(parked, r);
	free(text.data);
}

static void entries_read(void *ctx, int err, const struct lc_entry_info *infos, size_t count)
{
	if (unpark_succeeded(ctx, err))
		reply_infos(ctx, infos, count);
}

static void value_read(void *ctx, int err, const char *value, size_t len)
{
	if (unpark_succeeded(ctx, err))
		reply_opening(ctx, len > 0 ? value : "", len, 0);
}

static void value_opened_empty(void *ctx, int err)
{
	if (unpark_succeeded(ctx, err))
		reply_opening(ctx, "", 0, 0);
}

static void slots_read(void *ctx, int err, const struct lc_lock_info *info)
{
	char text[16];

	if (unpark_succeeded(ctx, err))
		reply_opening(ctx, text, (size_t)snprintf(text, sizeof(text), "%u\n", info->slots),
		              info->czxid);
}

static void about_open(struct frontend *front, struct request *req, struct node *node,
                       view_fn *view)
{
	struct text text = {0};
	int r = about_text(front, req->in.uid, view, &text);

	if (r < 0)
		reply_err(req, -r);
	else
		text_reply(front, req, node, text.data, text.len, 0);
	free(text.data);
}

static int ask_info(struct opening *opening)
{
	struct parked *parked = &opening->parked;
	const struct node *node = parked->node;

	return lc_entries(parked->front->lc, node->lock, parked_uid(parked), node->znode, NULL, 0,
	                  entries_read, opening, &parked->call);
}

static int64_t ago_ms(const struct frontend *front, int64_t then_ms)
{
	int64_t now_ms = clock_read_ns(CLOCK_REALTIME) / 1000000;
	int64_t ago = lc_ensemble_ms(front->lc, now_ms) - then_ms;

	return ago > 0 ? ago : 0;
}

/* The entry as its look-up has read it a moment ago, or NULL. */
static const struct lc_entry_info *looked_up(const struct frontend *front, const struct node *node)
{
	const struct node *queue = node->parent;
	const struct lc_entry_info *info =
		queue && queue->snapshot
			? snapshot_info(queue->snapshot, node->name, front->clock_us())
			: NULL;

	return info && strcmp(info->entry.znode, node->znode) == 0 ? info : NULL;
}

static struct life *life_of(const struct frontend *front, const struct lc_entry_info *info)
{
	return &front->lists->lives[(uint64_t)info->session % LIVES_MAX];
}

static void reply_looked_up(struct opening *opening, const struct lc_entry_info *info)
{
	struct node *queue = opening->parked.node->parent;
	char name[QUEUE_NAME_MAX + 1];

	snapshot_name(name, &info->entry);
	reply_infos(opening, info, 1);
	snapshot_told(queue->snapshot, name);
}

static void renewed_read(void *ctx, int err, int64_t renewed_ms)
{
	struct opening *opening = ctx;
	struct parked *parked = ctx;
	const struct frontend *front = parked->front;
	const struct lc_entry_info *info = looked_up(front, parked->node);

	unpark(parked);
	if (err < 0 && err != -ENOENT) {
		parked_error(parked, err);
		return;
	}
	if (err == 0)
		opening->renewed_ago_ms = ago_ms(front, renewed_ms);
	if (info)
		*life_of(front, info) = (struct life){info->session, renewed_ms, opening->asked_us};
	if (info)
		reply_looked_up(opening, info);
	else
		park_call(parked, ask_info(opening));
}

/* Asks first whether the mount of the entry is alive. */
static void ask_one_entry(struct opening *opening)
{
	struct parked *parked = &opening->parked;
	const struct frontend *front = parked->front;
	const struct node *node = parked->node;
	const struct lc_entry_info *info = looked_up(front, node);
	const struct life *life = info ? life_of(front, info) : NULL;
	int r;

	opening->renewed_ago_ms = -1;
	opening->asked_us = front->clock_us();
	if (life && life->session == info->session &&
	    opening->asked_us - life->asked_us < SNAPSHOT_OPEN_US) {
		if (life->renewed_ms >= 0)
			opening->renewed_ago_ms = ago_ms(front, life->renewed_ms);
		reply_looked_up(opening, info);
		return;
	}
	r = lc_renewed(front->lc, node->lock, parked_uid(parked), node->znode, renewed_read,
	               opening, &parked->call);
	if (r == -EINVAL && info)
		reply_looked_up(opening, info);
	else
		park_call(parked, r == -EINVAL ? ask_info(opening) : r);
}

static int ask_for(struct opening *opening)
{
	struct parked *parked = &opening->parked;
	struct lc *lc = parked->front->lc;
	struct node *node = parked->node;

	if (node->kind == NODE_VALUE)
		return lc_value(lc, node->lock, parked_uid(parked), value_read, opening,
		                &parked->call);
	if (node->kind == NODE_SLOTS)
		return lc_stat(lc, node->lock, parked_uid(parked), slots_read, opening,
		               &parked->call);
	return ask_info(opening);
}

static bool is_writable(const struct node *node)
{
	return node->kind == NODE_VALUE || node->kind == NODE_SLOTS || node->kind == NODE_ENTRY ||
	       node->kind == NODE_OPTIONS;
}

void text_open(struct frontend *front, struct request *req, struct node *node, int flags)
{
	const struct fixed_file *fixed = fixed_of(node->kind);
	int access = flags & O_ACCMODE;
	struct opening *opening;

	if (access != O_RDONLY && !is_writable(node)) {
		reply_err(req, EPERM);
		return;
	}
	if (node->kind == NODE_VALUE && (flags & O_TRUNC)) {
		opening = park(front, req, node, sizeof(*opening));
		if (opening)
			park_change(&opening->parked,
			            value_empty(&opening->parked, value_opened_empty));
		return;
	}
	/* The lock that `slots` belongs to has to be asked for. */
	if (access == O_WRONLY && node->kind != NODE_SLOTS) {
		text_reply(front, req, node, NULL, 0, 0);
		return;
	}
	if (fixed && fixed->view) {
		about_open(front, req, node, fixed->view);
		return;
	}
	opening = park(front, req, node, sizeof(*opening));
	if (opening && node->kind == NODE_ENTRY)
		ask_one_entry(opening);
	else if (opening)
		park_call(&opening->parked, ask_for(opening));
}

static void text_read(struct open_file *file, struct request *req, size_t size, off_t off)
{
	const struct content *text = text_of(file)->content;
	size_t left = text && (size_t)off < text->len ? text->len - (size_t)off : 0;

	reply_buf(req, left ? text->data + off : NULL, size < left ? size : left);
}

/* ---- writing ---- */

static void command_written(void *ctx, int err)
{
	const struct text_write *write = ctx;

	if (!unpark_succeeded(ctx, err))
		return;
	reply_write(write->parked.req, write->size);
	parked_free(ctx);
}

static void slots_written(void *ctx, int err, const struct lc_lock_info *info)
{
	(void)info;
	command_written(ctx, err);
}

/* Reads digits, with a newline behind them or none. */
static bool read_slots(const char *data, size_t size, unsigned *ret_slots)
{
	unsigned slots = 0;

	if (size > 0 && data[size - 1] == '\n')
		size--;
	if (size == 0)
		return false;
	for (size_t i = 0; i < size; i++) {
		if (data[i] < '0' || data[i] > '9')
			return false;
		slots = slots * 10 + (unsigned)(data[i] - '0');
		if (slots > LC_SLOTS_MAX)
			return false;
	}
	*ret_slots = slots;
	return slots > 0;
}

/* The file may have been opened long ago: the engine checks the lock's owner, and whether it is the
 * same lock, now. */
static int write_slots(struct parked *parked, const struct text_file *file, const char *data,
                       size_t size)
{
	struct lc_change change = {.by = parked->by, .czxid = file->czxid};

	if (!read_slots(data, size, &change.slots))
		return -EINVAL;
	return lc_change(parked->front->lc, parked->node->lock, &change, slots_written, parked,
	                 &parked->call);
}

/* lc_evict() checks who asks: the taker of the entry, the owner of the lock, and root may. */
int evict_entry(struct parked *parked, lc_done_fn *done)
{
	const struct node *node = parked->node;
	struct process caller;
	char command[ROW_WORD_MAX(LC_COMMAND_MAX) + 1], name[128];

	process_see((pid_t)parked->req->in.pid, &caller);
	/* Nothing else shall look like what follows the command. */
	snprintf(name, sizeof(name), "uid %u pid %d (%s) on %s", (unsigned)parked->by,
	         (int)caller.pid, row_only(command, sizeof(command), caller.command),
	         parked->front->facts.host);
	return lc_evict(
		parked->front->lc, node->lock, node->znode,
		&(struct lc_evictor){.uid = parked->by, .name = name, .token = node->entry.token},
		done, parked, &parked->call);
}

static int write_entry(struct parked *parked, const char *data, size_t size)
{
	if (size > 0 && data[size - 1] == '\n')
		size--;
	if (size != strlen("evict") || memcmp(data, "evict", size) != 0)
		return -EINVAL;
	return evict_entry(parked, command_written);
}

/* A process that could not open the file may have been handed it: so the user is checked here. */
static void write_options(const struct frontend *front, struct request *req, const char *data,
                          size_t size)
{
	int r = req->in.uid == 0 || req->in.uid == front->uid
	                ? front->change(front->change_ctx, data, size)
	                : -EPERM;

	if (r < 0)
		reply_err(req, -r);
	else
		reply_write(req, size);
}

static void text_write(struct open_file *file, struct request *req, const char *data, size_t size,
                       off_t off)
{
	const struct node *node = file->node;
	struct text_write *write;

	if (node->kind == NODE_VALUE) {
		value_write(text_of(file), req, data, size, off);
		return;
	}
	if (node->kind == NODE_OPTIONS) {
		write_options(file->front, req, data, size);
		return;
	}
	if (!is_writable(node)) {
		reply_err(req, EPERM);
		return;
	}
	write = park_by(file->front, req, file->node, sizeof(*write), budget_uid(file));
	if (!write)
		return;
	write->size = size;
	park_change(&write->parked, node->kind == NODE_SLOTS
	                                    ? write_slots(&write->parked, text_of(file), data, size)
	                                    : write_entry(&write->parked, data, size));
}

/* ---- the kind ---- */

static void text_close(struct open_file *file)
{
	content_drop(text_of(file)->content);
}

static void text_save_load(struct codec *codec, struct open_file *base)
{
	struct text_file *file = text_of(base);

	file->content = content_save_load(codec, &base->front->contents, file->content);
	CODEC_64(codec, file->czxid);
	CODEC_BOOL(codec, file->written);
}

static const struct file_ops text_ops = {
	.size = sizeof(struct text_file),
	.kind_of_record = RECORD_TEXT,
	.read = text_read,
	.write = text_write,
	.close = text_close,
	.save_load = text_save_load,
};

void text_record_save_load(struct codec *codec, void *front, struct record *record)
{
	open_file_record_save_load(codec, front, &text_ops, record);
}
