/* SPDX-License-Identifier: MIT
 *
 * known_world.c - the ensemble, the takers, what goes wrong, and what must never be.
 */
#include "known.h"

#include "check.h"

#include <string.h>

struct state now;

enum action {
	ARRIVE,
	LEAVE,
	TAKE_AGAIN,
	OTHER_COMES,
	OTHER_GOES,
	DELETE_BY_HAND,
	LOSE,
	SET_SLOTS,
	MAKE_AGAIN,
	COMMIT,
	COMMIT_LATE,
	APPLY,
	ANSWER,
	CUT,
	RELOAD,
	CONNECT,
	LAPSE,
	RENEW,
	TURN
};
const char *const action_names[] = {
	[ARRIVE] = "comes: taker",
	[LEAVE] = "leaves: taker",
	[TAKE_AGAIN] = "takes again by its kept entry: taker",
	[OTHER_COMES] = "makes an entry: other client",
	[OTHER_GOES] = "deletes its entry: other client",
	[DELETE_BY_HAND] = "an operator deletes the entry of",
	[LOSE] = "loses its hold: taker",
	[SET_SLOTS] = "slots are set to",
	[MAKE_AGAIN] = "the lock is removed and made again",
	[COMMIT] = "the leader takes a write",
	[COMMIT_LATE] = "the leader takes a write of a former connection",
	[APPLY] = "the server applies a change",
	[ANSWER] = "a read is answered",
	[CUT] = "the connection ends",
	[RELOAD] = "another process goes on",
	[CONNECT] = "connects again",
	[LAPSE] = "has too little lease",
	[RENEW] = "has a lease again",
	[TURN] = "ends its turn",
};

static bool is_own(int e)
{
	return e < config.own;
}

/* ---- the ensemble ---- */

static void apply_to(struct view *view, struct item item)
{
	switch ((enum item_kind)item.kind) {
	case MADE:
		view->present |= (uint8_t)BIT(item.a);
		break;
	case GONE:
		view->present &= (uint8_t)~item.a;
		break;
	case SLOTS:
		view->slots = item.a;
		break;
	case REMADE:
		view->present = 0;
		view->slots = (uint8_t)config.slots;
		view->life++;
		break;
	case REFUSED:
	case NOTHING:
		break;
	}
}

struct view leader_view(void)
{
	struct view view = now.server;

	for (int i = 0; i < now.logged; i++)
		apply_to(&view, now.log[i]);
	return view;
}

unsigned own_in(enum phase phase)
{
	unsigned set = 0;

	for (int e = 0; e < config.own; e++)
		if (now.taker[e].phase == phase)
			set |= BIT(e);
	return set;
}

unsigned ahead_of(unsigned present, int e)
{
	unsigned set = 0;

	for (int k = 0; k < config.all; k++)
		if (k != e && present & BIT(k) &&
		    (!(present & BIT(e)) || now.taker[k].number < now.taker[e].number))
			set |= BIT(k);
	return set;
}

unsigned bars_of(unsigned set, int e, unsigned slots)
{
	if (e == config.upgrade)
		set &= ~BIT(config.replaces);
	if (config.shared & BIT(e))
		return set & ~config.shared;
	if (slots > 1 && !(set & (config.shared | config.apart)) &&
	    (unsigned)__builtin_popcount(set) < slots)
		return 0;
	return set;
}

static bool is_entitled(struct view view, int e)
{
	return view.present & BIT(e) && !bars_of(ahead_of(view.present, e), e, view.slots);
}

/* A reason to refuse it: entries that stay bar its way; or an exclusive one waits for the hold that
 * it is to replace. */
static bool has_cause(struct view view, int e)
{
	unsigned leaves = own_in(LEAVING) | own_in(KEPT);
	unsigned set = ahead_of(view.present, e) & ~leaves;

	if (e == config.upgrade && now.taker[config.replaces].phase != HOLDING)
		return true;
	if (e == config.upgrade && !(config.tries & BIT(e)))
		return set & ~config.shared;
	return bars_of(set, e, view.slots);
}

static bool may_be_refused(int e)
{
	enum phase phase = (enum phase)now.taker[e].phase;

	return (phase == PROBING || phase == CREATING || phase == UNKNOWN || phase == WAITING) &&
	       (config.tries & BIT(e) || e == config.upgrade);
}

static void mark_in(struct view view)
{
	unsigned leaving = own_in(LEAVING);

	for (int e = 0; e < config.all; e++) {
		struct taker *taker = &now.taker[e];

		if (is_own(e) && may_be_refused(e) && has_cause(view, e))
			taker->marks |= CAUSE;
		if (!(view.present & BIT(e)))
			continue;
		if (is_entitled(view, e) ||
		    (is_own(e) && taker->phase == HOLDING &&
		     !bars_of(ahead_of(view.present, e) & ~leaving, e, view.slots)))
			taker->marks |= ENTITLED;
	}
}

/* What the leader has now; and for one that has just come, what its server is to learn. */
static void mark(bool came)
{
	struct view view = now.server;

	for (int i = 0; i < now.logged; i++) {
		if (came)
			mark_in(view);
		apply_to(&view, now.log[i]);
	}
	mark_in(view);
}

void append(enum item_kind kind, int a, bool own)
{
	if (now.logged == LOG_MAX) {
		now.wrong = TOO_LONG;
		return;
	}
	now.log[now.logged++] = (struct item){.kind = (uint8_t)kind, .a = (uint8_t)a, .own = own};
	mark(false);
}

/* The leader takes a write. */
static void commit(struct request *request, bool own)
{
	unsigned present = leader_view().present;

	request->done = 1;
	switch ((enum request_kind)request->kind) {
	case CREATE:
		now.taker[request->a].number = ++now.last_number;
		now.taker[request->a].marks &= (uint8_t) ~(ENTITLED | BY_HAND | ROBBED);
		append(MADE, request->a, own);
		break;
	case CHECKED:
	case DELETE:
		if (request->kind == CHECKED && !(present & BIT(request->b)))
			append(REFUSED, 0, own);
		else if (present & BIT(request->a))
			append(GONE, (int)BIT(request->a), own);
		else
			append(NOTHING, 0, own);
		break;
	case BARRIER:
		now.formers = 0;
		memset(now.former, 0, sizeof(now.former));
		append(NOTHING, 0, own);
		break;
	case LIST:
	case LOOK:
	case NODE:
		break;
	}
}

static bool is_write(const struct request *request)
{
	return request->kind <= BARRIER;
}

static struct request *next_write(void)
{
	for (int i = 0; i < now.requests; i++)
		if (is_write(&now.request[i]) && !now.request[i].done)
			return &now.request[i];
	return NULL;
}

static void drop_former(void)
{
	now.formers--;
	memmove(now.former, now.former + 1, now.formers * sizeof(*now.former));
	memset(&now.former[now.formers], 0, sizeof(*now.former));
}

static void apply(void)
{
	struct item item = now.log[0];

	now.logged--;
	memmove(now.log, now.log + 1, now.logged * sizeof(item));
	memset(&now.log[now.logged], 0, sizeof(item));
	apply_to(&now.server, item);
	mount_event(item);
	if (item.own)
		mount_answer(item);
}

/* What the requests under way lead to, nothing else happening: true when there is such a step. */
static bool go_on(void)
{
	struct request *write = next_write();

	if (now.due)
		mount_turn();
	else if (write)
		commit(write, true);
	else if (now.requests && !is_write(&now.request[0]))
		mount_answer((struct item){0});
	else if (now.logged)
		apply();
	else
		return false;
	return true;
}

/* ---- all that can happen ---- */

static const struct state *before;

static void next(enum action action, int e)
{
	struct state follows = now; /* judge() works on `now` */

	check_next(&follows, (unsigned)action << 8 | (unsigned)e);
	now = *before;
}

static bool comes(int e)
{
	if (now.taker[e].phase != IDLE)
		return false;
	return !is_own(e) || (now.link == 2 &&
	                      (e != config.upgrade || now.taker[config.replaces].phase == HOLDING));
}

static bool may_leave(int e)
{
	enum phase phase = (enum phase)now.taker[e].phase;

	/* The hold that an upgrade is to replace stays until that is decided. */
	if (e == config.replaces && config.upgrade >= 0 && phase == HOLDING &&
	    now.taker[config.upgrade].phase != DONE && now.taker[config.upgrade].phase != IDLE)
		return false;
	return phase == HOLDING || phase == LOST || phase == KEPT || phase == WAITING ||
	       phase == PROBING || (phase == CREATING && !(now.taker[e].flags & LEFT)) ||
	       (phase == UNKNOWN && !(now.taker[e].flags & LEFT));
}

static void expand_own(int e)
{
	if (comes(e)) {
		mount_arrives(e);
		mark(true);
		next(ARRIVE, e);
	}
	if (may_leave(e)) {
		mount_leaves(e);
		next(LEAVE, e);
	}
	if (config.kept && mount_may_take_again(e)) {
		mount_take_again(e);
		next(TAKE_AGAIN, e);
	}
	if (now.losses && now.taker[e].phase == HOLDING) {
		now.losses--;
		mount_lost(e);
		next(LOSE, e);
	}
}

static void expand_other(int e)
{
	if (now.taker[e].phase == IDLE) {
		now.taker[e].phase = WAITING;
		now.taker[e].number = ++now.last_number;
		append(MADE, e, false);
		next(OTHER_COMES, e);
	}
	if (now.taker[e].phase == WAITING) {
		now.taker[e].phase = DONE;
		append(leader_view().present & BIT(e) ? GONE : NOTHING, (int)BIT(e), false);
		next(OTHER_GOES, e);
	}
}

static void delete_by_hand(int e)
{
	now.deletes--;
	now.taker[e].marks |= now.taker[e].marks & ENTITLED ? BY_HAND : BY_HAND | ROBBED;
	append(GONE, (int)BIT(e), false);
	next(DELETE_BY_HAND, e);
}

static void expand_lock(void)
{
	unsigned present = leader_view().present;

	for (int e = 0; e < config.all && now.deletes; e++)
		if (present & BIT(e))
			delete_by_hand(e);
	for (int slots = 1; slots <= config.slots_max && now.changes; slots++) {
		if (slots == leader_view().slots)
			continue;
		now.changes--;
		append(SLOTS, slots, false);
		next(SET_SLOTS, slots);
	}
	if (now.removes && !present) {
		now.removes--;
		now.last_number = 0;
		append(REMADE, 0, false);
		next(MAKE_AGAIN, 0);
	}
}

static void expand_ensemble(void)
{
	struct request *write = next_write();

	if (write && now.link) {
		commit(write, true);
		next(COMMIT, 0);
	}
	if (now.formers) {
		struct request late = now.former[0];

		drop_former();
		commit(&late, false);
		next(COMMIT_LATE, 0);
	}
	if (now.logged && (!now.log[0].own || is_write(&now.request[0]))) {
		apply();
		next(APPLY, 0);
	}
	if (now.requests && !is_write(&now.request[0]) && now.link) {
		mount_answer((struct item){0});
		next(ANSWER, 0);
	}
}

static void expand_connection(void)
{
	if (now.link && now.cuts) {
		now.cuts--;
		mount_cut(false);
		next(CUT, 0);
	}
	if (now.link && now.reloads) {
		now.reloads--;
		mount_cut(true);
		next(RELOAD, 0);
	}
	if (!now.link) {
		mount_connect();
		next(CONNECT, 0);
	}
	if (now.lapses && !now.lapsed) {
		now.lapses--;
		mount_lease(false);
		next(LAPSE, 0);
	}
	if (now.lapsed) {
		mount_lease(true);
		next(RENEW, 0);
	}
	if (now.due) {
		mount_turn();
		next(TURN, 0);
	}
}

void expand(const void *state)
{
	before = state;
	now = *before;
	if (now.wrong == TOO_LONG) {
		check_drop();
		return;
	}
	for (int e = 0; e < config.all; e++)
		is_own(e) ? expand_own(e) : expand_other(e);
	expand_lock();
	expand_ensemble();
	expand_connection();
}

/* ---- what must never be ---- */

/* Its entry was deleted by hand when it was entitled to hold, or together with its guard's. */
static bool is_excused(int e)
{
	unsigned robbed = 0;

	if (leader_view().present & BIT(e) || !(now.taker[e].marks & BY_HAND))
		return false;
	for (int k = 0; k < config.own; k++)
		robbed += (now.taker[k].marks & BY_HAND) != 0;
	return !(now.taker[e].marks & ROBBED) || robbed > 1;
}

static bool exclude_each_other(int a, int b)
{
	return !(config.shared & BIT(a) && config.shared & BIT(b)) && a != config.upgrade &&
	       b != config.upgrade;
}

/* With one slot: own takers that hold, or whose processes may still work, and other clients that
 * are first. */
static bool two_hold(void)
{
	struct view leader = leader_view();
	unsigned holding = own_in(HOLDING) | own_in(LOST);

	for (int e = config.own; e < config.all; e++)
		if (is_entitled(leader, e))
			holding |= BIT(e);
	for (int a = 0; a < config.all; a++)
		for (int b = a + 1; b < config.all; b++)
			if (holding & BIT(a) && holding & BIT(b) && exclude_each_other(a, b) &&
			    !(is_own(a) && is_excused(a)) && !(is_own(b) && is_excused(b)))
				return true;
	return false;
}

static bool is_quiet(void)
{
	return now.link == 2 && !now.requests && !now.logged && !now.formers && !now.lapsed &&
	       !now.due;
}

/* An own holder or waiter before it: when that one leaves, this one is judged. Until then nobody
 * asks whether their entries are there. A lost one may stay for ever: only its entry counts. */
static bool waits_for_own(int e)
{
	for (int k = 0; k < config.own; k++) {
		enum phase phase = (enum phase)now.taker[k].phase;

		if ((phase == HOLDING || phase == WAITING ||
		     (phase == LOST && now.server.present & BIT(k))) &&
		    now.taker[k].number < now.taker[e].number &&
		    !(config.shared & BIT(k) && config.shared & BIT(e)) &&
		    !(e == config.upgrade && k == config.replaces))
			return true;
	}
	return false;
}

/* An upgrade waits for an exclusive entry, which waits for the hold that it is to replace. */
static bool waits_in_a_circle(int e)
{
	return e == config.upgrade && !(config.tries & BIT(e)) && has_cause(now.server, e);
}

/* Nothing is under way, and yet somebody waits for something. */
static enum wrong judge_quiet(void)
{
	for (int e = 0; e < config.own; e++) {
		enum phase phase = (enum phase)now.taker[e].phase;
		bool present = now.server.present & BIT(e);

		if (phase == PROBING || phase == CREATING || phase == UNKNOWN || phase == LEAVING)
			return STUCK;
		if (phase == WAITING && waits_in_a_circle(e))
			return STUCK;
		if (phase == WAITING &&
		    (config.tries & BIT(e) ||
		     ((!present || is_entitled(now.server, e)) && !waits_for_own(e))))
			return STUCK;
		if (phase == KEPT && own_in(WAITING))
			return STUCK;
		if (phase == DONE && present)
			return ORPHAN;
	}
	return GOOD;
}

#define STEPS_MAX 200

/* The requests come to an end, if nothing else happens. */
static enum wrong judge_rest(void)
{
	int steps = 0;

	if (!now.link || now.formers)
		return GOOD;
	if (now.lapsed)
		mount_lease(true);
	while (steps++ < STEPS_MAX && now.wrong == GOOD && go_on())
		continue;
	if (now.wrong == TOO_LONG)
		return GOOD;
	return now.wrong != GOOD   ? (enum wrong)now.wrong
	       : steps > STEPS_MAX ? RESTLESS
	                           : judge_quiet();
}

static const char *const wrongs[] = {
	[TWO_HOLD] = "two hold",
	[EARLY] = "granted while others bar the way",
	[GONE_BEFORE] = "granted when its server had shown that its entry is gone",
	[NO_CAUSE] = "refused without a cause",
	[HOLD_LOST] = "an upgrade without its hold",
	[STUCK] = "somebody waits, and nothing is under way",
	[RESTLESS] = "the requests do not come to an end",
	[ORPHAN] = "an entry remains",
};

const char *judge(const void *state)
{
	now = *(const struct state *)state;
	if (now.wrong == TOO_LONG)
		return NULL;
	if (now.wrong == GOOD && config.slots_max == 1 && two_hold())
		now.wrong = TWO_HOLD;
	if (now.wrong == GOOD && is_quiet())
		now.wrong = (uint8_t)judge_quiet();
	if (now.wrong == GOOD)
		now.wrong = (uint8_t)judge_rest();
	return now.wrong == GOOD ? NULL : wrongs[now.wrong];
}
