/* SPDX-License-Identifier: MIT
 *
 * make.c - making a lock, if there is room for it in the one above: see LC_BELOW_MAX. It is
 * not known which user has made which lock without reading each of them. So only their number
 * counts. The smaller limit is for users other than root and the owner of the lock above.
 *
 *   root, or directly below the root,
 *   or the caller has just read that
 *   few are in the lock above          CREATE
 *   others                             GET of the lock above: its owner, and how many children
 *                                      it has, entries among them ─► CREATE if that is few,
 *                                      or else CHILDREN: how many are locks ─► CREATE, EDQUOT
 */
#include "ask/authority.h"

#include "ask/call.h"
#include "lock/lock_watch.h"
#include "pure/node_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct make_call {
	struct lc_call call;
	char *above;    /* NULL: it is not looked at */
	unsigned limit; /* how many locks may be there already */
	char data[NODE_DATA_LOCK_MAX];
	size_t len;
};

static void make_finish(struct lc_call *call)
{
	free(((struct make_call *)call)->above);
}

/* Whatever becomes of the lock from now on, it was made. */
static void created(struct lc_call *call, const struct ensemble_answer *answer)
{
	struct make_call *make = (struct make_call *)call;
	struct lc_lock_info info;

	lock_info_read_data(&info, make->data, make->len);
	lock_info_read_stat(&info, answer->stat);
	call_end(call, 0, &info);
}

static void create(struct make_call *make)
{
	struct ensemble_op op = ensemble_create(make->call.path, make->data, make->len);

	call_send(&make->call, &op, 1, created, 0);
}

static void above_listed(struct reader *reader, struct reading *reading)
{
	struct lc_call *call = call_of(reader);
	struct make_call *make = (struct make_call *)call;
	unsigned count = 0;

	if (reading->error < 0) {
		call_fail(call, reading->error);
		return;
	}
	for (size_t i = 0; i < reading->name_count; i++)
		count += !name_is_numbered(reading->names[i]);
	if (count < make->limit)
		create(make);
	else
		call_fail(&make->call, -EDQUOT);
}

static unsigned limit_below(const struct lc *lc, const struct lc_lock_info *above, uid_t uid)
{
	const struct lc_attributes *owner =
		above->has_attributes ? &above->attributes : &lc->config.without;

	return authority_owns(owner, uid) ? LC_BELOW_OWNER_MAX : LC_BELOW_MAX;
}

static void check_above(struct lc_call *call, const struct ensemble_answer *answer)
{
	struct make_call *make = (struct make_call *)call;
	struct lc_lock_info above;

	lock_info_read_data(&above, answer->data, (size_t)answer->data_len);
	lock_info_read_stat(&above, answer->stat);
	make->limit = limit_below(call->lc, &above, call->uid);
	if (above.children < make->limit)
		create(make);
	else
		call_read(call, READING_QUEUE, make->above, above_listed);
}

static void make_ask(struct lc_call *call)
{
	struct make_call *make = (struct make_call *)call;

	if (make->above)
		call_get(call, make->above, check_above, 0);
	else
		create(make);
}

int lc_mkdir(struct lc *lc, const char *lock, const struct lc_attributes *attributes,
             const struct lc_lock_info *above, lc_stat_fn *made, void *ctx,
             struct lc_call **ret_call)
{
	const char *name = strrchr(lock, '/'), *why;
	struct make_call *make;
	uid_t uid = attributes->uid;
	bool looks = name && uid != 0 && !(above && above->children < limit_below(lc, above, uid));
	int r = lc_check_name(lc, name ? name + 1 : lock, &why);

	if (r == 0 && strlen(lc->root) + 1 + strlen(lock) > LC_PATH_MAX)
		r = -ENAMETOOLONG;
	if (r < 0)
		return r;
	make = call_new(struct make_call, .ask = make_ask, .tell = call_tell_stat,
	                .finish = make_finish, .uid = uid, .changes = true, .listener.stat = made,
	                .ctx = ctx);
	if (!make)
		return -ENOMEM;
	if (looks)
		make->above = lc_path_above(lc, lock);
	make->len = node_data_format_lock(make->data, attributes);
	if (!looks || make->above)
		make->call.path = lc_path(lc, lock);
	return call_begin(&make->call, lc, ret_call);
}
