/* SPDX-License-Identifier: MIT
 *
 * known_main.c - goes through all states of one configuration. See README.md for the options.
 */
#include "known.h"

#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct config config = {.slots = 1, .slots_max = 1, .upgrade = -1, .replaces = -1};
enum mutant mutant;

#define MUTANT_NAME(name) #name,
static const char *const mutant_names[] = {MUTANTS(MUTANT_NAME)};

static void first(void *ret_state)
{
	memset(&now, 0, sizeof(now));
	now.link = 2;
	now.server.slots = (uint8_t)config.slots;
	now.server.life = 1;
	now.deletes = (uint8_t)config.deletes;
	now.cuts = (uint8_t)config.cuts;
	now.reloads = (uint8_t)config.reloads;
	now.losses = (uint8_t)config.losses;
	now.changes = (uint8_t)config.changes;
	now.removes = (uint8_t)config.removes;
	now.lapses = (uint8_t)config.lapses;
	memcpy(ret_state, &now, sizeof(now));
}

/* ---- for readers ---- */

static void print_set(const char *what, unsigned set, FILE *file)
{
	fprintf(file, "; %s", what);
	for (int e = 0; e < config.all; e++)
		if (set & BIT(e))
			fprintf(file, " %d", e);
}

static void print(const void *state, FILE *file)
{
	static const char *const phases[] = {"idle",  "probes", "creates", "does not know", "waits",
	                                     "HOLDS", "lost",   "kept",    "leaves",        "done"};

	now = *(const struct state *)state;
	for (int e = 0; e < config.all; e++)
		fprintf(file, "%s%d %s %d%s%s", e ? ", " : "", e, phases[now.taker[e].phase],
		        now.taker[e].number, now.taker[e].flags & SEEN ? " seen" : "",
		        now.taker[e].flags & WATCHED ? " watched" : "");
	print_set("leader:", leader_view().present, file);
	print_set("server:", now.server.present, file);
	print_set("known:", now.known, file);
	fprintf(file, " up to %d; link %d, lock watched %d, unproved %d;", now.known_number,
	        now.link, now.lock_watch, now.unproved - 1);
	for (int i = 0; i < now.requests; i++)
		fprintf(file, " %c%d%s", " CDXBLON"[now.request[i].kind], now.request[i].a,
		        now.request[i].done ? "!" : "");
	fprintf(file, "\n");
}

static void print_action(unsigned action, FILE *file)
{
	fprintf(file, "%s %d", action_names[action >> 8], (int)(action & 0xff));
}

static const struct check_model model = {
	.size = sizeof(struct state),
	.first = first,
	.expand = expand,
	.judge = judge,
	.print = print,
	.print_action = print_action,
};

static enum mutant find_mutant(const char *name)
{
	for (int m = 0; m < MUTANT_COUNT; m++)
		if (strcmp(name, mutant_names[m]) == 0)
			return (enum mutant)m;
	fprintf(stderr, "no such mutant: %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	size_t millions = 64;
	bool trace = true;
	struct check_result result;
	int option;

	while ((option = getopt(argc, argv, "c:s:t:u:a:i:I:o:d:r:l:z:b:w:jkm:n:x")) >= 0) {
		int number = optarg ? atoi(optarg) : 0;

		switch (option) {
		case 'c':
			config.own = number;
			config.all = number + atoi(strchr(optarg, '+') + 1);
			break;
		case 's':
			config.shared = (unsigned)number;
			break;
		case 't':
			config.tries = (unsigned)number;
			break;
		case 'u':
			config.upgrade = number;
			config.replaces = number - 1;
			break;
		case 'a':
			config.apart = (unsigned)number;
			break;
		case 'i':
			config.slots = config.slots_max = number;
			break;
		case 'I':
			config.slots_max = number;
			break;
		case 'o':
			config.deletes = number;
			break;
		case 'd':
			config.cuts = number;
			break;
		case 'r':
			config.reloads = number;
			break;
		case 'l':
			config.losses = number;
			break;
		case 'z':
			config.changes = number;
			break;
		case 'b':
			config.removes = number;
			break;
		case 'w':
			config.lapses = number;
			break;
		case 'k':
			config.kept = true;
			break;
		case 'j':
			config.joined = true;
			break;
		case 'm':
			mutant = find_mutant(optarg);
			break;
		case 'n':
			millions = (size_t)number;
			break;
		case 'x':
			trace = false;
			break;
		default:
			return 2;
		}
	}
	if (config.own < 1 || config.all > TAKERS) {
		fprintf(stderr, "known: -c OWN+OTHERS, at most %d\n", TAKERS);
		return 2;
	}
	result = check_run(&model, millions * 1000000, trace ? stdout : NULL);
	printf("%zu states, depth %u, %.1f s%s%s%s\n", result.states, result.depth, result.seconds,
	       result.dropped ? ", bounded" : "", result.verdict == CHECK_WRONG ? ": " : "",
	       result.verdict == CHECK_WRONG     ? result.wrong
	       : result.verdict == CHECK_STOPPED ? ", stopped"
	                                         : "");
	return result.verdict == CHECK_ALL_GOOD ? 0 : result.verdict == CHECK_WRONG ? 1 : 2;
}
