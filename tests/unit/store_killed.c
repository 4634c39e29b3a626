/* SPDX-License-Identifier: MIT
 *
 * A process that writes a store is stopped at each instruction, or killed at any moment: the store
 * then shows one of the two neighbouring commits, whole, with its answers and with the requests
 * that were read since.
 *
 * The changes of a turn follow from its number alone, so that the state after it is known, too.
 */
#include "store/store.h"

#include "unit.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEYS_MAX 3000
#define LEN_MAX 2000
/* The record with the number of the turn. */
#define KIND_TURN 2
#define KIND_THING 1

/* The size of a test's turns. */
struct play {
	unsigned keys, changes, len;
	unsigned long_answers; /* in turns up to this one: they fill the half */
};

/* Written by the process that is killed. */
struct told {
	_Atomic unsigned begun, finished; /* commits */
	_Atomic unsigned read;            /* requests of the turn after `finished` */
	_Atomic unsigned commits;         /* of all processes together */
	_Atomic bool done;
};

static const struct play *play;
static struct told *told;

static unsigned any(unsigned turn, unsigned what, unsigned most)
{
	uint64_t x = ((uint64_t)turn << 32 | what) + UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (unsigned)((x ^ x >> 31) % most);
}

/* ---- what a turn does ---- */

static unsigned key_of(unsigned turn, unsigned change)
{
	return any(turn, 100 + change, play->keys);
}

static bool is_drop(unsigned turn, unsigned key)
{
	return any(turn, 1000 + key, 4) == 0;
}

static size_t fill_thing(unsigned char bytes[LEN_MAX], unsigned turn, unsigned key)
{
	size_t len = any(turn, 10000 + key, play->len);

	memset(bytes, (int)(turn * 31 + key), len);
	return len;
}

static unsigned count_requests(unsigned turn)
{
	return any(turn, 1, 4);
}

static uint32_t fill_request(unsigned char bytes[4096], unsigned turn, unsigned number)
{
	uint32_t len = 40 + any(turn, 10 + number, 80);

	memset(bytes, (int)(turn + number), len);
	memcpy(bytes, &len, sizeof(len));
	return len;
}

static unsigned count_answers(unsigned turn)
{
	return turn <= play->long_answers ? 1 : any(turn, 2, 4);
}

static size_t fill_answer(unsigned char bytes[100000], unsigned turn, unsigned number)
{
	size_t len = turn <= play->long_answers ? 100000 : any(turn, 20 + number, 50);

	memset(bytes, (int)(turn * 7 + number), len);
	return len;
}

static void read_requests(struct store *store, unsigned turn, unsigned read)
{
	static unsigned char bytes[4096];

	for (; read < count_requests(turn); read++) {
		uint32_t len = fill_request(bytes, turn, read);
		_Atomic uint32_t *room = store_request_room(store, sizeof(bytes));

		/* The length comes last: for this process, the kernel writes it all at once. */
		memcpy(room + 1, bytes + sizeof(len), len - sizeof(len));
		atomic_store(room, len);
		store_request_add(store, len);
		told->read++;
	}
}

static void change_things(struct store *store, unsigned turn)
{
	static unsigned char bytes[LEN_MAX];

	for (unsigned i = 0; i < play->changes; i++) {
		unsigned key = key_of(turn, i);
		size_t len = fill_thing(bytes, turn, key);

		if (is_drop(turn, key))
			store_drop(store, KIND_THING, key);
		else
			store_put(store, KIND_THING, key, bytes, len);
	}
	store_put(store, KIND_TURN, 0, &turn, sizeof(turn));
}

static void answer(struct store *store, unsigned turn)
{
	static unsigned char bytes[100000];

	for (unsigned i = 0; i < count_answers(turn); i++)
		(void)store_answer(store, i, bytes, fill_answer(bytes, turn, i));
}

static void take_turns(struct store *store, unsigned from, unsigned to)
{
	for (unsigned turn = from; turn <= to; turn++) {
		read_requests(store, turn, told->read);
		change_things(store, turn);
		answer(store, turn);
		told->begun = turn;
		if (store_commit(store) < 0)
			_exit(1);
		told->read = 0;
		told->finished = turn;
		told->commits++;
	}
}

/* ---- the contents of a store ---- */

/* The last turn that changed each thing, up to `turn`. */
static struct {
	unsigned turn, changed[KEYS_MAX];
} known;

static void know(unsigned turn)
{
	assert_true(turn >= known.turn);
	while (known.turn < turn) {
		known.turn++;
		for (unsigned i = 0; i < play->changes; i++)
			known.changed[key_of(known.turn, i)] = known.turn;
	}
}

static void begin(const struct play *what)
{
	play = what;
	memset(&known, 0, sizeof(known));
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(told != MAP_FAILED);
}

static void expect_things(const struct store *store, unsigned turn)
{
	static unsigned char bytes[LEN_MAX];
	struct record_bytes record;

	know(turn);
	for (unsigned key = 0; key < play->keys; key++) {
		unsigned changed = known.changed[key];
		bool there = store_get(store, KIND_THING, key, &record);

		expect(there == (changed > 0 && !is_drop(changed, key)), "turn %u: thing %u", turn,
		       key);
		if (there)
			expect(record.len == fill_thing(bytes, changed, key) &&
			               memcmp(record.bytes, bytes, record.len) == 0,
			       "turn %u: thing %u is another one", turn, key);
	}
}

static void expect_answers(const struct store *store, unsigned turn)
{
	static unsigned char bytes[100000];
	size_t at = 0, len;
	unsigned tag, count = turn == 0 ? 0 : count_answers(turn);
	const void *read;

	for (unsigned i = 0; i < count; i++) {
		expect(store_next_answer(store, &at, &tag, &read, &len) && tag == i,
		       "turn %u: answer %u", turn, i);
		expect(len == fill_answer(bytes, turn, i) && memcmp(read, bytes, len) == 0,
		       "turn %u: answer %u is another one", turn, i);
	}
	assert_false(store_next_answer(store, &at, &tag, &read, &len));
}

/* Checks the requests of the turn that was not committed. Returns their number. */
static unsigned expect_requests(const struct store *store, unsigned turn)
{
	static unsigned char bytes[4096];
	size_t at = 0, len;
	unsigned count = 0;
	const void *read;

	for (; store_next_request(store, &at, &read, &len); count++)
		expect(len == fill_request(bytes, turn, count) && memcmp(read, bytes, len) == 0,
		       "turn %u: request %u is another one", turn, count);
	return count;
}

static unsigned turn_of(const struct store *store)
{
	struct record_bytes record;
	unsigned turn = 0;

	if (store_get(store, KIND_TURN, 0, &record))
		memcpy(&turn, record.bytes, sizeof(turn));
	return turn;
}

/* Checks a store and returns its turn. The process that writes it stands still meanwhile. */
static unsigned expect_whole(const struct store *store)
{
	unsigned turn = turn_of(store), begun = told->begun, finished = told->finished;
	unsigned read = told->read, count;

	expect(turn == finished || turn == begun, "turn %u: %u..%u", turn, finished, begun);
	expect_things(store, turn);
	expect_answers(store, turn);
	count = expect_requests(store, turn + 1);
	if (turn != finished) /* committed, but not told yet */
		expect(count == 0, "turn %u: %u requests", turn, count);
	else if (begun != finished) /* was about to commit them */
		expect(count == count_requests(begun), "turn %u: %u requests", turn, count);
	else
		expect(count == read || count == read + 1, "turn %u: %u requests, not %u", turn,
		       count, read);
	return turn;
}

/* ---- stopped at each instruction ---- */

static struct store *copy_of(int fd)
{
	const char *why = NULL;
	struct store *store = NULL;

	expect(store_read(fd, &store, &why) == 0, "%s", why);
	return store;
}

static pid_t start_traced(void (*run)(struct store *store), struct store *store)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(77);
		raise(SIGSTOP);
		run(store);
		told->done = true;
		for (;;)
			pause();
	}
	return pid;
}

/* Goes on by one instruction. False: the process is done. */
static bool step(pid_t pid)
{
	int status;

	if (told->done || ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) < 0)
		return false;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status));
	return true;
}

static void step_through(void (*run)(struct store *store), struct store *store)
{
	pid_t pid = start_traced(run, store);
	unsigned long steps = 0;
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status))
		skip(); /* ptrace is not allowed here */
	while (step(pid)) {
		struct store *copy = copy_of(store_fd(store));

		expect_whole(copy);
		store_close(copy);
		steps++;
	}
	assert_true(told->done && steps > 1000);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void take_six_turns(struct store *store)
{
	unsigned from = told->finished + 1;

	take_turns(store, from, from + 5);
}

static void open_and_take_turns(struct store *store)
{
	const char *why;

	if (store_open(store_fd(store), &store, &why) < 0)
		_exit(1);
	take_turns(store, told->finished + 1, told->finished + 2);
}

static void at_each_instruction(void **state)
{
	static const struct play few = {.keys = 5, .changes = 3, .len = 40};
	struct store *store;

	(void)state;
	begin(&few);
	assert_int_equal(store_create(&store, &(const char *){NULL}), 0);
	step_through(take_six_turns, store);
	assert_int_equal(told->finished, 6);
	store_close(store);
}

/* The half was filled before, so that the next commit moves to the other one. */
static void at_each_instruction_of_a_move(void **state)
{
	static const struct play filled = {.keys = 5, .changes = 3, .len = 40, .long_answers = 3};
	struct store *store;

	(void)state;
	begin(&filled);
	assert_int_equal(store_create(&store, &(const char *){NULL}), 0);
	take_turns(store, 1, 3);
	step_through(take_six_turns, store);
	store_close(store);
}

static void at_each_instruction_of_a_successor(void **state)
{
	static const struct play few = {.keys = 5, .changes = 3, .len = 40};
	struct store *store;

	(void)state;
	begin(&few);
	assert_int_equal(store_create(&store, &(const char *){NULL}), 0);
	take_turns(store, 1, 3);
	step_through(open_and_take_turns, store);
	store_close(store);
}

/* ---- killed at any moment ---- */

#define KILLS 150

static void go_on_until_killed(int fd)
{
	const char *why;
	struct store *store;
	unsigned turn;

	if (store_open(fd, &store, &why) < 0)
		_exit(1);
	turn = expect_whole(store);
	told->read = expect_requests(store, turn + 1);
	told->begun = turn;
	told->finished = turn;
	take_turns(store, turn + 1, UINT32_MAX);
}

/* Every second one has committed a turn before, so that the turns go on however slow it is. */
static unsigned kill_one(int fd, unsigned number)
{
	unsigned commits = told->commits;
	pid_t pid = fork();
	struct store *copy;
	unsigned turn;
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		go_on_until_killed(fd);
	while (number % 2 == 1 && told->commits == commits)
		sched_yield();
	usleep(any(number, 3, 12000));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "kill %u: status %d", number,
	       status);
	copy = copy_of(fd);
	turn = expect_whole(copy);
	store_close(copy);
	return turn;
}

/* There is so much data that it takes several commits to move it. */
static void at_any_moment(void **state)
{
	static const struct play many = {.keys = KEYS_MAX, .changes = 20, .len = LEN_MAX};
	struct store *store;
	unsigned turn = 0;
	int fd;

	(void)state;
	begin(&many);
	assert_int_equal(store_create(&store, &(const char *){NULL}), 0);
	fd = dup(store_fd(store));
	store_close(store);
	for (unsigned i = 0; i < KILLS; i++)
		turn = kill_one(fd, i);
	assert_true(turn >= KILLS / 2);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_each_instruction),
		cmocka_unit_test(at_each_instruction_of_a_move),
		cmocka_unit_test(at_each_instruction_of_a_successor),
		cmocka_unit_test(at_any_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
