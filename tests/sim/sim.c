/* SPDX-License-Identifier: MIT
 *
 * sim.c - the course of one run, and the program.
 *
 *   chaos    programs take and leave, outsiders come, faults strike
 *   healing  the last faults end, programs go on
 *   closing  programs take no lock any more; every waiter gets its turn and leaves
 *   end      not one entry is left, every engine is idle
 */
#include "sim.h"

#include "mutation.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t current_seed;

/* ---- one run ---- */

static void make_locks(struct sim *sim)
{
	static const char *const names[LOCKS_MAX] = {"build", "team", "team/deploy", "q"};

	world_do(&sim->world, 0, OP(.kind = ENSEMBLE_CREATE, .path = SIM_ROOT), 1, NULL);
	for (int i = 0; i < sim->plan.locks; i++) {
		struct lock_state *lock = &sim->locks[i];

		lock->name = names[i];
		lock->path = arena_printf(&sim->arena, SIM_ROOT "/%s", names[i]);
		outsider_make(sim, lock);
	}
	for (int i = 0; i < sim->plan.world.servers; i++)
		while (sim->world.servers[i].applied < sim->world.log_count)
			agenda_step(&sim->agenda);
	if (sim->plan.near_overflow)
		for (int i = 0; i < sim->plan.locks; i++)
			world_set_counter(&sim->world, sim->locks[i].path,
			                  rng_chance(&sim->rng, 500)
			                          ? INT32_MAX - (int32_t)rng_below(&sim->rng, 8)
			                          : INT32_MAX - 65535 -
			                                    (int32_t)rng_below(&sim->rng, 8));
}

static void committing(void *ctx, const struct transaction *transaction)
{
	order_committing(ctx, transaction);
	lock_data_committing(ctx, transaction);
	marks_committing(ctx, transaction);
}

static struct rng sim_rng(uint64_t seed)
{
	return (struct rng){seed * 0x2545f4914f6cdd1du + 1};
}

static void sim_init(struct sim *sim, uint64_t seed, struct sim_totals *totals,
                     enum trace_mode mode)
{
	*sim = (struct sim){.seed = seed, .rng = sim_rng(seed), .totals = totals};
	plan_choose(&sim->plan, seed, &sim->rng);
	agenda_init(&sim->agenda, rng_between(&sim->rng, 1000000, 1000000000));
	trace_start(mode, &sim->agenda.now_us);
	world_init(&sim->world, &sim->agenda, rng_fork(&sim->rng), &sim->plan.world);
	make_locks(sim);
	sim->world.committing = committing;
	sim->world.committing_ctx = sim;
	trace("seed %" PRIu64
	      ": %s, %d mounts, %d locks, %d programs each, %d servers, T %d ms, tick %d ms%s",
	      seed, sim->plan.profile, sim->plan.mounts, sim->plan.locks, sim->plan.programs,
	      sim->plan.world.servers, (int)(sim->plan.timeout_us / 1000),
	      (int)(sim->plan.tick_us / 1000), sim->plan.near_overflow ? ", near 2^31" : "");
	strays_begin(sim);
	judge_begin(sim);
	for (int i = 0; i < sim->plan.mounts; i++) {
		mount_begin(&sim->mounts[i], sim, i);
		mount_start(&sim->mounts[i]);
	}
	users_begin(sim);
	outsiders_begin(sim);
	owners_begin(sim);
	faults_begin(sim);
}

static void step_until(struct sim *sim, int64_t until_us)
{
	while (!sim->violation[0] && sim->agenda.heap[0].when_us <= until_us) {
		agenda_step(&sim->agenda);
		judge_step(sim);
		sim->totals->steps++;
	}
}

/* As at SIGTERM: some mounts take no more takers, and waiters are told; or, as after the
 * time for draining, holders lose their locks as well. */
static void drain_some(struct sim *sim)
{
	for (int i = 0; i < sim->plan.mounts; i++) {
		struct mount *mount = &sim->mounts[i];

		if (!rng_chance(&sim->rng, 150) || mount->host.paused)
			continue;
		mount->drained = true;
		mount->forfeited = sim->seed % 2 == 0;
		trace("%s: drains%s", mount->host.name, mount->forfeited ? ", all is lost" : "");
		sim->inside_call = true;
		if (mount->forfeited)
			lc_forfeit(mount->host.lc);
		else
			lc_drain(mount->host.lc);
		sim->inside_call = false;
		host_wake(&mount->host);
	}
}

static void sim_close(struct sim *sim)
{
	int64_t deadline_us = sim->agenda.now_us + 3 * sim->plan.timeout_us + 120000000;
	int64_t until_us = sim->agenda.now_us;

	while (!sim->violation[0] && !judge_all_clear(sim)) {
		if (until_us > deadline_us)
			judge_leftovers(sim);
		until_us += 100000;
		step_until(sim, until_us);
	}
	judge_counters(sim);
}

static void sim_finish(struct sim *sim)
{
	for (int i = 0; i < sim->plan.mounts; i++) {
		struct mount *mount = &sim->mounts[i];
		struct lc_status status;

		lc_status(mount->host.lc, &status);
		sim->totals->session_ends += status.sessions ? status.sessions - 1 : 0;
		users_abandon(mount);
		mount_stop(mount, true);
		host_finish(&mount->host);
	}
	sim->totals->transactions += sim->world.transactions;
	sim->totals->transaction_ops += sim->world.transaction_ops;
	sim->totals->virtual_s += (unsigned long)(sim->agenda.now_us / 1000000);
	users_finish(sim);
	world_finish(&sim->world);
	strays_finish(sim);
	agenda_finish(&sim->agenda);
	arena_finish(&sim->arena);
}

bool sim_run(uint64_t seed, struct sim_totals *totals, enum trace_mode mode, char *ret_violation,
             size_t size)
{
	struct sim *sim = calloc(1, sizeof(*sim));
	bool good;

	if (!sim)
		abort();
	sim_init(sim, seed, totals, mode);
	step_until(sim, sim->agenda.now_us + sim->plan.chaos_us);
	sim->faulty = false;
	sim->world.config.snap_per_mille = 0;
	/* a stall may have begun at the last moment */
	if (sim->faults_end_us < sim->agenda.now_us + sim->plan.timeout_us)
		sim->faults_end_us = sim->agenda.now_us + sim->plan.timeout_us;
	step_until(sim, sim->faults_end_us);
	step_until(sim, sim->agenda.now_us + 3000000);
	drain_some(sim);
	step_until(sim, sim->agenda.now_us + 1000000);
	users_stop(sim);
	trace("closing");
	sim_close(sim);
	good = !sim->violation[0];
	if (!good)
		snprintf(ret_violation, size, "%s (%s)", sim->violation, sim->plan.profile);
	sim_finish(sim);
	free(sim);
	totals->seeds++;
	return good;
}

/* ---- the program ---- */

static void crashed(int signal_number)
{
	char text[96];
	int len = snprintf(text, sizeof(text), "seed %" PRIu64 ": signal %d\n", current_seed,
	                   signal_number);

	if (write(STDERR_FILENO, text, (size_t)len) < 0)
		_exit(3);
	if (trace_enabled)
		trace_tail();
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

/* AddressSanitizer calls this before it reports. */
void __asan_on_error(void);
void __asan_on_error(void)
{
	fprintf(stderr, "seed %" PRIu64 ":\n", current_seed);
	if (trace_enabled)
		trace_tail();
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void print_totals(const struct sim_totals *totals, double took)
{
	printf("%lu seeds in %.1f s: %.1f seeds/s, %.0f steps/s, %lu s of virtual time\n",
	       totals->seeds, took, (double)totals->seeds / took, (double)totals->steps / took,
	       totals->virtual_s);
	printf("takes %lu, grants %lu, %lu of them shared, losses %lu, sessions ended %lu\n",
	       totals->takes, totals->grants, totals->shared_grants, totals->losses,
	       totals->session_ends);
	printf("EAGAIN %lu, %lu of them crowded, ETIMEDOUT %lu, ENOENT %lu, ECANCELED %lu, EDEADLK "
	       "%lu; upgrades %lu\n",
	       totals->eagain, totals->crowded, totals->etimedout, totals->enoent,
	       totals->ecanceled, totals->edeadlk, totals->upgrades);
	printf("ENOLCK %lu, ESHUTDOWN %lu, EHOSTUNREACH %lu, EPROTO %lu\n", totals->enolck,
	       totals->eshutdown, totals->ehostunreach, totals->eproto);
	printf("questions %lu, unreachable %lu; locks remembered %lu; marks %lu, waiters changed "
	       "%lu; held too long %lu\n",
	       totals->questions, totals->unreachable, totals->recalls, totals->marks,
	       totals->stirs, totals->overdue);
	printf("takes by the entry of the take before %lu; rests %lu\n", totals->reuses,
	       totals->rests);
	printf("transactions %lu of %lu operations\n", totals->transactions,
	       totals->transaction_ops);
	printf("went on in another process %lu, after a death %lu, of its takers not claimed %lu; "
	       "did "
	       "not %lu\n",
	       totals->reloads, totals->deaths, totals->unclaimed, totals->not_reloaded);
	printf("faults:");
	for (int i = 0; i < FAULT_KINDS; i++)
		printf(" %s %lu", fault_names[i], totals->faults[i]);
	printf("\n");
}

static enum mutation find_mutation(const char *name)
{
	enum mutation found = mutation_find(name);

	if (found < MUTATION_COUNT)
		return found;
	fprintf(stderr, "no mutation %s; there are:\n", name);
	for (int i = 1; i < MUTATION_COUNT; i++)
		fprintf(stderr, "  %-16s %s\n", mutation_name((enum mutation)i),
		        mutation_text((enum mutation)i));
	exit(2);
}

static void usage(void)
{
	fprintf(stderr,
	        "usage: sim --seed N [--trace] | --seeds A..B [--keep-going] [--expect-violation]\n"
	        "           [--profile NAME] [--mutation NAME | --all-mutations]\n");
	exit(2);
}

struct options {
	uint64_t first, last;
	bool live, keep_going, expect, all;
	const char *profile; /* only seeds that choose it; NULL: all */
};

static void parse(int argc, char **argv, struct options *ret)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--trace"))
			ret->live = true;
		else if (!strcmp(argv[i], "--keep-going"))
			ret->keep_going = true;
		else if (!strcmp(argv[i], "--expect-violation"))
			ret->expect = true;
		else if (!strcmp(argv[i], "--all-mutations"))
			ret->all = true;
		else if (!strcmp(argv[i], "--profile") && i + 1 < argc)
			ret->profile = argv[++i];
		else if (!strcmp(argv[i], "--mutation") && i + 1 < argc)
			mutation = find_mutation(argv[++i]);
		else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			ret->first = ret->last = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--seeds") && i + 1 < argc &&
		         sscanf(argv[i + 1], "%" SCNu64 "..%" SCNu64, &ret->first, &ret->last) == 2)
			i++;
		else
			usage();
	}
	if (mutation != MUTATE_none)
		ret->expect = true;
}

static bool wanted(uint64_t seed, const struct options *options)
{
	struct rng rng = sim_rng(seed);
	struct plan plan;

	if (!options->profile)
		return true;
	plan_choose(&plan, seed, &rng);
	return strcmp(plan.profile, options->profile) == 0;
}

/* Runs a seed without a trace, which is fast; a seed that fails is run again with a trace. */
static bool run_seed(uint64_t seed, const struct options *options, struct sim_totals *totals)
{
	struct sim_totals scrap = {0};
	char violation[640];

	current_seed = seed;
	if (sim_run(seed, totals, options->live ? TRACE_LIVE : TRACE_OFF, violation,
	            sizeof(violation)))
		return true;
	if (options->expect && !options->live) {
		printf("seed %" PRIu64 ": %s\n", seed, violation);
		return false;
	}
	if (!options->live && !options->keep_going) {
		sim_run(seed, &scrap, TRACE_TAIL, violation, sizeof(violation));
		trace_tail();
	}
	fflush(stdout);
	fprintf(stderr, "seed %" PRIu64 ": VIOLATION %s\n", seed, violation);
	return false;
}

/* A lie may also make an assertion of the engine fail, so each seed that has to
 * fail runs in a process of its own. */
static bool fails(uint64_t seed, const struct options *options, struct sim_totals *totals)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (!options->live)
			close(STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		alarm(20);
		_exit(run_seed(seed, options, totals) ? 0 : (fflush(stdout), 1));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		abort();
	if (WIFSIGNALED(status))
		printf("seed %" PRIu64 ": killed by signal %d\n", seed, WTERMSIG(status));
	return status != 0;
}

static int expect_violation(const struct options *options)
{
	struct sim_totals totals = {0};

	for (uint64_t seed = options->first; seed <= options->last; seed++)
		if (wanted(seed, options) && fails(seed, options, &totals))
			return 0;
	fprintf(stderr, "%s: no violation up to seed %" PRIu64 "\n", mutation_name(mutation),
	        options->last);
	return 1;
}

static int all_mutations(struct options *options)
{
	int failed = 0;

	options->expect = true;
	for (int i = MUTATE_none + 1; i < MUTATION_COUNT; i++) {
		mutation = (enum mutation)i;
		printf("%-16s ", mutation_name(mutation));
		failed |= expect_violation(options);
	}
	return failed;
}

int main(int argc, char **argv)
{
	struct options options = {.first = 1, .last = 100};
	struct sim_totals totals = {0};
	unsigned long violations = 0;
	double start = seconds();

	parse(argc, argv, &options);
	if (options.all)
		return all_mutations(&options);
	if (options.expect)
		return expect_violation(&options);
	signal(SIGABRT, crashed);
#ifndef __SANITIZE_ADDRESS__
	signal(SIGSEGV, crashed);
#endif
	for (uint64_t seed = options.first; seed <= options.last; seed++) {
		if (!wanted(seed, &options) || run_seed(seed, &options, &totals))
			continue;
		violations++;
		if (!options.keep_going)
			break;
	}
	print_totals(&totals, seconds() - start);
	return violations ? 1 : 0;
}
