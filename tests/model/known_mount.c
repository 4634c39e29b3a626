/* SPDX-License-Identifier: MIT
 *
 * known_mount.c - the mount: it keeps what is known (K0), asks queue_next() at the end of each
 * turn, and does as that says.
 */
#include "known.h"

#include "pure/next.h"

#include <string.h>

#define OUT(name) (mutant == M_##name)

static bool is_own(int e)
{
	return e < config.own;
}

static void push(enum request_kind kind, int a, int b)
{
	if (now.requests == REQUESTS_MAX)
		now.wrong = TOO_LONG;
	else
		now.request[now.requests++] =
			(struct request){.kind = (uint8_t)kind, .a = (uint8_t)a, .b = (uint8_t)b};
}

static bool is_asked(enum request_kind kind, int a)
{
	for (int i = 0; i < now.requests; i++)
		if (now.request[i].kind == kind && (kind == LIST || now.request[i].a == a))
			return true;
	return false;
}

static void ask_node(void)
{
	if (now.lock_watch)
		return;
	now.lock_watch = 1;
	push(NODE, 0, 0);
}

/* ---- K0: what is known ---- */

static void forget_queue(void)
{
	now.known = now.shown = now.others_watched = now.doubtful = 0;
	now.known_number = 0;
}

static void unsee(void)
{
	for (int e = 0; e < config.own; e++)
		now.taker[e].flags &= (uint8_t)~SEEN;
}

/* Leavers whose checked delete was refused may be deleted again. */
static void let_back(void)
{
	for (int k = 0; k < config.own; k++)
		now.taker[k].flags &= (uint8_t)~HELD_BACK;
}

static void is_proved(int e)
{
	if (now.unproved != e + 1)
		return;
	now.unproved = 0;
	let_back();
}

/* Its entry is gone, for certain. */
static void gone(int e)
{
	if (now.known & BIT(e) && !OUT(seen_after_one_went))
		unsee();
	now.known &= (uint8_t)~BIT(e);
	now.shown &= (uint8_t)~BIT(e);
	now.others_watched &= (uint8_t)~BIT(e);
	now.doubtful &= (uint8_t)~BIT(e);
	for (int k = 0; k < config.all && !is_own(e) && !(config.shared & BIT(e)); k++)
		if (now.taker[k].number < now.taker[e].number)
			now.doubtful |= now.known & BIT(k);
	if (!is_own(e))
		return;
	is_proved(e);
	now.taker[e].phase = DONE;
	now.taker[e].flags = 0;
}

static void see(int e)
{
	now.taker[e].flags |= SEEN;
	if (OUT(proved_by_an_older_look))
		is_proved(e);
}

static bool is_held_back(void)
{
	for (int k = 0; k < config.own; k++)
		if (now.taker[k].flags & HELD_BACK)
			return true;
	return false;
}

static void know_life(void)
{
	if (now.known_life == now.server.life || OUT(other_life_not_noticed))
		return;
	forget_queue();
	now.known_life = now.server.life;
}

/* ---- a turn ---- */

static const enum next_state next_states[] = {
	[IDLE] = NEXT_OTHER,      [PROBING] = NEXT_PROBING, [CREATING] = NEXT_CREATING,
	[UNKNOWN] = NEXT_UNKNOWN, [WAITING] = NEXT_WAITING, [HOLDING] = NEXT_HOLDING,
	[LOST] = NEXT_LOST,       [KEPT] = NEXT_KEPT,       [LEAVING] = NEXT_LEAVING,
	[DONE] = NEXT_OTHER,
};

static struct next_taker as_taker(int e)
{
	const struct taker *taker = &now.taker[e];

	return (struct next_taker){
		.state = next_states[taker->phase],
		.number = taker->number,
		.replaces = e == config.upgrade ? config.replaces : NEXT_NONE,
		.shared = config.shared & BIT(e),
		.immediate = config.tries & BIT(e),
		.seen = taker->flags & (SEEN | WATCHED),
		.shown_since = taker->flags & SHOWN_SINCE,
		.asked_since = taker->flags & ASKED_SINCE,
		.sent = taker->flags & SENT,
		.in_doubt = taker->flags & IN_DOUBT,
	};
}

static int sort_known(struct next_entry *entries)
{
	int count = 0;

	for (int e = 0; e < config.all; e++) {
		struct next_entry entry = {
			.number = now.taker[e].number,
			.taker = is_own(e) ? e : NEXT_NONE,
			.shared = config.shared & BIT(e),
			.apart = config.apart & BIT(e),
			.shown = now.shown & BIT(e),
			.doubtful = now.doubtful & BIT(e),
		};
		int i = count;

		if (!(now.known & BIT(e)))
			continue;
		for (; i > 0 && entries[i - 1].number > entry.number; i--)
			entries[i] = entries[i - 1];
		entries[i] = entry;
		count++;
	}
	return count;
}

static unsigned active(void)
{
	unsigned set = 0;

	for (int e = 0; e < config.own; e++)
		if (now.taker[e].phase != IDLE && now.taker[e].phase != DONE)
			set |= BIT(e);
	return set;
}

static void ask_list(bool with_watch)
{
	unsigned since = active();

	push(LIST, (int)since, with_watch);
	for (int e = 0; e < config.own; e++)
		if (since & BIT(e))
			now.taker[e].flags |= ASKED_SINCE;
}

/* A listing with a watch of the names is under way. */
static bool is_watching(void)
{
	for (int i = 0; i < now.requests; i++)
		if (now.request[i].kind == LIST && now.request[i].b)
			return true;
	return false;
}

static void look_at(int e)
{
	if (!is_asked(LOOK, e))
		push(LOOK, e, 0);
}

static void ask_what_is_wanted(const struct next_queue *queue)
{
	if (queue->watch_lock)
		ask_node();
	for (int e = 0; e < config.own; e++)
		if (queue->takers[e].watch && !(now.taker[e].flags & WATCHED))
			look_at(e);
	for (int i = 0; i < queue->entry_count; i++)
		for (int e = config.own; e < config.all && queue->entries[i].watch; e++)
			if (queue->entries[i].number == now.taker[e].number &&
			    queue->entries[i].taker == NEXT_NONE && now.known & BIT(e) &&
			    !(now.others_watched & BIT(e)))
				look_at(e);
	if (queue->list == NEXT_LIST_NONE)
		return;
	if (queue->list == NEXT_LIST_NEW || !is_asked(LIST, 0) ||
	    (queue->watch_children && !is_watching()))
		ask_list(queue->watch_children);
}

/* `guarded`: by K4. Else its own server has shown that its entry is there, in this turn. */
static void grant(int e, bool guarded)
{
	struct view leader = leader_view();
	unsigned bars;

	now.taker[e].phase = HOLDING;
	if (e == config.upgrade) {
		if (now.taker[config.replaces].phase != HOLDING)
			now.wrong = HOLD_LOST;
		now.taker[config.replaces].phase = LEAVING;
	}
	bars = bars_of(ahead_of(leader.present, e), e, leader.slots) & ~own_in(LEAVING);
	if (!(now.taker[e].marks & (ENTITLED | BY_HAND)) && bars)
		now.wrong = EARLY;
	if (!guarded && !(now.server.present & BIT(e)) &&
	    (now.taker[e].marks & ROBBED || !config.joined))
		now.wrong = GONE_BEFORE;
}

static void refuse(int e, enum next_state state)
{
	bool hold_lost = e == config.upgrade && now.taker[config.replaces].phase != HOLDING;

	if (!(now.taker[e].marks & CAUSE) && !hold_lost)
		now.wrong = NO_CAUSE;
	now.taker[e].phase = state == NEXT_LEAVING ? LEAVING : DONE;
}

static void do_steps(const struct next_queue *queue)
{
	for (int e = 0; e < config.own; e++)
		if (queue->takers[e].step == NEXT_LEAVE)
			now.taker[e].phase = LEAVING;
	for (int e = 0; e < config.own; e++) {
		const struct next_taker *taker = &queue->takers[e];

		if (taker->step == NEXT_GRANT && now.lapsed) {
			if (!(now.taker[e].flags & WATCHED))
				look_at(e);
		} else if (taker->step == NEXT_GRANT) {
			grant(e, queue->unproved == e);
		} else if (taker->step == NEXT_REFUSE) {
			refuse(e, taker->state);
		} else if (taker->step == NEXT_CREATE) {
			now.taker[e].phase = CREATING;
			ask_node();
			push(CREATE, e, 0);
		}
	}
	if (!OUT(seen_before_a_decision))
		unsee();
	if (now.unproved == queue->unproved + 1 ||
	    (queue->unproved != NEXT_NONE && now.taker[queue->unproved].phase != HOLDING))
		return; /* also a grant that waits for the lease */
	let_back();
	now.unproved = (uint8_t)(queue->unproved + 1);
}

static void send_deletes(void)
{
	for (int e = 0; e < config.own; e++) {
		struct taker *taker = &now.taker[e];
		int unproved = now.unproved ? now.taker[now.unproved - 1].number : -1;
		enum next_delete how;

		if (taker->phase != LEAVING || taker->flags & SENT)
			continue;
		how = next_delete(taker->number, unproved, taker->flags & HELD_BACK);
		if (how == NEXT_DELETE_NOT)
			continue;
		taker->flags |= SENT;
		if (how == NEXT_DELETE_SINGLY)
			taker->flags |= IN_DOUBT;
		push(how == NEXT_DELETE_SINGLY ? DELETE : CHECKED, e, now.unproved - 1);
	}
}

void mount_turn(void)
{
	struct next_entry entries[TAKERS];
	struct next_taker takers[TAKERS];
	struct next_queue queue = {
		.entries = entries,
		.takers = takers,
		.taker_count = config.own,
		.lock_watched = now.lock_watch == 2,
		.children_watched = now.children_watched,
		.slots = now.slots,
		.slots_max = (unsigned)config.slots_max,
		.unproved = now.unproved ? now.unproved - 1 : NEXT_NONE,
	};

	now.due = false;
	if (now.link < 2)
		return;
	for (int e = 0; e < config.own; e++)
		takers[e] = as_taker(e);
	queue.entry_count = sort_known(entries);
	queue_next(&queue);
	do_steps(&queue);
	ask_what_is_wanted(&queue);
	send_deletes();
}

/* Its end; or later, behind the next message. */
static void turn(void)
{
	if (config.joined)
		now.due = true;
	else
		mount_turn();
}

/* ---- the users ---- */

void mount_arrives(int e)
{
	if (config.tries & BIT(e)) {
		now.taker[e].phase = PROBING;
	} else {
		now.taker[e].phase = CREATING;
		ask_node();
		push(CREATE, e, 0);
	}
	turn();
}

void mount_leaves(int e)
{
	struct taker *taker = &now.taker[e];
	bool alone = active() == BIT(e);

	if (taker->phase == CREATING || taker->phase == UNKNOWN)
		taker->flags |= LEFT;
	else if (taker->phase == PROBING)
		taker->phase = DONE;
	else if (taker->phase == HOLDING && config.kept && alone && now.link == 2)
		taker->phase = KEPT;
	else
		taker->phase = LEAVING;
	turn();
}

/* Its hold is lost, its processes are at work: its entry stays. */
void mount_lost(int e)
{
	now.taker[e].phase = LOST;
	turn();
}

bool mount_may_take_again(int e)
{
	return now.link == 2 && (now.taker[e].phase == KEPT || OUT(kept_over_a_delete)) &&
	       !is_asked(LOOK, e) && (now.taker[e].phase == KEPT || now.taker[e].phase == LEAVING);
}

void mount_take_again(int e)
{
	now.taker[e].phase = WAITING;
	grant(e, true);
	turn();
}

/* ---- connections ---- */

static void end_requests(void)
{
	for (int i = 0; i < now.requests; i++) {
		struct request *request = &now.request[i];
		struct taker *taker = &now.taker[request->a];

		if (request->kind == CREATE)
			taker->phase = UNKNOWN;
		if ((request->kind == DELETE || request->kind == CHECKED) && !OUT(doubt_forgotten))
			taker->flags |= IN_DOUBT;
		if (request->kind <= CHECKED && !request->done && now.formers < REQUESTS_MAX)
			now.former[now.formers++] = *request;
	}
	now.requests = 0;
	memset(now.request, 0, sizeof(now.request));
	for (int i = 0; i < now.logged; i++)
		now.log[i].own = false;
}

void mount_cut(bool other_process)
{
	end_requests();
	now.link = 0;
	for (int e = 0; e < config.own; e++) {
		uint8_t left = IN_DOUBT | LEFT;

		if (OUT(watched_over_a_cut))
			left |= WATCHED;
		if (OUT(doubt_forgotten))
			left &= (uint8_t)~IN_DOUBT;
		now.taker[e].flags &= left;
		if (now.taker[e].phase == KEPT)
			now.taker[e].phase = LEAVING;
	}
	if (!OUT(watched_over_a_cut))
		now.others_watched = 0;
	now.children_watched = 0;
	now.shown = 0;
	if (!OUT(lock_watched_over_a_cut) || now.lock_watch == 1)
		now.lock_watch = 0;
	if (!other_process)
		return;
	if (OUT(known_over_a_reload))
		now.known &= (uint8_t)active(); /* the others, but not the number */
	else
		forget_queue();
	if (OUT(unproved_forgotten))
		now.unproved = 0;
}

void mount_lease(bool good)
{
	now.lapsed = !good;
	turn();
}

void mount_connect(void)
{
	now.link = OUT(no_write_on_a_connection) ? 2 : 1;
	if (now.link == 1)
		push(BARRIER, 0, 0);
	if (active())
		ask_node();
	turn();
}

/* ---- answers and events ---- */

void mount_event(struct item item)
{
	if (now.link == 0)
		return;
	for (int e = 0; e < config.all && item.kind == GONE; e++)
		if (item.a & BIT(e) &&
		    (is_own(e) ? now.taker[e].flags & WATCHED : now.others_watched & BIT(e)))
			gone(e);
	if (item.kind == GONE || item.kind == MADE || item.kind == REMADE)
		now.children_watched = 0;
	if (item.kind == SLOTS && now.lock_watch == 2) {
		now.lock_watch = 0;
		now.shown = 0;
		if (!OUT(seen_over_other_slots))
			unsee();
		if (own_in(WAITING))
			ask_node();
	}
	if (item.kind == REMADE && now.lock_watch == 2) {
		now.lock_watch = 0;
		forget_queue();
	}
	if (!item.own)
		turn();
}

static void created(int e)
{
	struct taker *taker = &now.taker[e];

	taker->phase = taker->flags & LEFT ? LEAVING : WAITING;
	taker->flags &= (uint8_t)~LEFT;
	if ((now.lock_watch == 2 || OUT(made_without_lock_watch)) &&
	    (taker->number == now.known_number + 1 || OUT(made_with_a_gap))) {
		now.known |= (uint8_t)BIT(e);
		now.known_number = taker->number;
	}
	see(e);
}

/* A listing tells whether a create of unknown outcome was done. */
static void resolve(int e, bool present)
{
	struct taker *taker = &now.taker[e];

	if (present) {
		taker->phase = taker->flags & LEFT ? LEAVING : WAITING;
	} else if (taker->flags & LEFT) {
		taker->phase = DONE;
	} else if (config.tries & BIT(e)) {
		taker->phase = PROBING;
	} else {
		taker->phase = CREATING;
		ask_node();
		push(CREATE, e, 0);
	}
	taker->flags &= (uint8_t)~LEFT;
}

static void listed(struct request request)
{
	unsigned present = now.server.present;

	know_life();
	for (int e = 0; e < config.all; e++) {
		enum phase phase = (enum phase)now.taker[e].phase;

		if (is_own(e) && phase == UNKNOWN)
			resolve(e, present & BIT(e));
		else if (!(present & BIT(e)) &&
		         (now.known & BIT(e) || (is_own(e) && phase >= WAITING && phase < DONE)))
			gone(e);
		if (present & BIT(e) && now.taker[e].number > now.known_number)
			now.known_number = now.taker[e].number;
	}
	now.known = now.shown = (uint8_t)present;
	now.doubtful = 0;
	now.children_watched |= request.b;
	for (int e = 0; e < config.own; e++) {
		if (present & BIT(e))
			see(e);
		if (request.a & BIT(e) || OUT(list_of_before))
			now.taker[e].flags |= SHOWN_SINCE;
	}
}

static void looked_at(int e)
{
	if (!(now.server.present & BIT(e))) {
		if (now.known & BIT(e) || (is_own(e) && now.taker[e].phase != DONE))
			gone(e);
	} else if (is_own(e)) {
		now.taker[e].flags |= WATCHED;
		see(e);
		if (is_held_back())
			is_proved(e);
	} else {
		now.others_watched |= (uint8_t)BIT(e);
	}
}

static void node_told(void)
{
	know_life();
	now.lock_watch = 2;
	now.slots = now.server.slots;
	now.shown = 0;
	if (!OUT(seen_over_other_slots))
		unsee();
}

/* The holder was not there when the leader looked, or the leaver. A look behind this answer tells.
 * A watch that is good does so at once. */
static void refused(struct taker *leaver, int holder)
{
	if (now.unproved != holder + 1)
		return; /* another one is the unproved holder now: its check is next */
	if (now.taker[holder].flags & WATCHED) {
		is_proved(holder);
		return;
	}
	leaver->flags |= HELD_BACK;
	look_at(holder);
}

static void deleted(struct request request, struct item item)
{
	struct taker *taker = &now.taker[request.a];

	if (item.kind == REFUSED) {
		taker->flags &= (uint8_t)~SENT;
		if (OUT(refused_and_not_held_back))
			now.unproved = 0;
		else if (taker->phase != DONE)
			refused(taker, request.b);
		return;
	}
	if (taker->phase != DONE)
		gone(request.a);
	if (request.kind == CHECKED && item.kind == GONE) {
		see(request.b);
		is_proved(request.b);
	}
}

void mount_answer(struct item item)
{
	struct request request = now.request[0];

	now.requests--;
	memmove(now.request, now.request + 1, now.requests * sizeof(request));
	memset(&now.request[now.requests], 0, sizeof(request));
	switch ((enum request_kind)request.kind) {
	case CREATE:
		created(request.a);
		break;
	case DELETE:
	case CHECKED:
		deleted(request, item);
		break;
	case BARRIER:
		now.link = 2;
		break;
	case LIST:
		listed(request);
		break;
	case LOOK:
		looked_at(request.a);
		break;
	case NODE:
		node_told();
		break;
	}
	turn();
}
