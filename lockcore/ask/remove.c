/* SPDX-License-Identifier: MIT
 *
 * remove.c - the question that removes a lock: by its owner, by the owner of the lock above,
 * or by root, as the ensemble knows them at this moment. The write itself checks that the data
 * which told so is still the same.
 *
 *   root, and the caller has just read the lock ─────┐
 *                                                    ▼
 *   lock read ──owner, root────────────────────────► delete ──► done
 *        │                                            ▲   │ not empty
 *        └─ another ─► lock above read ─its owner─────┘   ▼
 *                                                      listed: the node that mounts have
 *                                                      left there goes, or why it cannot be
 */
#include "ask/authority.h"

#include "ask/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct remove_call {
	struct lc_call call;
	char *above;     /* the lock above; NULL: it stands in the root */
	int32_t version; /* of the lock, when it was read */
	bool at_once;    /* it is not read: its data does not matter */
};

static void remove_finish(struct lc_call *call)
{
	free(((struct remove_call *)call)->above);
}

/* ---- why it could not be deleted ---- */

static void dir_deleted(struct lc_call *call, const struct ensemble_answer *answer)
{
	if (answer->result == ENSEMBLE_NOTEMPTY)
		call_fail(call, -EBUSY); /* a mount has it as its root */
	else
		call_ask(call);
}

/* Deletes the node that the lock has since it was the root of a mount. */
static void delete_dir(struct lc_call *call)
{
	char *path = path_join(call->path, ROOT_DIR);
	struct ensemble_op op = ensemble_delete(path, ENSEMBLE_ANY_VERSION);

	if (path)
		call_send(call, &op, 1, dir_deleted,
		          MEANT(ENSEMBLE_NOTEMPTY) | MEANT(ENSEMBLE_NONODE));
	else
		call_fail(call, -ENOMEM);
	free(path);
}

static void remains_listed(struct reader *reader, struct reading *reading)
{
	struct lc_call *call = call_of(reader);
	bool busy = false, below = false;

	if (reading->error < 0) {
		call_fail(call, reading->error);
		return;
	}
	for (size_t i = 0; i < reading->name_count; i++) {
		busy |= name_is_numbered(reading->names[i]);
		below |= strcmp(reading->names[i], ROOT_DIR) != 0;
	}
	if (reading->name_count == 0)
		call_ask(call); /* the locks or entries below have gone meanwhile */
	else if (below)
		call_fail(call, busy ? -EBUSY : -ENOTEMPTY);
	else
		delete_dir(call);
}

/* ---- deleting it ---- */

static void lock_deleted(struct lc_call *call, const struct ensemble_answer *answer)
{
	if (answer->result == ENSEMBLE_NOTEMPTY)
		call_read(call, READING_QUEUE, call->path, remains_listed);
	else
		call_end(call, 0, NULL);
}

/* `above`: the lock above as it was read, if the right to remove comes from there. */
static void delete_lock(struct remove_call *remove, const struct ensemble_stat *above)
{
	struct ensemble_op ops[] = {
		{.kind = ENSEMBLE_DELETE, .path = remove->call.path, .version = remove->version},
		{.kind = ENSEMBLE_CHECK,
	         .path = remove->above,
	         .version = above ? above->version : 0},
	};

	call_send(&remove->call, ops, above ? 2 : 1, lock_deleted, MEANT(ENSEMBLE_NOTEMPTY));
}

/* ---- who may ---- */

static void check_owner_above(struct lc_call *call, const struct ensemble_answer *answer)
{
	struct remove_call *remove = (struct remove_call *)call;
	struct lc_attributes above;

	authority_read(remove->call.lc, answer, &above);
	if (authority_owns(&above, remove->call.uid))
		delete_lock(remove, answer->stat);
	else
		call_fail(&remove->call, -EPERM);
}

static void check_lock(struct lc_call *call, const struct ensemble_answer *answer)
{
	struct remove_call *remove = (struct remove_call *)call;
	struct lc_attributes now;

	authority_read(call->lc, answer, &now);
	remove->version = answer->stat->version;
	if (answer->stat->ephemeral_owner != 0)
		call_fail(call, -ENOENT); /* an entry, not a lock */
	else if (authority_owns(&now, remove->call.uid) ||
	         (!remove->above && remove->call.uid == call->lc->config.uid))
		delete_lock(remove, NULL);
	else if (!remove->above)
		call_fail(call, -EPERM);
	else
		call_get(call, remove->above, check_owner_above, 0);
}

static void remove_ask(struct lc_call *call)
{
	struct remove_call *remove = (struct remove_call *)call;

	if (remove->at_once)
		delete_lock(remove, NULL);
	else
		call_get(call, call->path, check_lock, 0);
}

int lc_rmdir(struct lc *lc, const char *lock, uid_t by, const struct lc_lock_info *seen,
             lc_done_fn *done, void *ctx, struct lc_call **ret_call)
{
	struct remove_call *remove = call_new(
		struct remove_call, .ask = remove_ask, .tell = call_tell_done, .uid = by,
		.finish = remove_finish, .changes = true, .listener.done = done, .ctx = ctx);
	const char *slash = strrchr(lock, '/');

	if (!remove)
		return -ENOMEM;
	remove->at_once = seen && by == 0;
	remove->version = ENSEMBLE_ANY_VERSION;
	if (slash)
		remove->above = lc_path_above(lc, lock);
	if (!slash || remove->above)
		remove->call.path = lc_path(lc, lock);
	return call_begin(&remove->call, lc, ret_call);
}
