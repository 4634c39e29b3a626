/* SPDX-License-Identifier: MIT */
#include "pure/gate.h"

#include <assert.h>
#include <utlist.h>

struct gate_user {
	struct per_user user;
	unsigned items, going;
	struct gate_item *waiting; /* in the order of their coming */
	struct gate_user *prev, *next;
};

const struct gate_limits gate_one = {.all = 1, .of_root = 1, .of_user = 1};

static bool may_go(const struct gate *gate, const struct gate_user *user,
                   const struct gate_limits *limits)
{
	const struct gate_user *root = per_user_find(gate->users, 0);

	if (gate->going >= limits->all)
		return false;
	if (user == root)
		return user->going < limits->of_root;
	return user->going < limits->of_user &&
	       gate->going - (root ? root->going : 0) < limits->all - limits->all / GATE_ROOT_PART;
}

/* Root has every second turn. */
static struct gate_user *whose_turn(const struct gate *gate, const struct gate_limits *limits)
{
	const struct gate_user *root = per_user_find(gate->users, 0);
	struct gate_user *user, *first = NULL;

	DL_FOREACH(gate->lines, user) {
		if (!may_go(gate, user, limits))
			continue;
		if (user == root && !gate->root_went)
			return user;
		if (!first || first == root)
			first = user;
	}
	return first;
}

bool gate_join(struct gate *gate, uid_t uid, struct gate_item *item)
{
	struct gate_user *user = per_user_get(&gate->users, uid, sizeof(*user));

	assert(item->state == GATE_OUT);
	if (!user)
		return false;
	user->items++;
	*item = (struct gate_item){.user = user, .state = GATE_WAITS};
	if (!user->waiting)
		DL_APPEND(gate->lines, user);
	DL_APPEND(user->waiting, item);
	return true;
}

static void stop_waiting(struct gate *gate, struct gate_item *item)
{
	struct gate_user *user = item->user;

	DL_DELETE(user->waiting, item);
	if (!user->waiting)
		DL_DELETE(gate->lines, user);
}

struct gate_item *gate_next(struct gate *gate, const struct gate_limits *limits)
{
	struct gate_user *user = whose_turn(gate, limits);
	struct gate_item *item;

	if (!user)
		return NULL;
	gate->root_went = user->user.uid == 0;
	item = user->waiting;
	stop_waiting(gate, item);
	if (user->waiting) { /* behind all others */
		DL_DELETE(gate->lines, user);
		DL_APPEND(gate->lines, user);
	}
	item->state = GATE_GOES;
	user->going++;
	gate->going++;
	return item;
}

void gate_leave(struct gate *gate, struct gate_item *item)
{
	struct gate_user *user = item->user;

	if (item->state == GATE_OUT)
		return;
	if (item->state == GATE_WAITS) {
		stop_waiting(gate, item);
	} else {
		user->going--;
		gate->going--;
	}
	*item = (struct gate_item){0};
	if (--user->items == 0)
		per_user_drop(&gate->users, &user->user);
}
