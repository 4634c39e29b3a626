/* SPDX-License-Identifier: MIT
 *
 * main.c - every allocation of every scenario fails in turn: alone, then together with the
 * allocations of a short, and of a long time after it. Prints one line for each scenario.
 *
 * A scenario runs in a child, which may crash: a crash counts, and the next child goes on
 * behind the allocation whose failure caused it.
 *
 *   oom                        all scenarios
 *   oom SCENARIO               one scenario
 *   oom every N                all scenarios, but only each Nth allocation fails
 *   oom SCENARIO once|short|patchy|long K     one run, traced, in this process
 */
#include "parts.h"
#include "scenarios.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHOWN_MAX 3 /* violations printed for each kind of run */

static const struct kind {
	const char *name;
	int64_t spell_us;
	bool patchy; /* only about every second one fails */
} kinds[] = {
	{"once", 0, false},
	{"short", 3 * SECOND, false},
	{"patchy", 3 * SECOND, true},
	{"long", 90 * SECOND, false}, /* the slow timer itself finds no memory once */
};
#define KINDS ((int)(sizeof(kinds) / sizeof(kinds[0])))

/* The work of a child so far. */
struct tally {
	long allocations, at, runs, rescued, violations;
	int64_t longest_us;
	bool finished;
};

static struct tally *shared;
static long step = 1;

/* ---- one run ---- */

static struct bench bench;
static struct outcome expected;

static void run_scenario(const struct scenario *scenario, const struct kind *kind, long at,
                         enum trace_mode mode)
{
	memory_start(at, kind->spell_us, kind->patchy, &bench.stage.agenda.now_us, scenario->least);
	trace_start(mode, &bench.stage.agenda.now_us);
	bench_begin(&bench, at ? &expected : NULL, kind->spell_us);
	scenario->play(&bench);
	bench_end(&bench);
	if (!at)
		bench_outcome(&bench, &expected);
	bench_finish(&bench);
}

/* NULL, or a text that says what is wrong. */
static const char *run_part(const struct part *part, const struct kind *kind, long at)
{
	const char *wrong;

	memory_start(at, kind->spell_us, kind->patchy, NULL, 0);
	wrong = part->play();
	return wrong ? wrong : memory_alive() != 0 ? "not all is freed" : NULL;
}

static void violation(const char *name, const char *kind, long at, const char *text)
{
	if (shared->violations++ >= SHOWN_MAX)
		return;
	fprintf(stderr, "%s %s %ld: %s\n", name, kind, at, text);
	memory_show_failure();
}

/* ---- all runs of one kind, in a child ---- */

static void child(const struct scenario *scenario, const struct part *part, const struct kind *kind)
{
	static const struct kind enough = {"enough", 0, false};
	const char *name = scenario ? scenario->name : part->name, *wrong;

	if (scenario) {
		run_scenario(scenario, &enough, 0, TRACE_OFF);
		wrong = bench.violation[0] ? bench.violation : NULL;
	} else {
		part->play(); /* libc keeps a time zone from the first use on: no leak */
		wrong = run_part(part, &enough, 0);
	}
	shared->allocations = memory_count();
	if (wrong)
		violation(name, enough.name, 0, wrong);
	if (shared->allocations == 0)
		violation(name, enough.name, 0, "allocates nothing");
	while (shared->at + step <= shared->allocations) {
		shared->at += step;
		shared->runs++;
		if (scenario) {
			run_scenario(scenario, kind, shared->at, TRACE_OFF);
			wrong = bench.violation[0] ? bench.violation : NULL;
			shared->rescued += bench.longest_wait_us > RESCUED_US + kind->spell_us;
			if (shared->longest_us < bench.longest_wait_us)
				shared->longest_us = bench.longest_wait_us;
		} else {
			wrong = run_part(part, kind, shared->at);
		}
		if (wrong)
			violation(name, kind->name, shared->at, wrong);
	}
	shared->finished = true;
	exit(0); /* the leak checker of a sanitizer runs here */
}

static bool supervise(const struct scenario *scenario, const struct part *part,
                      const struct kind *kind)
{
	const char *name = scenario ? scenario->name : part->name;

	memset(shared, 0, sizeof(*shared));
	for (;;) {
		long before = shared->at;
		int status;
		pid_t pid;

		fflush(stdout);
		pid = fork();
		if (pid == 0)
			child(scenario, part, kind);
		if (pid < 0 || waitpid(pid, &status, 0) != pid) {
			perror("fork");
			return false;
		}
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
			break;
		shared->violations++;
		fprintf(stderr, "%s %s %ld: %s %d\n", name, kind->name, shared->at,
		        WIFSIGNALED(status) ? "killed by signal" : "exit status",
		        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		if (shared->finished || shared->at == before)
			break;
	}
	return shared->violations == 0;
}

static bool all_kinds(const struct scenario *scenario, const struct part *part)
{
	long runs = 0, rescued[2] = {0}, violations = 0;
	int64_t longest_us = 0;

	for (int i = 0; i < KINDS; i++) {
		supervise(scenario, part, &kinds[i]);
		runs += shared->runs;
		rescued[i > 0] += shared->rescued;
		violations += shared->violations;
		if (longest_us < shared->longest_us)
			longest_us = shared->longest_us;
	}
	printf("%-16s %6ld %6ld %8ld %8ld %6.1f s %6ld\n", scenario ? scenario->name : part->name,
	       shared->allocations, runs, rescued[0], rescued[1], (double)longest_us / SECOND,
	       violations);
	return violations == 0;
}

static int single(const char *name, const char *kind_name, long at)
{
	const struct kind *kind = NULL;
	const char *wrong = NULL;

	for (int i = 0; i < KINDS; i++)
		if (strcmp(kinds[i].name, kind_name) == 0)
			kind = &kinds[i];
	if (!kind)
		return 2;
	for (int i = 0; i < scenario_count; i++) {
		if (strcmp(scenarios[i].name, name) != 0)
			continue;
		run_scenario(&scenarios[i], kind, 0, TRACE_OFF);
		run_scenario(&scenarios[i], kind, at, TRACE_LIVE);
		wrong = bench.violation[0] ? bench.violation : NULL;
	}
	for (int i = 0; i < part_count; i++)
		if (strcmp(parts[i].name, name) == 0) {
			parts[i].play();
			wrong = run_part(&parts[i], kind, at);
		}
	fflush(stdout);
	memory_show_failure();
	if (wrong)
		violation(name, kind_name, at, wrong);
	return wrong != NULL;
}

int main(int argc, char *argv[])
{
	bool good = true;
	int played = 0;

	notes_calloc = oom_calloc;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	              0);
	if (shared == MAP_FAILED)
		return 2;
	if (argc == 4)
		return single(argv[1], argv[2], atol(argv[3]));
	if (argc == 3 && strcmp(argv[1], "every") == 0) {
		step = atol(argv[2]) > 0 ? atol(argv[2]) : 1;
		argc = 1;
	}
	/* "rescued", "in spell": runs in which only the slow timer ended a wait, where one
	 * allocation failed, and where many did. "longest": the longest wait for a free lock. */
	printf("%-16s %6s %6s %8s %8s %8s %6s\n", "scenario", "allocs", "runs", "rescued",
	       "in spell", "longest", "wrong");
	for (int i = 0; i < scenario_count; i++)
		if (argc < 2 || strcmp(argv[1], scenarios[i].name) == 0) {
			good &= all_kinds(&scenarios[i], NULL);
			played++;
		}
	for (int i = 0; i < part_count; i++)
		if (argc < 2 || strcmp(argv[1], parts[i].name) == 0) {
			good &= all_kinds(NULL, &parts[i]);
			played++;
		}
	return good && played > 0 ? 0 : 1;
}
