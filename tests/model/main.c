/* SPDX-License-Identifier: MIT
 *
 * main.c - goes through all states of one configuration. See README.md for the options.
 */
#include "model.h"

#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct config config = {
	.slots = 1, .on_lost = true, .waiters_leave = true, .slow = true, .symmetry = true};
enum mutant mutant;

#define MUTANT_NAME(name) #name,
static const char *const mutant_names[] = {MUTANTS(MUTANT_NAME)};

static void first(void *ret_state)
{
	struct state *state = ret_state;

	memset(state, 0, sizeof(*state));
	for (int m = 0; m < config.mounts; m++)
		state->mount[m] =
			(struct mount){.link = 2, .lease = 1, .session = 1, .flags = M_WRITE_OK};
	state->deletes = (uint8_t)config.deletes;
	state->pairs = (uint8_t)config.pairs;
	state->cuts = (uint8_t)config.cuts;
	state->reloads = (uint8_t)config.reloads;
	state->ends = (uint8_t)config.ends;
	state->marks = (uint8_t)config.marks;
}

/* ---- for readers ---- */

static void print_queue(const struct state *state, FILE *file)
{
	unsigned there = committed(state);

	fprintf(file, "queue");
	for (int number = 1; number <= state->numbers; number++)
		for (int e = 0; e < config.takers; e++)
			if (state->number[e] == number)
				fprintf(file, " %d%s", e, there & BIT(e) ? "" : " (gone)");
}

static void print_mount(const struct state *state, int m, FILE *file)
{
	static const char *const states[] = {"idle", "waits", "HOLDS", "lost", "left", "ended"};
	static const char *const entries[] = {"", " creating", " unknown", "", " deleting"};
	const struct mount *mount = &state->mount[m];

	fprintf(file, "; mount %d%s%s, %d behind, %d requests:", m,
	        !mount->session    ? " ended"
	        : mount->link == 2 ? ""
	                           : " away",
	        mount->lease ? "" : " without lease", state->logged - mount->applied,
	        mount->requests);
	for (int e = 0; e < config.takers; e++)
		if (config.owner[e] == m)
			fprintf(file, " %d %s%s%s", e, states[state->taker[e].state],
			        entries[state->taker[e].entry],
			        state->taker[e].watch == W_GOOD ? " seen" : "");
	if (mount->unseen)
		fprintf(file, ", guard for %d", mount->unseen - 1);
}

static void print(const void *state, FILE *file)
{
	print_queue(state, file);
	for (int m = 0; m < config.mounts; m++)
		print_mount(state, m, file);
	fprintf(file, "\n");
}

static void print_action(unsigned action, FILE *file)
{
	static const char *const names[] = {
		[COMMIT] = "the leader takes a write of mount",
		[SERVE] = "a read is answered to mount",
		[APPLY] = "a change comes to the server of mount",
		[APPLY_REVERSED] = "a change, in the other order, comes to the server of mount",
		[BEGIN] = "comes: taker",
		[LEAVE] = "leaves: taker",
		[RETAKE] = "leaves, and in the same turn another one comes: takers",
		[SLOW] = "has held for 20 ms: taker",
		[CUT] = "the connection ends of mount",
		[CONNECT] = "connects again: mount",
		[DROP] = "requests of the former connection are lost of mount",
		[SKIP] = "another server, which knows more, for mount",
		[LEASE_END] = "the lease ends of mount",
		[EXPIRE] = "the session ends of mount",
		[AGAIN] = "is told so, and begins a new session: mount",
		[DELETE] = "an operator deletes the entry of taker",
		[PAIR] = "an operator deletes in one transaction the entries of takers",
		[MARK] = "an evictor marks the entry of taker",
		[EVICT] = "the evictor's time is over: it deletes the entry of taker",
		[BEAT] = "a heartbeat of mount",
		[RELOAD] = "another process goes on, with a server that has so many changes, for "
			   "mount",
	};

	fprintf(file, "%s %d", names[action >> 16], (int)(action >> 8 & 0xff) - 1);
	if (action & 0xff)
		fprintf(file, " %d", (int)(action & 0xff) - 1);
}

static const struct check_model model = {
	.size = sizeof(struct state),
	.first = first,
	.expand = expand,
	.judge = judge,
	.print = print,
	.print_action = print_action,
};

/* ---- options ---- */

static void usage(void)
{
	fprintf(stderr,
	        "usage: model [-c TAKERS,...] [-s MASK] [-t MASK] [-u MASK] [-i SLOTS] [-a] "
	        "[-o N] [-p N] [-d N] [-r N] [-e N] [-k N] [-l] [-w] [-H] [-y] [-m MUTANT] [-n "
	        "MILLIONS] [-x]\n");
	exit(2);
}

/* How many takers each mount has. */
static void set_takers(const char *text)
{
	for (; *text; text++) {
		if (*text == ',')
			continue;
		if (config.mounts >= MOUNTS || config.users + (*text - '0') > TAKERS)
			usage();
		for (int i = 0; i < *text - '0'; i++) {
			config.of_mount[config.mounts] |= BIT(config.users);
			config.owner[config.users++] = config.mounts;
		}
		config.mounts++;
	}
}

static bool has_shared_before(int e)
{
	for (int old = e - 1; old >= 0 && config.owner[old] == config.owner[e]; old--)
		if (config.shared & BIT(old))
			return true;
	return false;
}

/* Each taker may go on in a new session, as another one: see loss_of_session(). */
static void double_takers(void)
{
	config.takers = config.users;
	if (!config.again)
		return;
	if (2 * config.users > TAKERS)
		usage();
	for (int e = 0; e < config.users; e++) {
		config.of_mount[config.owner[e]] |= BIT(config.takers);
		config.owner[config.takers++] = config.owner[e];
	}
}

static unsigned mask(const char *text)
{
	return (unsigned)strtoul(text, NULL, 0);
}

static void set_mutant(const char *name)
{
	for (size_t i = 0; i < sizeof(mutant_names) / sizeof(mutant_names[0]); i++)
		if (strcmp(name, mutant_names[i]) == 0) {
			mutant = (enum mutant)i;
			return;
		}
	fprintf(stderr, "model: no such mutant: %s\n", name);
	exit(2);
}

static int *fault(int option)
{
	switch (option) {
	case 'o':
		return &config.deletes;
	case 'p':
		return &config.pairs;
	case 'd':
		return &config.cuts;
	case 'r':
		return &config.reloads;
	case 'e':
		return &config.ends;
	case 'k':
		return &config.marks;
	default:
		usage();
	}
	return NULL;
}

static void set_switch(int option, FILE **trace)
{
	switch (option) {
	case 'l':
		config.on_lost = false;
		break;
	case 'w':
		config.waiters_leave = false;
		break;
	case 'H':
		config.slow = false;
		break;
	case 'a':
		config.again = true;
		break;
	case 'i':
		config.slots = atoi(optarg);
		break;
	case 'y':
		config.symmetry = false;
		break;
	case 'x':
		*trace = NULL;
		break;
	default:
		*fault(option) = atoi(optarg);
	}
}

static void read_options(int argc, char **argv, size_t *max_states, FILE **trace)
{
	int option;

	while ((option = getopt(argc, argv, "c:s:t:u:i:ao:p:d:r:e:k:lwHyxm:n:")) != -1)
		switch (option) {
		case 'c':
			set_takers(optarg);
			break;
		case 's':
			config.shared = mask(optarg);
			break;
		case 't':
			config.tries = mask(optarg);
			break;
		case 'u':
			config.upgrades = mask(optarg);
			break;
		case 'm':
			set_mutant(optarg);
			break;
		case 'n':
			*max_states = (size_t)(atof(optarg) * 1e6);
			break;
		default:
			set_switch(option, trace);
		}
	if (optind < argc || config.users == 0 || config.slots < 1)
		usage();
	for (int e = 0; e < config.users; e++)
		if (config.upgrades & BIT(e) && !has_shared_before(e))
			usage();
	double_takers();
}

int main(int argc, char **argv)
{
	size_t max_states = 4000000;
	struct check_result result;
	FILE *trace = stdout;

	read_options(argc, argv, &max_states, &trace);
	result = check_run(&model, max_states, trace);
	printf("%s: %zu states, %zu steps, depth %u, %.1f s%s\n",
	       result.wrong                      ? result.wrong
	       : result.verdict == CHECK_STOPPED ? "stopped at a limit, nothing wrong so far"
	                                         : "all states, nothing wrong",
	       result.states, result.steps, result.depth, result.seconds,
	       result.dropped ? ", bounded" : "");
	return (int)result.verdict;
}
