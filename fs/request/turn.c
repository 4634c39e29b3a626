/* SPDX-License-Identifier: MIT
 *
 * turn.c - see turn.h.
 */
#include "request/turn.h"

#include <errno.h>
#include <utlist.h>

/* There as long as something of that user waits or goes. */
struct turn_user {
	struct per_user user;
	unsigned going;
	struct turn *waiting; /* in the order of their coming */
	struct turn_user *prev, *next;
};

static bool may_go(const struct turns *turns, const struct turn_user *user)
{
	return !turns->closed && turns->going < TURNS_OF_ALL &&
	       (user->user.uid == 0 || user->going < TURNS_OF_USER);
}

static void go(struct turns *turns, struct turn *turn)
{
	turn->state = TURN_GOES;
	turn->user->going++;
	turns->going++;
}

static void stop_waiting_for(struct turns *turns, struct turn *turn)
{
	DL_DELETE(turn->user->waiting, turn);
	if (!turn->user->waiting)
		DL_DELETE(turns->lines, turn->user);
}

int turn_ask(struct turns *turns, struct turn *turn, uid_t uid, int64_t now_us)
{
	turn->user = per_user_get(&turns->users, uid, sizeof(*turn->user));
	if (!turn->user)
		return -ENOMEM;
	if (!turn->user->waiting && may_go(turns, turn->user)) {
		go(turns, turn);
		return 0;
	}
	turn->state = TURN_WAITS;
	turn->until_us = now_us + TURN_WAITS_US;
	if (!turn->user->waiting)
		DL_APPEND(turns->lines, turn->user);
	DL_APPEND(turn->user->waiting, turn);
	return 0;
}

void turn_end(struct turns *turns, struct turn *turn)
{
	struct turn_user *user = turn->user;

	switch (turn->state) {
	case TURN_NONE:
		return;
	case TURN_WAITS:
		stop_waiting_for(turns, turn);
		break;
	case TURN_GOES:
		user->going--;
		turns->going--;
		break;
	}
	*turn = (struct turn){0};
	if (!user->waiting && user->going == 0)
		per_user_drop(&turns->users, &user->user);
}

static struct turn_user *next_line(const struct turns *turns)
{
	struct turn_user *user;

	DL_FOREACH(turns->lines, user)
		if (may_go(turns, user))
			return user;
	return NULL;
}

struct turn *turns_next(struct turns *turns)
{
	struct turn_user *user = next_line(turns);
	struct turn *turn = user ? user->waiting : NULL;

	if (!turn)
		return NULL;
	stop_waiting_for(turns, turn);
	if (user->waiting) { /* behind all others */
		DL_DELETE(turns->lines, user);
		DL_APPEND(turns->lines, user);
	}
	go(turns, turn);
	return turn;
}

struct turn *turns_late(const struct turns *turns, int64_t now_us)
{
	struct turn_user *user;

	DL_FOREACH(turns->lines, user)
		if (user->waiting->until_us <= now_us)
			return user->waiting;
	return NULL;
}

int64_t turns_wait(const struct turns *turns, int64_t now_us)
{
	int64_t wait = INT64_MAX;
	struct turn_user *user;

	if (next_line(turns))
		return 0;
	DL_FOREACH(turns->lines, user)
		if (user->waiting->until_us - now_us < wait)
			wait = user->waiting->until_us - now_us;
	return wait > 0 ? wait : 0;
}
