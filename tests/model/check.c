/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WAY_MAX 4096

/* The states at one distance from the first one, each with its number. */
struct level {
	FILE *file;
	size_t count;
};

static struct {
	const struct check_model *model;
	uint64_t *met;    /* the 64 bits of each state, in a table */
	size_t room;      /* of the table: a power of two */
	uint32_t *before; /* of each state, by its number: where it was reached from, */
	uint16_t *turn;   /*   and which of the steps from there it was */
	struct level now, next;
	uint32_t expanded; /* the number of the state that is expanded */
	uint16_t turns;    /* its steps so far */
	uint32_t wrong_at;
	size_t max;
	struct check_result result;
	bool stopped;
	/* going a way again */
	void *found; /* the state after step `wanted`; NULL: not looking for one */
	uint16_t wanted;
	unsigned action;
} check;

static uint64_t hash(const unsigned char *bytes, size_t size)
{
	uint64_t sum = UINT64_C(0x9E3779B97F4A7C15) ^ size;

	for (size_t at = 0; at < size; at += 8) {
		uint64_t part = 0;

		memcpy(&part, bytes + at, size - at < 8 ? size - at : 8);
		sum = (sum ^ part) * UINT64_C(0xff51afd7ed558ccd);
		sum ^= sum >> 29;
	}
	sum = (sum ^ (sum >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
	sum ^= sum >> 33;
	return sum ? sum : 1;
}

/* False: it was met before. */
static bool remember(uint64_t bits)
{
	size_t at = bits & (check.room - 1);

	for (; check.met[at]; at = (at + 1) & (check.room - 1))
		if (check.met[at] == bits)
			return false;
	check.met[at] = bits;
	return true;
}

static void keep(const void *state)
{
	uint32_t number = (uint32_t)check.result.states;

	if (fwrite(&number, sizeof(number), 1, check.next.file) != 1 ||
	    fwrite(state, check.model->size, 1, check.next.file) != 1) {
		perror("check: the states cannot be written");
		exit(2);
	}
	check.next.count++;
}

void check_drop(void)
{
	check.result.dropped += !check.found;
}

void check_next(const void *state, unsigned action)
{
	uint16_t turn = check.turns++;
	const char *wrong;

	if (check.found) {
		if (turn == check.wanted) {
			memcpy(check.found, state, check.model->size);
			check.action = action;
		}
		return;
	}
	if (check.result.wrong || check.stopped)
		return;
	check.result.steps++;
	if (!remember(hash(state, check.model->size)))
		return;
	if (check.result.states >= check.max) {
		check.stopped = true;
		return;
	}
	check.before[check.result.states] = check.expanded;
	check.turn[check.result.states] = turn;
	wrong = check.model->judge(state);
	if (wrong) {
		check.result.wrong = wrong;
		check.wrong_at = (uint32_t)check.result.states;
	}
	keep(state);
	check.result.states++;
}

static void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (memory)
		return memory;
	fprintf(stderr, "check: no memory\n");
	exit(2);
}

static void print_way(FILE *file)
{
	static uint32_t way[WAY_MAX];
	void *state = allocate(1, check.model->size), *after = allocate(1, check.model->size);
	size_t length = 0;

	for (uint32_t at = check.wrong_at; at != 0 && length < WAY_MAX; at = check.before[at])
		way[length++] = at;
	check.model->first(state);
	fprintf(file, "first: ");
	check.model->print(state, file);
	for (size_t i = length; i-- > 0;) {
		check.found = after;
		check.wanted = check.turn[way[i]];
		check.turns = 0;
		check.model->expand(state);
		check.found = NULL;
		memcpy(state, after, check.model->size);
		fprintf(file, "%zu ", length - i);
		check.model->print_action(check.action, file);
		fprintf(file, ": ");
		check.model->print(state, file);
	}
	free(state);
	free(after);
}

static FILE *open_level(void)
{
	FILE *file = tmpfile();

	if (file)
		return file;
	perror("check: no file for the states");
	exit(2);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void expand_level(void *state)
{
	for (size_t i = 0; i < check.now.count && !check.result.wrong && !check.stopped; i++) {
		if (fread(&check.expanded, sizeof(check.expanded), 1, check.now.file) != 1 ||
		    fread(state, check.model->size, 1, check.now.file) != 1) {
			perror("check: the states cannot be read");
			exit(2);
		}
		check.turns = 0;
		check.model->expand(state);
	}
}

static void begin(const struct check_model *model, size_t max_states, void *state)
{
	memset(&check, 0, sizeof(check));
	check.model = model;
	check.max = max_states;
	for (check.room = 1 << 16; check.room < max_states + max_states / 2;)
		check.room *= 2;
	check.met = allocate(check.room, sizeof(*check.met));
	check.before = allocate(check.max, sizeof(*check.before));
	check.turn = allocate(check.max, sizeof(*check.turn));
	check.next = (struct level){.file = open_level()};
	model->first(state);
	check_next(state, 0);
}

static void finish(void)
{
	fclose(check.next.file);
	free(check.met);
	free(check.before);
	free(check.turn);
}

struct check_result check_run(const struct check_model *model, size_t max_states, FILE *trace)
{
	void *state = allocate(1, model->size);
	double begun = now();

	begin(model, max_states, state);
	for (; check.next.count > 0 && !check.result.wrong && !check.stopped;
	     check.result.depth++) {
		check.now = check.next;
		rewind(check.now.file);
		check.next = (struct level){.file = open_level()};
		expand_level(state);
		fclose(check.now.file);
	}
	check.result.seconds = now() - begun;
	check.result.verdict = check.result.wrong ? CHECK_WRONG
	                       : check.stopped    ? CHECK_STOPPED
	                                          : CHECK_ALL_GOOD;
	if (check.result.wrong && trace)
		print_way(trace);
	finish();
	free(state);
	return check.result;
}
