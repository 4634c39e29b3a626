/* SPDX-License-Identifier: MIT
 *
 * budget.c - see budget.h. Each object has in front of it who pays for it, and how much.
 */
#include "host/budget.h"

#include "host/log.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

struct budget_user {
	struct per_user user;
	struct budget *budget;
	size_t bytes;
	bool refused; /* and the log has said so */
};

struct object {
	struct budget_user *user;
	uint32_t bytes; /* at most BUDGET_BYTES */
	uid_t uid;      /* of whom it is, whoever else shares the user's part */
	max_align_t memory[];
};

static struct object *object_of(void *memory)
{
	return (struct object *)((char *)memory - offsetof(struct object, memory));
}

static void discharge_user(struct budget_user *user, size_t bytes)
{
	user->budget->bytes -= bytes;
	user->bytes -= bytes;
	if (user->bytes == 0)
		per_user_drop(&user->budget->users, &user->user);
}

enum lacks { LACKS_NOTHING, LACKS_SHARE, LACKS_ROOM };

/* The share of the user, or the room for all, of which a part is root's alone. */
static enum lacks lacks(const struct budget_user *user, size_t bytes)
{
	const struct budget *budget = user->budget;
	const struct budget_user *root = per_user_find(budget->users, 0);
	size_t others = budget->bytes - (root ? root->bytes : 0);

	if (budget->restores)
		return LACKS_NOTHING;
	if (user != root && bytes > BUDGET_USER_BYTES - user->bytes)
		return LACKS_SHARE;
	if (bytes > BUDGET_BYTES - budget->bytes ||
	    (user != root && bytes > BUDGET_BYTES - BUDGET_ROOT_BYTES - others))
		return LACKS_ROOM;
	return LACKS_NOTHING;
}

static bool charge_user(struct budget_user *user, size_t bytes)
{
	struct budget *budget = user->budget;
	enum lacks what = lacks(user, bytes);

	if (what != LACKS_NOTHING && !user->refused)
		log_line_of(user->user.uid, LC_NOTICE,
		            what == LACKS_SHARE
		                    ? "%s of uid %u are refused: this user has too many "
		                      "open: %zu bytes, all users %zu"
		                    : "%s of uid %u are refused: all users together have "
		                      "too many open: %zu bytes, all users %zu",
		            budget->what, (unsigned)user->user.uid, user->bytes, budget->bytes);
	user->refused |= what != LACKS_NOTHING;
	if (what != LACKS_NOTHING)
		return false;
	budget->bytes += bytes;
	user->bytes += bytes;
	return true;
}

void *budget_alloc(struct budget *budget, uid_t uid, size_t size)
{
	struct budget_user *user = per_user_get(&budget->users, uid, sizeof(*user));
	size_t bytes = size + BUDGET_OBJECT;
	struct object *object = NULL;

	if (!user) {
		errno = ENOMEM;
		return NULL;
	}
	user->budget = budget;
	if (!charge_user(user, bytes)) {
		discharge_user(user, 0);
		errno = ENFILE;
		return NULL;
	}
	object = calloc(1, sizeof(*object) + size);
	if (!object) {
		discharge_user(user, bytes);
		errno = ENOMEM;
		return NULL;
	}
	object->user = user;
	object->bytes = (uint32_t)bytes;
	object->uid = uid;
	return object->memory;
}

int budget_add(void *memory, size_t bytes)
{
	struct object *object = object_of(memory);

	if (!charge_user(object->user, bytes))
		return -ENFILE;
	object->bytes += (uint32_t)bytes;
	return 0;
}

uid_t budget_uid(const void *memory)
{
	return object_of((void *)memory)->uid;
}

void budget_free(void *memory)
{
	struct object *object;

	if (!memory)
		return;
	object = object_of(memory);
	discharge_user(object->user, object->bytes);
	free(object);
}
