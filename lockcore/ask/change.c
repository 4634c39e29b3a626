/* SPDX-License-Identifier: MIT
 *
 * change.c - questions that write: a lock's attributes, slots and value; and whether an entry is
 * still there, which only a write can tell.
 *
 * Attributes, slots and value are in the data of the lock's node, which several hosts may change.
 * So the data is read, changed, and written only if its version is still the same; otherwise all is
 * done again. That may also be done when an answer was lost, except for a value: then the data is
 * read first, to see whether the value was written.
 */
#include "ask/authority.h"

#include "ask/call.h"
#include "lock/lock_watch.h"
#include "pure/node_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- a lock's data ---- */

struct data_call {
	struct lc_call call;
	struct lc_change change;
	struct lc_lock_info info; /* what the data says by now */
	/* The value that a taker writes. */
	char *value;
	size_t value_len;
	bool append;
	/* Sent, and not answered: the whole value, and which version it was to replace. */
	char *meant;
	size_t meant_len;
	int32_t version;
	int64_t czxid; /* of the lock that was read */
};

static void data_finish(struct lc_call *call)
{
	struct data_call *change = (struct data_call *)call;

	free(change->value);
	free(change->meant);
}

static void tell_change(struct lc_call *call, int error, void *info)
{
	if (error < 0 && call->maybe_done)
		error = -EHOSTUNREACH;
	if (call->taker)
		call_tell_done(call, error, NULL);
	else
		call_tell_stat(call, error, info);
}

/* `stat`: of the lock whose data that is. Whatever becomes of it from now on, it was changed. */
static void change_succeed(struct data_call *change, const struct ensemble_stat *stat)
{
	if (!change->call.taker)
		lock_info_read_stat(&change->info, stat);
	call_end(&change->call, 0, &change->info);
}

static struct lc_attributes changed_attributes(const struct lc_change *change,
                                               const struct lc_attributes *now)
{
	const struct lc_attributes *set = &change->attributes;

	return (struct lc_attributes){
		.uid = change->set_uid ? set->uid : now->uid,
		.gid = change->set_gid ? set->gid : now->gid,
		.mode = change->set_mode ? set->mode : now->mode,
		.lock_file_mode =
			change->set_lock_file_mode ? set->lock_file_mode : now->lock_file_mode,
	};
}

static int new_attributes(const struct data_call *change, const struct ensemble_answer *answer,
                          char **ret_data, size_t *ret_len)
{
	struct lc_attributes now, attributes;
	struct node_data_lock lock = {.attributes = &attributes};
	size_t len = (size_t)answer->data_len;
	unsigned slots = change->change.slots;

	authority_read(change->call.lc, answer, &now);
	attributes = changed_attributes(&change->change, &now);
	node_data_value(answer->data, len, &lock.value, &lock.value_len);
	lock.slots = slots ? slots : node_data_slots(answer->data, len);
	return node_data_rewrite_lock(answer->data, len, &lock, ret_data, ret_len);
}

static int new_value(struct data_call *change, const struct ensemble_answer *answer,
                     char **ret_data, size_t *ret_len)
{
	size_t len = (size_t)answer->data_len, old_len;
	struct lc_attributes attributes;
	struct node_data_lock lock;
	const char *old;
	bool known = node_data_parse_lock(answer->data, len, &attributes);

	node_data_value(answer->data, len, &old, &old_len);
	if (!change->append)
		old_len = 0;
	if (old_len + change->value_len > LC_VALUE_MAX)
		return -EFBIG;
	free(change->meant);
	change->meant_len = old_len + change->value_len;
	change->meant = malloc(change->meant_len + 1);
	if (!change->meant)
		return -ENOMEM;
	if (old_len > 0)
		memcpy(change->meant, old, old_len);
	if (change->value_len > 0)
		memcpy(change->meant + old_len, change->value, change->value_len);
	lock = (struct node_data_lock){.attributes = known ? &attributes : NULL,
	                               .slots = node_data_slots(answer->data, len),
	                               .value = change->meant,
	                               .value_len = change->meant_len};
	return node_data_rewrite_lock(answer->data, len, &lock, ret_data, ret_len);
}

enum fate { HAPPENED, DID_NOT, NOBODY_KNOWS };

/* Whether the value that was written and not answered is there. To write it again might undo
 * what another holder, of another slot, has written since. */
static enum fate fate_of_value(const struct data_call *change, const struct ensemble_answer *answer)
{
	const char *now;
	size_t len;

	if (answer->stat->version == change->version)
		return DID_NOT;
	node_data_value(answer->data, (size_t)answer->data_len, &now, &len);
	if (len == change->meant_len && memcmp(now, change->meant, len) == 0)
		return HAPPENED;
	if (len == change->meant_len - change->value_len && memcmp(now, change->meant, len) == 0)
		return DID_NOT; /* somebody has changed something else */
	return NOBODY_KNOWS;
}

/* The version was the same, and nothing else is compared: this lock has got the data of the former
 * one, with its value. */
static bool went_elsewhere(const struct data_call *change, const struct ensemble_answer *answer)
{
	if (change->call.taker || answer->stat->czxid == change->czxid)
		return false;
	lc_report(change->call.lc, LC_WARNING,
	          "%s was removed and made again: a change meant for the former "
	          "lock was written to this one; check its owner, modes, slots and value",
	          change->call.path);
	return true;
}

static void data_written(struct lc_call *call, const struct ensemble_answer *answer)
{
	struct data_call *change = (struct data_call *)call;

	if (answer->result == ENSEMBLE_NONODE) {
		lock_want_list(call->taker->entry.lock);
		call_fail(call, -EIO);
	} else if (went_elsewhere(change, answer)) {
		call_fail(call, -ENOENT);
	} else {
		change_succeed(change, answer->stat);
	}
}

static void write_data(struct data_call *change, const char *data, size_t len)
{
	struct lc_call *call = &change->call;
	struct ensemble_op set = ensemble_set(call->path, data, len, change->version);

	if (call->taker)
		call_send_held(call, set, data_written, MEANT(ENSEMBLE_NONODE));
	else
		call_send(call, &set, 1, data_written, 0);
}

static bool is_same(const struct lc_attributes *a, const struct lc_attributes *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->mode == b->mode &&
	       a->lock_file_mode == b->lock_file_mode;
}

/* The lock's owner may change it, but not give it away. */
static bool may_change(const struct lc_attributes *now, const struct lc_change *change)
{
	bool gives_away = change->set_uid && change->attributes.uid != now->uid;

	return change->by == 0 || (authority_owns(now, change->by) && !gives_away);
}

/* 0, or the reason why it is not to be changed; 1: there is nothing to change, and the data is
 * another client's. */
static int check_change(const struct data_call *call, const struct ensemble_answer *answer)
{
	const struct lc_change *change = &call->change;
	struct lc_attributes now, wanted;

	if (change->czxid && answer->stat->czxid != change->czxid)
		return -ENOENT; /* another lock under that name */
	authority_read(call->call.lc, answer, &now);
	if (!may_change(&now, change))
		return -EPERM;
	if (!node_data_is_foreign(answer->data, (size_t)answer->data_len))
		return 0;
	wanted = changed_attributes(change, &now);
	return change->slots || !is_same(&wanted, &now) ? -EPERM : 1;
}

/* The same of a value that its holder writes. */
static int check_value(const struct data_call *call, const struct ensemble_answer *answer)
{
	if (!lc_holds(call->call.taker) || !taker_holds_entry(call->call.taker))
		return -EIO;
	return node_data_is_foreign(answer->data, (size_t)answer->data_len) ? -EPERM : 0;
}

static void data_read(struct lc_call *call, const struct ensemble_answer *answer)
{
	struct data_call *change = (struct data_call *)call;
	char *data;
	size_t len;
	int r;

	if (answer->stat->ephemeral_owner != 0) {
		call_fail(call, -ENOENT); /* an entry, not a lock */
		return;
	}
	r = call->taker ? check_value(change, answer) : check_change(change, answer);
	if (r < 0) {
		call_fail(call, r);
		return;
	}
	if (r > 0) {
		lock_info_read_data(&change->info, answer->data, (size_t)answer->data_len);
		change_succeed(change, answer->stat);
		return;
	}
	if (call->maybe_done && call->taker)
		switch (fate_of_value(change, answer)) {
		case HAPPENED:
			change_succeed(change, answer->stat);
			return;
		case NOBODY_KNOWS:
			call_fail(call, -EHOSTUNREACH);
			return;
		case DID_NOT:
			call->maybe_done = false;
			break;
		}
	r = call->taker ? new_value(change, answer, &data, &len)
	                : new_attributes(change, answer, &data, &len);
	if (r < 0) {
		call_fail(call, r);
		return;
	}
	/* Also when it is the same already: the server that was asked may lag behind. */
	change->version = answer->stat->version;
	change->czxid = answer->stat->czxid;
	lock_info_read_data(&change->info, data, len);
	write_data(change, data, len);
	free(data);
}

/* The version does not tell one lock from the next of that name. A holder's entry does; without it
 * the lock is read as late as possible. */
static void data_ask(struct lc_call *call)
{
	if (!call->taker)
		batch_submit(call->lc, ensemble_sync(call->path), lc_ignore, NULL);
	call_get(call, call->path, data_read, 0);
}

static struct data_call *new_data_call(char *path, struct lc_taker *taker, uid_t uid, void *ctx)
{
	return call_new(struct data_call, .ask = data_ask, .tell = tell_change,
	                .finish = data_finish, .repeatable = true, .path = path, .taker = taker,
	                .uid = uid, .changes = true, .ctx = ctx);
}

int lc_change(struct lc *lc, const char *lock, const struct lc_change *change, lc_stat_fn *changed,
              void *ctx, struct lc_call **ret_call)
{
	struct data_call *call;

	if (change->slots > LC_SLOTS_MAX)
		return -EINVAL;
	call = new_data_call(lc_path(lc, lock), NULL, change->by, ctx);
	if (!call)
		return -ENOMEM;
	call->call.listener.stat = changed;
	call->change = *change;
	return call_begin(&call->call, lc, ret_call);
}

int lc_set_value(struct lc_taker *holder, const char *value, size_t len, bool append,
                 lc_done_fn *done, void *ctx, struct lc_call **ret_call)
{
	const struct lock *lock = holder->entry.lock;
	struct data_call *call;

	if (len > LC_VALUE_MAX)
		return -EFBIG;
	if (!lc_holds(holder))
		return -EIO;
	call = new_data_call(strdup(lock->path), holder, holder->entry.data.uid, ctx);
	if (!call)
		return -ENOMEM;
	call->call.listener.done = done;
	call->value = malloc(len + 1);
	if (!call->value) {
		free(call->call.path);
		free(call);
		return -ENOMEM;
	}
	if (len > 0)
		memcpy(call->value, value, len);
	call->value_len = len;
	call->append = append;
	return call_begin(&call->call, lock->lc, ret_call);
}

/* ---- confirm ---- */

/* One transaction that writes: a read could be answered by a follower that is cut
 * off, seconds after the lock was given away. */
static void confirm_answered(struct lc_call *call, const struct ensemble_answer *answer)
{
	if (answer->result == ENSEMBLE_REFUSED) {
		heartbeat_send(call->lc); /* it finds out why, and this is asked again after it */
	} else if (answer->result == ENSEMBLE_NONODE && call->taker->state == TAKER_HELD) {
		/* The entry, or our heartbeat node: the listing tells the first, the
		 * next heartbeat makes the second again, then we ask again. */
		lock_want_list(call->taker->entry.lock);
		session_node_lost(call->lc);
	} else {
		call_end(call, answer->result == ENSEMBLE_OK && lc_holds(call->taker) ? 0 : -EIO,
		         NULL);
	}
}

static void confirm_ask(struct lc_call *call)
{
	struct ensemble_op beat =
		ensemble_set(call->lc->session->node.path, "", 0, ENSEMBLE_ANY_VERSION);

	if (!lc_holds(call->taker) || !taker_holds_entry(call->taker)) {
		call_fail_soon(call, -EIO);
		return;
	}
	/* The check says that a node of this name is there; the watch, that it is the entry. */
	entry_watch(&call->taker->entry);
	call_send_held(call, beat, confirm_answered,
	               MEANT(ENSEMBLE_REFUSED) | MEANT(ENSEMBLE_NONODE));
}

int lc_confirm(struct lc_taker *taker, lc_done_fn *done, void *ctx, struct lc_call **ret_call)
{
	const struct lock *lock = taker->entry.lock;

	if (!lc_holds(taker))
		return -EIO;
	return call_begin(call_new(struct lc_call, .ask = confirm_ask, .tell = call_tell_done,
	                           .repeatable = true, .path = strdup(lock->path), .taker = taker,
	                           .uid = taker->entry.data.uid, .changes = true,
	                           .listener.done = done, .ctx = ctx),
	                  lock->lc, ret_call);
}
