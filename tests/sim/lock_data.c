/* SPDX-License-Identifier: MIT
 *
 * lock_data.c - the data of locks: attributes, slots, the value. Somebody must have asked for each
 * committed change of it, and the change must have been made to the data right before: so no
 * update is lost when several are made at the same time. A value is written once at most, and
 * only while its writer's entry is there. A change that was refused is never made.
 */
#include "sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#define LAG_US 500000

/* ---- reading ---- */

/* The judge's own reading: lines, an empty one, the value. */
struct content {
	bool of_mount;
	unsigned slots;
	int64_t gid;
	const char *value;
	size_t len;
};

static bool number_line(const char *line, size_t len, const char *key, int64_t *ret_number)
{
	size_t n = strlen(key);
	int64_t number = 0;

	if (len <= n || memcmp(line, key, n) != 0)
		return false;
	for (size_t i = n; i < len; i++)
		number = number * 10 + (line[i] - '0');
	*ret_number = number;
	return true;
}

static struct content read_content(const char *data, int data_len)
{
	struct content content = {.slots = 1, .gid = -1, .value = data, .len = (size_t)data_len};
	const char *end = data + data_len, *line = data;

	if (data_len < 12 || memcmp(data, "zklockfs: 1\n", 12) != 0)
		return content;
	content.of_mount = true;
	while (line < end && *line != '\n') {
		const char *next = memchr(line, '\n', (size_t)(end - line));
		size_t len = (size_t)((next ? next : end) - line);
		int64_t number;

		if (number_line(line, len, "slots: ", &number))
			content.slots = (unsigned)number;
		number_line(line, len, "gid: ", &content.gid);
		line += len + (next != NULL);
	}
	line += line < end;
	content.value = line;
	content.len = (size_t)(end - line);
	return content;
}

unsigned lock_data_slots(const char *data, int len)
{
	return read_content(data, len).slots;
}

/* ---- the past ---- */

/* The data of a lock until some moment. A list, newest first; the first era lasts still. */
struct era {
	int64_t until_us;
	struct content content;
	struct era *before;
};

static void turn_over(struct sim *sim, struct lock_state *lock, const char *data, int len)
{
	struct era *era = arena_zalloc(&sim->arena, sizeof(*era));

	if (lock->eras)
		lock->eras->until_us = sim->agenda.now_us;
	era->until_us = INT64_MAX;
	era->content = read_content(data ? data : "", len);
	era->before = lock->eras;
	lock->eras = era;
}

void lock_data_begin(struct sim *sim)
{
	for (int i = 0; i < sim->plan.locks; i++) {
		struct node *node = tree_find(&sim->world.committed, sim->locks[i].path);

		turn_over(sim, &sim->locks[i], node->data, node->data_len);
	}
}

/* Whether a server that lags may answer a question with a state that ended at `until_us`. */
static bool may_show(struct mount *mount, int64_t asked_us, int64_t until_us)
{
	return until_us >= asked_us - LAG_US || mount_trouble(mount) >= asked_us - LAG_US;
}

/* A change reads behind a sync. */
static bool may_read(const struct deed *deed, int64_t until_us)
{
	return until_us >= deed->asked_us ||
	       (until_us >= 0 && mount_trouble(deed->mount) >= deed->asked_us - LAG_US);
}

static bool recent(const struct question *question, const struct era *era)
{
	return may_show(question->mount, question->asked_us, era->until_us);
}

bool lock_data_had_slots(const struct question *question, unsigned slots)
{
	const struct era *era;

	for (era = question->lock->eras; era && recent(question, era); era = era->before)
		if (era->content.slots == slots)
			return true;
	return false;
}

void lock_data_judge_slots(struct question *question, unsigned slots)
{
	if (!lock_data_had_slots(question, slots))
		sim_violation(question->sim, "f: lc_stat says that %s has %u slots",
		              question->lock->name, slots);
}

void lock_data_judge_value(struct question *question, const char *value, size_t len)
{
	const struct era *era;

	for (era = question->lock->eras; era && recent(question, era); era = era->before)
		if (era->content.len == len && !memcmp(era->content.value, value, len))
			return;
	sim_violation(question->sim, "f: lc_value says that %s has the value '%.*s'",
	              question->lock->name, (int)len, value);
}

/* ---- the deeds ---- */

static struct deed *deed_new(struct mount *mount, struct lock_state *lock)
{
	struct deed *deed = arena_zalloc(&mount->sim->arena, sizeof(*deed));

	deed->mount = mount;
	deed->asked_us = mount->sim->agenda.now_us;
	DL_APPEND(lock->deeds, deed);
	return deed;
}

struct deed *lock_data_change(struct mount *mount, struct lock_state *lock,
                              const struct lc_change *change)
{
	struct deed *deed = deed_new(mount, lock);

	deed->change = *change;
	return deed;
}

struct deed *lock_data_value(struct taker *taker, bool append)
{
	struct deed *deed = deed_new(taker->mount, taker->lock);

	deed->taker = taker;
	deed->append = append;
	deed->text = arena_printf(&taker->sim->arena, "<%d:%" PRIu64 ">", taker->pid,
	                          ++taker->sim->values);
	return deed;
}

static bool changes_to(const struct deed *deed, const struct content *was, const struct content *is)
{
	const struct lc_change *change = &deed->change;
	int64_t gid = change->set_gid || was->gid < 0 ? change->attributes.gid : was->gid;

	return is->slots == (change->slots ? change->slots : was->slots) && is->gid == gid &&
	       is->len == was->len && !memcmp(is->value, was->value, is->len);
}

static bool writes(const struct deed *deed, const struct content *was, const struct content *is)
{
	size_t kept = deed->append ? was->len : 0, len = strlen(deed->text);

	return is->slots == was->slots && is->gid == was->gid && is->len == kept + len &&
	       !memcmp(is->value, was->value, kept) && !memcmp(is->value + kept, deed->text, len);
}

static bool explains(const struct deed *deed, const struct content *was, const struct content *is)
{
	return deed->taker ? writes(deed, was, is) : changes_to(deed, was, is);
}

/* A lock that is removed and made again counts its versions from 0. A change may read the former
 * lock, and be written to the new one: ZooKeeper compares versions only. The answer of the write
 * shows the new lock, and the result is ENOENT. A value is written where its writer's entry is. */
static bool may_meet_another(const struct lock_state *lock, const struct deed *deed)
{
	return !deed->taker && may_read(deed, lock->absent_us);
}

/* The asker was told that the change was not made. */
static bool denied(const struct lock_state *lock, const struct deed *deed)
{
	return deed->answered && deed->err < 0 && deed->err != -EHOSTUNREACH &&
	       !(deed->err == -ENOENT && may_meet_another(lock, deed));
}

/* `again`: the value is the same as before. */
static void do_deed(struct sim *sim, struct lock_state *lock, struct deed *deed, bool again)
{
	if (denied(lock, deed))
		sim_violation(sim, "f: a change was refused with %d, and %s has it", deed->err,
		              lock->name);
	deed->done++;
	deed->done_in = lock->eras;
	if (!deed->taker)
		return;
	if (deed->done > 1 && !again)
		sim_violation(sim, "f: the value of taker %d is written to %s twice",
		              deed->taker->pid, lock->name);
	/* A transaction can only check that a node of that name is there; it may be a copy. */
	if (!judge_entry(&sim->world.committed, deed->taker) && !sim->plan.copies)
		sim_violation(sim, "a: the value of taker %d is written to %s, its entry is gone",
		              deed->taker->pid, lock->name);
}

/* For the choice among deeds that explain a change. A deed counts more if it was not denied; if it
 * does not write a value while the value stays the same; if it is of the session that has written;
 * if it is not answered yet; if it was not done yet. */
static int likely(const struct lock_state *lock, const struct deed *deed, int64_t writer,
                  bool same_value)
{
	return (denied(lock, deed) ? 0 : 16) + (same_value && deed->taker ? 0 : 8) +
	       (mount_session(deed->mount) == writer ? 4 : 0) +
	       (deed->answered || deed->cancelled ? 0 : 2) + (deed->done ? 0 : 1);
}

static bool more_likely(const struct lock_state *lock, const struct deed *deed,
                        const struct deed *than, int64_t writer, bool same_value)
{
	return !than ||
	       likely(lock, deed, writer, same_value) > likely(lock, than, writer, same_value);
}

/* The deed may have used data of a former lock of that name. */
static bool is_mistaken(const struct lock_state *lock, const struct deed *deed)
{
	const struct era *era;

	for (era = lock->eras->before;
	     era && may_read(deed, era->until_us) && may_meet_another(lock, deed);
	     era = era->before)
		if (explains(deed, &era->content, &lock->eras->content))
			return true;
	return false;
}

static struct deed *mistaken(const struct lock_state *lock, int64_t writer, bool same_value)
{
	struct deed *deed, *found = NULL;

	DL_FOREACH(lock->deeds, deed)
		if (more_likely(lock, deed, found, writer, same_value) && is_mistaken(lock, deed))
			found = deed;
	return found;
}

static void judge_change(struct sim *sim, struct lock_state *lock, int64_t writer,
                         const struct content *was, const struct content *is)
{
	struct deed *deed, *found = NULL, *other = NULL;
	bool same_value = was->len == is->len && !memcmp(was->value, is->value, is->len);

	DL_FOREACH(lock->deeds, deed)
		if (explains(deed, was, is) && more_likely(lock, deed, found, writer, same_value))
			found = deed;
	/* The former lock's data may be what a value made of data like the new one's. */
	if (!found || (found->taker && found->done && !same_value))
		other = mistaken(lock, writer, same_value);
	if (other)
		found = other;
	if (found)
		do_deed(sim, lock, found, same_value);
	else
		sim_violation(sim,
		              "f: %s had %u slots, gid %" PRId64 ", value '%.*s'; it has %u, "
		              "%" PRId64 ", '%.*s': nobody asked for that",
		              lock->name, was->slots, was->gid, (int)was->len, was->value,
		              is->slots, is->gid, (int)is->len, is->value);
}

static void note_change(struct sim *sim, struct lock_state *lock,
                        const struct transaction *transaction, const struct change *change)
{
	struct content was = lock->eras ? lock->eras->content : read_content("", 0);

	if (change->kind == CHANGE_DELETE)
		return;
	turn_over(sim, lock, change->data, change->data_len);
	if (change->kind == CHANGE_SET && !transaction->outside)
		judge_change(sim, lock, transaction->request->conn->session, &was,
		             &lock->eras->content);
}

void lock_data_committing(struct sim *sim, const struct transaction *transaction)
{
	for (int i = 0; i < sim->plan.locks; i++)
		for (int j = 0; j < transaction->count; j++)
			if (!strcmp(transaction->changes[j].path, sim->locks[i].path))
				note_change(sim, &sim->locks[i], transaction,
				            &transaction->changes[j]);
}

static bool did_the_same(const struct deed *deed, const struct era *era)
{
	return era->before && explains(deed, &era->before->content, &era->content);
}

/* A change that this deed has made may count for an equal deed that is not answered yet. */
static void take_over(struct lock_state *lock, struct deed *deed)
{
	struct deed *other;

	DL_FOREACH(lock->deeds, other)
		if (other != deed && !deed->taker && !other->taker && other->done &&
		    !other->answered && did_the_same(deed, other->done_in)) {
			other->done--;
			deed->done++;
			deed->done_in = other->done_in;
			return;
		}
}

bool lock_data_met_another(const struct question *question)
{
	struct deed *deed = question->deed;

	if (!deed || !may_meet_another(question->lock, deed))
		return false;
	if (!deed->done)
		take_over(question->lock, deed);
	return deed->done;
}

void lock_data_answered(struct question *question, int err)
{
	struct sim *sim = question->sim;
	struct deed *deed = question->deed;
	const struct content *now = &question->lock->eras->content;

	deed->answered = true;
	deed->err = err;
	if (err == 0 && !deed->done)
		take_over(question->lock, deed);
	if (err == 0 && !deed->done && !(deed->taker ? false : changes_to(deed, now, now)))
		sim_violation(sim, "f: a change of %s is confirmed, and was not made",
		              question->lock->name);
	if (deed->done && denied(question->lock, deed))
		sim_violation(sim, "f: %s was changed, and %d is told", question->lock->name, err);
}
