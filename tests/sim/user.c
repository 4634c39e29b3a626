/* SPDX-License-Identifier: MIT
 *
 * user.c - programs: each takes a lock, holds it, writes a reason and values, yields to
 * others, gives up too early, leaves inside callbacks, and begins again.
 */
#include "judge.h"

#include "mutation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

struct program {
	struct sim *sim;
	struct mount *mount;
	struct rng rng, mode_rng, burst_rng;
	struct taker *taker;
	int process;
	struct lock_state *repeats; /* the lock that it takes again and again, */
	unsigned takes_left;        /*   so many times more */
	bool done;
};

static void next(void *ctx, uint64_t arg);

const char *taker_phase_name(enum taker_phase phase)
{
	static const char *const names[] = {"waiting", "held", "lost", "failed", "left"};

	return names[phase];
}

static struct taker *taker_of(struct sim *sim, uint64_t number)
{
	return sim->all[number];
}

/* Requests to a mount that is stopped, or doubts its clock, wait in the kernel. */
static bool put_off(struct mount *mount, agenda_fn *fn, void *ctx, uint64_t arg)
{
	if (!mount->host.paused && !lc_doubted(mount->host.lc))
		return false;
	host_wake(&mount->host);
	agenda_in(&mount->sim->agenda, 50000, fn, ctx, arg);
	return true;
}

static void think(struct program *program)
{
	struct sim *sim = program->sim;
	int64_t pause_us = 0;

	if (program->takes_left > 0)
		pause_us = rng_spread(&program->burst_rng, 0, 4000);
	else if (!sim->stopping && !rng_chance(&program->rng, 300))
		pause_us = (int64_t)rng_below(&program->rng, (uint64_t)sim->plan.think_us);
	agenda_in(&program->sim->agenda, pause_us, next, program, 0);
}

/* ---- leaving ---- */

static void really_leave(void *ctx, uint64_t number)
{
	struct taker *taker = taker_of(ctx, number);

	if (taker->life != taker->mount->life)
		return;
	taker->sim->inside_call = true;
	lc_leave(taker->lc);
	taker->sim->inside_call = false;
	host_wake(&taker->mount->host);
}

static void forget(struct taker *taker)
{
	struct sim *sim = taker->sim;

	/* A question about a taker must not outlive it. */
	questions_cancel(sim, NULL, taker);
	taker->watches = taker->at_ease = false;
	if (taker->replaces)
		taker->replaces->replaced_by = NULL;
	if (taker->replaced_by)
		taker->replaced_by->replaces = NULL;
	if (taker->phase == T_HELD)
		DL_DELETE2(sim->held, taker, held_prev, held_next);
	DL_DELETE(sim->takers, taker);
	taker->mount->told.abandoned += !taker->told;
	taker->phase = T_LEFT;
}

/* The program goes on with the taker that has replaced its own. */
static void go_on(struct taker *taker, struct taker *successor)
{
	struct program *program = taker->program;

	if (program->taker != taker)
		return;
	program->taker = successor;
	if (!successor)
		think(program);
}

static unsigned long hand_offs(const struct mount *mount)
{
	struct lc_status status;

	lc_status(mount->host.lc, &status);
	return status.counters.hand_offs;
}

static void leave_lock(struct taker *taker)
{
	struct mount *mount = taker->mount;
	unsigned long before = hand_offs(mount);

	taker->sim->inside_call = true;
	lc_leave(taker->lc);
	taker->sim->inside_call = false;
	if (hand_offs(mount) > before)
		taker->lock->handed_us[mount->host.index] = taker->sim->agenda.now_us;
	host_wake(&mount->host);
}

static void leave(struct taker *taker)
{
	struct sim *sim = taker->sim;
	struct taker *successor = taker->replaced_by;

	trace("%s: taker %d leaves %s, %s", taker->mount->host.name, taker->pid, taker->lock->name,
	      taker_phase_name(taker->phase));
	forget(taker);
	if (mutation == MUTATE_late_leave && rng_chance(&taker->program->rng, 300)) {
		agenda_in(&sim->agenda, 20000, really_leave, sim,
		          (uint64_t)(taker->pid - PID_BASE));
	} else {
		leave_lock(taker);
	}
	go_on(taker, successor);
}

static void leave_later(void *ctx, uint64_t number)
{
	struct taker *taker = taker_of(ctx, number);

	if (taker->phase == T_LEFT || put_off(taker->mount, leave_later, ctx, number))
		return;
	leave(taker);
}

void user_leave(struct taker *taker, int64_t delay_us)
{
	agenda_in(&taker->sim->agenda, delay_us, leave_later, taker->sim,
	          (uint64_t)(taker->pid - PID_BASE));
}

/* ---- holding ---- */

static void use_it(void *ctx, uint64_t number)
{
	struct taker *taker = taker_of(ctx, number);
	struct sim *sim = taker->sim;
	struct program *program = taker->program;
	struct lc_status status;
	char reason[64];
	int err, len;

	if ((taker->phase != T_HELD && taker->phase != T_LOST) ||
	    put_off(taker->mount, use_it, ctx, number))
		return;
	if (rng_chance(&program->rng, 500)) {
		question_holder(taker, Q_CONFIRM, &program->rng);
		return;
	}
	len = snprintf(reason, sizeof(reason), "because of %d", taker->pid);
	sim->inside_call = true;
	lc_status(taker->mount->host.lc, &status);
	err = lc_set_reason(taker->lc, reason, (size_t)len);
	if (err == 0 && status.lease_left_us == 0)
		sim_violation(sim, "a: taker %d: a reason was taken without a lease", taker->pid);
	if (err == 0 && !lc_holds(taker->lc))
		sim_violation(sim, "taker %d: a reason was taken without a hold", taker->pid);
	if (err == -EIO && lc_holds(taker->lc))
		sim_violation(sim, "taker %d: EIO for a reason, while it holds", taker->pid);
	sim->inside_call = false;
	host_wake(&taker->mount->host);
}

static void confirm_it(void *ctx, uint64_t number)
{
	struct taker *taker = taker_of(ctx, number);

	if (taker->phase == T_HELD && !put_off(taker->mount, confirm_it, ctx, number))
		question_holder(taker, Q_CONFIRM, &taker->program->rng);
}

void user_confirm(struct taker *taker, int64_t delay_us)
{
	agenda_in(&taker->sim->agenda, delay_us, confirm_it, taker->sim,
	          (uint64_t)(taker->pid - PID_BASE));
}

/* ---- yielding ---- */

static void watch_waiters(void *ctx, uint64_t number);

static void waiters_changed(void *ctx)
{
	struct taker *taker = ctx;
	struct sim *sim = taker->sim;

	if (taker->mount->vanishing)
		return;
	if (sim->inside_call || !taker->watches)
		sim_violation(sim, "taker %d: told that its waiters changed %s", taker->pid,
		              sim->inside_call ? "from inside a call" : "unasked");
	trace("%s: taker %d is told that its waiters changed", taker->mount->host.name, taker->pid);
	sim->totals->stirs++;
	taker->watches = taker->at_ease = false;
	agenda_in(&sim->agenda, rng_spread(&taker->program->mode_rng, 0, 1000000), watch_waiters,
	          sim, (uint64_t)(taker->pid - PID_BASE));
}

/* The watch comes before the question, or a waiter that comes in between is missed. */
static void watch_waiters(void *ctx, uint64_t number)
{
	struct taker *taker = taker_of(ctx, number);
	struct sim *sim = taker->sim;
	struct rng *rng = &taker->program->mode_rng;

	if (taker->phase != T_HELD || taker->watches ||
	    put_off(taker->mount, watch_waiters, ctx, number))
		return;
	sim->inside_call = true;
	taker->watches = rng_chance(rng, 900);
	lc_watch_waiters(taker->lc, taker->watches ? waiters_changed : NULL);
	sim->inside_call = false;
	question_holder(taker, Q_WAITERS, rng);
}

void user_waiters_told(struct taker *taker, int err, bool waiters)
{
	struct rng *rng = &taker->program->mode_rng;

	taker->at_ease = err == 0 && !waiters && taker->watches;
	if (taker->phase == T_HELD && waiters && rng_chance(rng, 500))
		user_leave(taker, rng_spread(rng, 0, 100000));
}

static void write_value(void *ctx, uint64_t number)
{
	struct taker *taker = taker_of(ctx, number);
	struct rng *rng = &taker->program->mode_rng;

	if (taker->phase != T_HELD || put_off(taker->mount, write_value, ctx, number))
		return;
	question_holder(taker, Q_SET_VALUE, rng);
	if (rng_chance(rng, 300))
		agenda_in(&taker->sim->agenda, rng_spread(rng, 0, 1000000), write_value, ctx,
		          number);
}

/* ---- taking ---- */

static void upgrade(void *ctx, uint64_t number);

/* Some holders get a time limit, which may be shorter than their work. It has random numbers of its
 * own, so that the rest of a seed's run stays the same. */
static void set_limit(struct taker *taker, int64_t hold_us)
{
	struct sim *sim = taker->sim;
	struct rng rng = {sim->seed * 0x9e3779b97f4a7c15u + 1000000 + (uint64_t)taker->pid};

	if (!rng_chance(&rng, sim->plan.limits))
		return;
	taker->until_us = host_clock_us(&taker->mount->host) + rng_spread(&rng, 0, 2 * hold_us);
	sim->inside_call = true;
	lc_limit(taker->lc, taker->until_us);
	sim->inside_call = false;
}

/* The one that was replaced. Some programs leave it a little later: a process whose request was
 * interrupted asks for it once more, and has both meanwhile. */
static void leave_former(struct taker *taker)
{
	struct rng *rng = &taker->program->mode_rng;

	if (rng_chance(rng, 700))
		leave(taker);
	else
		user_leave(taker, rng_spread(rng, 0, 300000));
}

static void granted(struct taker *taker)
{
	struct sim *sim = taker->sim;
	struct rng *rng = &taker->program->rng;
	int64_t hold_us = rng_chance(rng, sim->plan.long_holds)
	                          ? (int64_t)rng_below(rng, (uint64_t)sim->plan.hold_us)
	                          : rng_spread(rng, 0, sim->plan.hold_us / 10);

	taker->phase = T_HELD;
	DL_APPEND2(sim->held, taker, held_prev, held_next);
	taker->token = lc_token(taker->lc);
	if (taker->token == 0)
		taker->token = judge_find_token(taker); /* the engine does not know it yet */
	taker->mount->told.grants++;
	sim->totals->grants++;
	sim->totals->shared_grants += taker->mode == LC_SHARED;
	trace("%s: taker %d holds %s, token %" PRIx64, taker->mount->host.name, taker->pid,
	      taker->lock->name, (uint64_t)taker->token);
	judge_granted(taker);
	if (rng_chance(&taker->program->burst_rng, 200) && taker->phase == T_HELD)
		judge_given(taker, lc_give_token(taker->lc));
	if (taker->program->takes_left > 0)
		hold_us = rng_spread(&taker->program->burst_rng, 0, 4000);
	set_limit(taker, hold_us);
	if (lc_token(taker->lc) == 0 && rng_chance(&taker->program->mode_rng, 300))
		question_holder(taker, Q_TOKEN, &taker->program->mode_rng);
	if (taker->replaces) {
		taker->program->taker = taker;
		sim->totals->upgrades++;
		leave_former(taker->replaces);
	}
	if (sim->stopping)
		hold_us = hold_us > 20000 ? 20000 : hold_us;
	if (rng_chance(rng, 300))
		agenda_in(&sim->agenda, (int64_t)rng_below(rng, (uint64_t)hold_us + 1), use_it, sim,
		          (uint64_t)(taker->pid - PID_BASE));
	if (rng_chance(rng, 100)) {
		leave(taker);
		return;
	}
	user_leave(taker, hold_us);
	if (rng_chance(&taker->program->mode_rng, sim->plan.curious))
		agenda_in(&sim->agenda, rng_spread(&taker->program->mode_rng, 0, hold_us),
		          watch_waiters, sim, (uint64_t)(taker->pid - PID_BASE));
	if (rng_chance(&taker->program->mode_rng, 2 * sim->plan.data))
		agenda_in(&sim->agenda, rng_spread(&taker->program->mode_rng, 0, hold_us), use_it,
		          sim, (uint64_t)(taker->pid - PID_BASE));
	if (taker->mode == LC_EXCLUSIVE && rng_chance(&taker->program->mode_rng, sim->plan.data))
		agenda_in(&sim->agenda, rng_spread(&taker->program->mode_rng, 0, hold_us),
		          write_value, sim, (uint64_t)(taker->pid - PID_BASE));
	if (taker->mode == LC_SHARED && rng_chance(&taker->program->mode_rng, sim->plan.upgrades))
		agenda_in(&sim->agenda, rng_spread(&taker->program->mode_rng, 0, hold_us), upgrade,
		          sim, (uint64_t)(taker->pid - PID_BASE));
}

static void count_error(struct sim_totals *totals, int err)
{
	totals->eagain += err == -EAGAIN;
	totals->etimedout += err == -ETIMEDOUT;
	totals->enolck += err == -ENOLCK;
	totals->eshutdown += err == -ESHUTDOWN;
	totals->ehostunreach += err == -EHOSTUNREACH;
	totals->eproto += err == -EPROTO;
	totals->enoent += err == -ENOENT;
	totals->ecanceled += err == -ECANCELED;
	totals->edeadlk += err == -EDEADLK;
}

static void taken(void *ctx, int err)
{
	struct taker *taker = ctx;
	struct sim *sim = taker->sim;

	if (taker->mount->vanishing)
		return;
	if (mutation == MUTATE_swallow_taken && rng_chance(&sim->rng, 50))
		return;
	if (sim->inside_call)
		sim_violation(sim, "taker %d: taken() from inside a call", taker->pid);
	if (taker->phase == T_LEFT || taker->told) {
		sim_violation(sim, "taker %d: taken(%d) %s", taker->pid, err,
		              taker->told ? "for the second time" : "after it left");
		return;
	}
	taker->told = true;
	if (err == 0) {
		granted(taker);
		mount_stumble(taker->mount);
		return;
	}
	trace("%s: taker %d of %s: error %d", taker->mount->host.name, taker->pid,
	      taker->lock->name, err);
	taker->mount->told.failures++;
	count_error(sim->totals, err);
	taker->phase = T_FAILED;
	judge_failed(taker, err);
	if (rng_chance(&taker->program->rng, 500))
		leave(taker);
	else
		user_leave(taker, rng_spread(&taker->program->rng, 10, 100000));
}

/* Processes that lose their lock are stopped, and their takers leave. That takes a while, and some
 * processes cannot be stopped. */
static void plan_stop(struct taker *taker)
{
	struct rng *rng = &taker->program->rng;
	int64_t delay_us = rng_spread(rng, 10, 3000000);

	user_leave(taker, delay_us + (rng_chance(rng, 200) ? 2 * taker->sim->plan.timeout_us : 0));
}

static void lost(void *ctx)
{
	struct taker *taker = ctx;
	struct sim *sim = taker->sim;

	if (taker->mount->vanishing)
		return;
	if (sim->inside_call)
		sim_violation(sim, "taker %d: lost() from inside a call", taker->pid);
	if (taker->phase != T_HELD) {
		sim_violation(sim, "taker %d: lost() while it is %s", taker->pid,
		              taker_phase_name(taker->phase));
		return;
	}
	trace("%s: taker %d has lost %s", taker->mount->host.name, taker->pid, taker->lock->name);
	taker->mount->told.losses++;
	sim->totals->losses++;
	DL_DELETE2(sim->held, taker, held_prev, held_next);
	taker->phase = T_LOST;
	judge_lost(taker);
	if (sim->plan.loss_lead_us)
		plan_stop(taker);
	else if (rng_chance(&taker->program->rng, 300))
		leave(taker);
	else
		user_leave(taker, rng_spread(&taker->program->rng, 10, 3000000));
}

static void swap_places(struct taker *taker, struct taker *other)
{
	int pid = taker->pid;

	taker->pid = other->pid;
	other->pid = pid;
	taker->sim->all[taker->pid - PID_BASE] = taker;
	taker->sim->all[other->pid - PID_BASE] = other;
}

/* The engine goes on with the entry of the program's last taker: the place of that one in all that
 * is known of entries is this one's now. */
static void take_place_of(struct taker *taker, struct taker *former)
{
	swap_places(taker, former);
	taker->former = former;
	former->went_on = true;
	taker->entry_token = former->entry_token;
	taker->entry_session = former->entry_session;
	taker->look = former->look;
	taker->seen = former->seen;
	taker->evicted_us = former->evicted_us;
	taker->evicted_token = former->evicted_token;
	taker->evicted_alone = former->evicted_alone;
	taker->marked_us = former->marked_us;
	taker->marked_token = former->marked_token;
	taker->poked_us = former->poked_us;
	taker->entries = former->entries;
	taker->sim->totals->reuses++;
}

static struct taker *taker_new(struct program *program, struct lock_state *lock)
{
	struct sim *sim = program->sim;
	struct taker *taker = arena_zalloc(&sim->arena, sizeof(*taker));

	if (sim->taker_count == sim->taker_room) {
		sim->taker_room = sim->taker_room ? sim->taker_room * 2 : 64;
		sim->all = realloc(sim->all, (size_t)sim->taker_room * sizeof(struct taker *));
		if (!sim->all)
			abort();
	}
	*taker = (struct taker){.sim = sim,
	                        .mount = program->mount,
	                        .program = program,
	                        .lock = lock,
	                        .pid = PID_BASE + sim->taker_count,
	                        .process = sim->plan.reuse ? program->process
	                                                   : PID_BASE + sim->taker_count,
	                        .life = program->mount->life,
	                        .wait_us = LC_FOREVER,
	                        .until_us = LC_FOREVER,
	                        .took_us = sim->agenda.now_us,
	                        .took_running_us = host_running_us(&program->mount->host),
	                        .took_clock_us = host_clock_us(&program->mount->host),
	                        .unheld_running_us = -1,
	                        .evicted_us = -1,
	                        .alone_since_us = -1,
	                        .barred_us = -1,
	                        .marked_us = -1,
	                        .poked_us = -1};
	sim->all[sim->taker_count++] = taker;
	return taker;
}

static void choose_wait(struct taker *taker, struct rng *rng)
{
	if (rng_chance(rng, 250))
		taker->wait_us = 0;
	else if (rng_chance(rng, 300))
		taker->wait_us = rng_spread(rng, 1000, 10000000);
}

/* The last taker with that entry. */
static struct taker *find_left(const struct sim *sim, uint64_t id)
{
	for (int i = sim->plan.reuse ? sim->taker_count - 1 : -1; i >= 0; i--)
		if (sim->all[i]->id == id && sim->all[i]->phase == T_LEFT && !sim->all[i]->went_on)
			return sim->all[i];
	return NULL;
}

static int ask_engine(struct taker *taker)
{
	struct sim *sim = taker->sim;
	struct taker *former;
	int err;

	sim->inside_call = true;
	err = lc_take(taker->mount->host.lc,
	              &(struct lc_request){.lock = taker->lock->name,
	                                   .mode = taker->mode,
	                                   .czxid = taker->meant,
	                                   .replaces = taker->replaces ? taker->replaces->lc : NULL,
	                                   .wait_us = taker->wait_us,
	                                   .crowd = taker->crowd,
	                                   .pid = taker->process,
	                                   .uid = 1000,
	                                   .command = "prog"},
	              taken, lost, taker, &taker->lc);
	sim->inside_call = false;
	taker->taken_in = taker->mount->turns;
	if (err < 0)
		return err;
	former = find_left(sim, lc_taker_id(taker->lc));
	taker->id = lc_taker_id(taker->lc);
	if (former)
		take_place_of(taker, former);
	return 0;
}

/* False: the take was refused at once. */
static bool request(struct taker *taker)
{
	struct sim *sim = taker->sim;
	struct mount *mount = taker->mount;
	struct lc_status status;
	int err;

	/* Some takers mean the lock that lc_stat() has told, as with a file opened before. */
	if (taker->pid % 3 == 0 && !taker->replaces) {
		taker->meant = mount->known[taker->lock - sim->locks].czxid;
		taker->meant_us = mount->known[taker->lock - sim->locks].since_us;
	}
	if (taker->pid % 7 == 5 && taker->wait_us != 0 && !taker->replaces)
		taker->crowd = 1 + (unsigned)taker->pid % CROWD_MAX;
	look_at_lock(sim, taker->lock);
	taker->crowded_us = taker->lock->crowded_us[taker->crowd];
	taker->unfree_us = taker->lock->contended_us[mount->host.index][taker->mode];
	err = ask_engine(taker);
	mount->told.takes++;
	mount->told.failures += err < 0;
	sim->totals->takes++;
	trace("%s: taker %d takes %s%s, wait %" PRId64 ": %d", mount->host.name, taker->pid,
	      taker->lock->name,
	      taker->replaces            ? ", no more shared"
	      : taker->mode == LC_SHARED ? ", shared"
	                                 : "",
	      taker->wait_us == LC_FOREVER ? -1 : taker->wait_us, err);
	host_wake(&mount->host);
	if (err == 0) {
		DL_APPEND(sim->takers, taker);
		return true;
	}
	taker->refused = true;
	lc_status(mount->host.lc, &status);
	if (err != -ESHUTDOWN || (status.state != LC_UNUSABLE && !mount->drained))
		sim_violation(sim, "lc_take: %d while the engine is %s", err,
		              lc_state_name(status.state));
	taker->phase = T_LEFT;
	return false;
}

/* Some takes are followed by some more of the same lock, exclusive and short. */
static bool repeats(struct program *program)
{
	struct sim *sim = program->sim;
	struct rng *rng = &program->burst_rng;

	if (program->takes_left > 0) {
		program->takes_left--;
		return true;
	}
	if (!sim->plan.reuse || sim->stopping || !rng_chance(rng, 300))
		return false;
	program->repeats = &sim->locks[rng_below(rng, (uint64_t)sim->plan.locks)];
	program->takes_left = (unsigned)rng_between(rng, 2, 12);
	return true;
}

static void take(struct program *program)
{
	struct sim *sim = program->sim;
	struct rng *rng = &program->rng;
	struct lock_state *lock = &sim->locks[rng_below(rng, (uint64_t)sim->plan.locks)];
	struct taker *taker = taker_new(program, repeats(program) ? program->repeats : lock);

	choose_wait(taker, rng);
	if (program->takes_left > 0)
		taker->wait_us = rng_chance(&program->burst_rng, 300) ? 0 : LC_FOREVER;
	else if (rng_chance(&program->mode_rng, sim->plan.shared))
		taker->mode = LC_SHARED;
	if (!request(taker)) {
		agenda_in(&sim->agenda, 1000000, next, program, 0);
		return;
	}
	program->taker = taker;
	if (rng_chance(rng, 120))
		user_leave(taker, rng_spread(rng, 0, 3000000));
}

/* fcntl(2): from a read lock to a write lock. */
static void upgrade(void *ctx, uint64_t number)
{
	struct taker *taker = taker_of(ctx, number), *successor;
	struct program *program = taker->program;
	struct rng *rng = &program->mode_rng;

	if (taker->phase != T_HELD || taker->replaced_by ||
	    put_off(taker->mount, upgrade, ctx, number) || !lc_holds(taker->lc))
		return;
	successor = taker_new(program, taker->lock);
	choose_wait(successor, rng);
	successor->replaces = taker;
	successor->upgrades = true;
	if (!request(successor))
		return;
	taker->replaced_by = successor;
	if (rng_chance(rng, 120))
		user_leave(successor, rng_spread(rng, 0, 3000000));
}

static void next(void *ctx, uint64_t arg)
{
	struct program *program = ctx;

	if (program->taker || program->done)
		return;
	if (program->sim->stopping) {
		program->done = true;
		program->sim->programs_left--;
		return;
	}
	if (put_off(program->mount, next, ctx, arg))
		return;
	if (rng_chance(&program->rng, 200))
		question_something(program->mount, &program->rng);
	if (rng_chance(&program->mode_rng, program->sim->plan.data))
		question_data(program->mount, &program->mode_rng);
	if (rng_chance(&program->mode_rng, program->sim->plan.evictions))
		question_evict(program->mount, &program->mode_rng);
	take(program);
}

void users_abandon(struct mount *mount)
{
	struct sim *sim = mount->sim;
	struct taker *taker, *t;

	questions_cancel(sim, mount, NULL);
	sim->inside_call = true;
	DL_FOREACH_SAFE(sim->takers, taker, t)
		if (taker->mount == mount) {
			forget(taker);
			sim->inside_call = true;
			lc_leave(taker->lc);
			if (taker->program->taker == taker)
				think(taker->program);
		}
	for (int i = 0; i < sim->program_count; i++)
		if (sim->programs[i].mount == mount)
			sim->programs[i].taker = NULL;
	sim->inside_call = false;
}

static void claim(struct taker *taker)
{
	struct sim *sim = taker->sim;
	struct taker *successor = taker->replaced_by;

	if (rng_chance(&taker->mount->reload_rng, 30)) {
		trace("%s: taker %d is not claimed", taker->mount->host.name, taker->pid);
		sim->totals->unclaimed++;
		forget(taker);
		go_on(taker, successor);
		return;
	}
	taker->lc = lc_claim(taker->mount->host.lc, taker->id, taken, lost, taker);
	if (!taker->lc)
		sim_violation(sim, "taker %d is gone in the other process", taker->pid);
	if (!taker->watches)
		return;
	taker->watches = taker->at_ease = false;
	agenda_in(&sim->agenda, 10000, watch_waiters, sim, (uint64_t)(taker->pid - PID_BASE));
}

/* The engine that died has not recorded this take, so the new engine is asked again. */
static void ask_again(struct taker *taker)
{
	struct taker *successor = taker->replaced_by;
	int err;

	if (taker->former) { /* it gets an entry of its own */
		swap_places(taker, taker->former);
		taker->former->went_on = false;
		taker->former = NULL;
		taker->entry_token = taker->evicted_token = taker->marked_token = 0;
		taker->evicted_us = taker->marked_us = taker->poked_us = -1;
	}
	err = ask_engine(taker);

	trace("%s: taker %d takes %s again: %d", taker->mount->host.name, taker->pid,
	      taker->lock->name, err);
	if (err == 0)
		return;
	taker->mount->told.failures++;
	taker->told = true;
	forget(taker);
	go_on(taker, successor);
}

static bool is_unrecorded(const struct taker *taker, const struct mount *mount)
{
	return taker->mount == mount && taker->life == mount->life &&
	       taker->taken_in == mount->turns;
}

/* The new engine does not know takers that came and left, or were refused, since the record. */
static void forget_unrecorded(struct mount *mount)
{
	struct sim *sim = mount->sim;

	for (int i = 0; i < sim->taker_count; i++) {
		struct taker *taker = sim->all[i];

		if (taker->phase != T_LEFT || !is_unrecorded(taker, mount))
			continue;
		mount->told.takes--;
		mount->told.failures -= taker->refused;
		mount->told.abandoned -= !taker->refused;
		taker->life = -1;
	}
}

void users_claim(struct mount *mount, bool died)
{
	struct sim *sim = mount->sim;
	struct taker *taker, *t;

	if (died)
		forget_unrecorded(mount);
	for (int i = 0; i < sim->plan.locks; i++) /* a grant that was not told did not happen */
		sim->locks[i].handed_us[mount->host.index] = 0;
	DL_FOREACH_SAFE(sim->takers, taker, t)
		if (taker->mount == mount && !sim->violation[0]) {
			sim->inside_call = true;
			if (died && is_unrecorded(taker, mount))
				ask_again(taker);
			else
				claim(taker);
		}
	sim->inside_call = true;
	lc_claimed(mount->host.lc);
	if (died && mount->forfeited)
		lc_forfeit(mount->host.lc);
	else if (died && mount->drained)
		lc_drain(mount->host.lc);
	sim->inside_call = false;
}

/* Programs without a taker end; the others finish their work. */
void users_stop(struct sim *sim)
{
	sim->stopping = true;
	for (int i = 0; i < sim->program_count; i++)
		if (!sim->programs[i].taker)
			next(&sim->programs[i], 0);
}

void users_begin(struct sim *sim)
{
	int count = sim->plan.mounts * sim->plan.programs;

	sim->programs = arena_zalloc(&sim->arena, (size_t)count * sizeof(*sim->programs));
	sim->program_count = sim->programs_left = count;
	for (int i = 0; i < count; i++) {
		struct program *program = &sim->programs[i];

		*program = (struct program){
			.sim = sim,
			.mount = &sim->mounts[i % sim->plan.mounts],
			.rng = rng_fork(&sim->rng),
			.mode_rng = {sim->seed * 0x9e3779b97f4a7c15u + 1000 + (uint64_t)i},
			.burst_rng = {sim->seed * 0x9e3779b97f4a7c15u + 7000 + (uint64_t)i},
			.process = PROCESS_BASE + i};
		think(program);
	}
}

void users_finish(struct sim *sim)
{
	free(sim->all);
	sim->all = NULL;
}
