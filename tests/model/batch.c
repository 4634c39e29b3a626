/* SPDX-License-Identifier: MIT
 *
 * batch.c - creates and deletes of one turn go out together: batch.c of the engine.
 */
#include "model.h"

#include <string.h>

/* ---- answers ---- */

static void write_was(bool good)
{
	me()->flags &= (uint8_t)~M_WRITE_OK;
	if (good)
		me()->flags |= M_WRITE_OK;
}

static void created(int e)
{
	write_was(true);
	S.taker[e].entry = PRESENT;
	handoff_present(e, true);
	taker_step(e);
}

static void deleted(int e, bool good)
{
	write_was(good);
	set_absent(e);
	if (me()->flags & M_LEAVER && !LEFT_OUT(leaver_goes_in_silence))
		want_list();
	taker_step(e);
}

static void unsent(int e)
{
	write_was(false);
	if (S.taker[e].entry == CREATING)
		set_absent(e);
	else
		S.taker[e].entry = PRESENT;
	taker_step(e);
}

static void send_again(int e)
{
	write_was(false);
	S.taker[e].flags |= F_ALONE;
	if (S.taker[e].entry == CREATING && !is_wanted(e))
		unsent(e);
	else
		me()->unsent |= (uint8_t)BIT(e);
}

/* Of a guard and the check alone. */
static void guard_refused(int guard, int next)
{
	struct mount *mount = me();
	bool asked = mount->unseen == next + 1;

	if (asked)
		mount->flags |= M_HELD_BACK;
	if (asked && LEFT_OUT(refused_is_seen))
		handoff_seen(next);
	unsent(guard);
	if (asked && is_seen(next))
		handoff_seen(next);
	taker_step(next);
}

static int lowest(unsigned mask)
{
	return __builtin_ctz(mask);
}

static void refused(struct request request)
{
	int operations = __builtin_popcount(request.deletes) + !!request.entry + !!request.check;

	if (operations == 1) {
		deleted(lowest(request.deletes), false);
		return;
	}
	if (operations == 2 && request.check && request.deletes) {
		guard_refused(lowest(request.deletes), request.check - 1);
		return;
	}
	if (request.entry)
		send_again(request.entry - 1);
	for (int e = config.takers - 1; e >= 0; e--)
		if (request.deletes & BIT(e))
			send_again(e);
	if (request.check)
		taker_step(request.check - 1);
}

void write_answered(struct request request, bool good)
{
	if (request.entry && (request.deletes || request.check))
		me()->more &= (uint8_t)~N_TOGETHER;
	if (!good) {
		refused(request);
		return;
	}
	if (request.check)
		handoff_seen(request.check - 1);
	for (int e = 0; e < config.takers; e++)
		if (request.deletes & BIT(e))
			deleted(e, true);
	if (request.entry)
		created(request.entry - 1);
}

/* ---- sending ---- */

/* A transaction that is being filled. */
struct multi {
	unsigned deletes;
	int make, check; /* entry + 1 */
	int leaving;     /* the number of the first entry of the queue among the deletes */
	bool bound;
};

static void send_multi(struct multi *multi)
{
	int operations = __builtin_popcount(multi->deletes) + !!multi->make;

	if (multi->bound || operations >= 3) {
		push(R_WRITE, multi->deletes, multi->make, multi->check);
		me()->more |= multi->make ? N_TOGETHER : 0;
	} else {
		for (int e = 0; e < config.takers; e++)
			if (multi->deletes & BIT(e))
				push(R_WRITE, BIT(e), 0, 0);
		if (multi->make)
			push(R_WRITE, 0, multi->make, 0);
	}
	*multi = (struct multi){0};
}

static void take_delete(struct multi *multi, int e)
{
	if (!multi->deletes && me()->unseen) {
		multi->check = me()->unseen;
		multi->bound = true;
	}
	multi->deletes |= BIT(e);
	if (S.taker[e].flags & F_FIRST && S.number[e] > multi->leaving)
		multi->leaving = S.number[e];
}

static bool could_be_first_without_list(int e)
{
	const struct mount *mount = me();

	return !(mount->more & N_OVERTAKEN) && count_waiting() == 1 && is_wanted(e) &&
	       count_holding() == 0 && !(mount->flags & M_UNRESOLVED);
}

static void follow_leaving_entry(struct multi *multi, int e)
{
	if (!multi->leaving)
		return;
	S.taker[e].follows = (uint8_t)multi->leaving;
	multi->bound = true;
	if (could_be_first_without_list(e))
		me()->flags &= (uint8_t)~M_WANT;
}

/* A delete of a guard takes the check with it, and nothing else. */
static void send_singly(struct multi *multi, int e)
{
	if (S.taker[e].entry == CREATING) {
		push(R_WRITE, 0, e + 1, 0);
	} else if (!me()->unseen || LEFT_OUT(alone_without_the_check)) {
		push(R_WRITE, BIT(e), 0, 0);
	} else {
		send_multi(multi);
		take_delete(multi, e);
		send_multi(multi);
	}
}

static int count_creates(void)
{
	int count = 0;

	EACH_TAKER(e)
		count += me()->unsent & BIT(e) && S.taker[e].entry == CREATING;
	return count;
}

static void send_entry(struct multi *multi, int e)
{
	struct mount *mount = me();
	struct taker *taker = &S.taker[e];
	bool create = taker->entry == CREATING;
	bool alone = taker->flags & F_ALONE || !(mount->flags & M_WRITE_OK) ||
	             (create && count_creates() > 1);

	if (create && mount->more & N_TOGETHER)
		return;
	mount->unsent &= (uint8_t)~BIT(e);
	taker->flags &= (uint8_t) ~(F_ALONE | (create ? F_LISTED_SINCE : 0));
	taker->follows = 0;
	if (alone) {
		send_singly(multi, e);
	} else if (create) {
		follow_leaving_entry(multi, e);
		multi->make = e + 1;
	} else {
		take_delete(multi, e);
	}
}

void send_batch(void)
{
	struct multi multi = {0};
	unsigned before = me()->unsent;

	EACH_TAKER(e)
		if (before & BIT(e) && S.taker[e].entry == DELETING)
			send_entry(&multi, e);
	EACH_TAKER(e)
		if (before & BIT(e) && S.taker[e].entry == CREATING)
			send_entry(&multi, e);
	send_multi(&multi);
}
