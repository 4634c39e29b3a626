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
	size_t bytes;
	max_align_t memory[];
};

static struct object *object_of(void *memory)
{
	return (struct object *)((char *)memory - offsetof(struct object, memory));
}

/* NULL: no memory. */
static struct budget_user *user_get(struct budget *budget, uid_t uid)
{
	struct budget_user *user = per_user_get(&budget->users, uid, sizeof(*user));

	if (user)
		user->budget = budget;
	return user;
}

static void discharge_user(struct budget_user *user, size_t bytes)
{
	user->budget->bytes -= bytes;
	user->bytes -= bytes;
	if (user->bytes == 0)
		per_user_drop(&user->budget->users, &user->user);
}

static bool charge_user(struct budget_user *user, size_t bytes)
{
	struct budget *budget = user->budget;

	if (bytes > BUDGET_BYTES - budget->bytes ||
	    (user->user.uid != 0 && bytes > BUDGET_USER_BYTES - user->bytes)) {
		if (!user->refused)
			log_line(LC_NOTICE,
			         "%s of uid %u are refused: this user has too many open: %zu "
			         "bytes, all users %zu",
			         budget->what, (unsigned)user->user.uid, user->bytes,
			         budget->bytes);
		user->refused = true;
		return false;
	}
	budget->bytes += bytes;
	user->bytes += bytes;
	return true;
}

void *budget_alloc(struct budget *budget, uid_t uid, size_t size)
{
	struct budget_user *user = user_get(budget, uid);
	size_t bytes = size + BUDGET_OBJECT;
	struct object *object = NULL;

	if (!user) {
		errno = ENOMEM;
		return NULL;
	}
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
	object->bytes = bytes;
	return object->memory;
}

void *budget_alloc_described(struct budget *budget, uid_t uid, size_t size)
{
	void *memory = budget_alloc(budget, uid, size);

	if (!memory || budget_add(memory, BUDGET_DESCRIPTOR) == 0)
		return memory;
	budget_free(memory);
	errno = ENFILE;
	return NULL;
}

int budget_add(void *memory, size_t bytes)
{
	struct object *object = object_of(memory);

	if (!charge_user(object->user, bytes))
		return -ENFILE;
	object->bytes += bytes;
	return 0;
}

uid_t budget_uid(const void *memory)
{
	return object_of((void *)memory)->user->user.uid;
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
