/* SPDX-License-Identifier: MIT */
#include "guard/search.h"

#include "guard/look.h"
#include "host/clock.h"
#include "host/memory.h"
#include "host/proc.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES_MAX (1 << 18)
/* A process is read for so long in the first turn, four times as long in the next, and so on. */
#define PART_US 1000
#define PART_GROWS 4
#define PART_MAX_US 16000
/* A child that is at one process for longer hangs if it waits for anything but a processor, or if
 * one descriptor takes so much of its time. */
#define HANGS_US 20000
#define HANGS_CPU_US 50000
/* A child that is at none waits for nothing for so long. */
#define HANGS_BETWEEN_US 1000000
/* So many children may hang at a time. Beyond that the one that hangs for longest is killed. */
#define LEFT_MAX 64
#define LEFT_CPU_S 10
#define LEFT_NICE 19
#define CHILDREN_MAX (LEFT_MAX + 2)
#define HURRY_NICE (-20)

/* A child tells this of itself. */
struct desk {
	_Atomic uint32_t turn;    /* of the process that it is at; LEFT: it is left alone there */
	_Atomic pid_t at;         /* that process; 0: it is at none */
	_Atomic int64_t since_us; /* that is so since then, */
	_Atomic int64_t cpu_us;   /*   when it had used so much time of a processor */
};

#define LEFT UINT32_MAX

struct todo {
	pid_t pid;
	struct scan_place place;
};

/* The search, which one child after the other goes on with. */
struct list {
	bool listed, done;
	int64_t part_us;
	uint32_t count, next, later_count;
	uint32_t at; /* the process that a child is at */
	struct todo processes[PROCESSES_MAX];
	uint32_t turn[PROCESSES_MAX], later[PROCESSES_MAX]; /* of this turn, and of the next */
};

struct shared {
	struct look_shared look;
	struct desk desks[CHILDREN_MAX];
	struct list list;
};

enum work { NO_WORK, OPENERS, ALL };

struct child {
	pid_t pid; /* 0: none */
	enum work work;
	pid_t left_at; /* 0: it is at work */
	int64_t left_us;
	bool killed; /* by the guardian */
};

struct searches {
	struct shared *shared;
	int fd; /* the guardian's, to the daemon */
	bool hurry, begun, any_lost;
	int left;
	unsigned long ended;
	struct child children[CHILDREN_MAX];
	struct look look;
};

/* ---- a child ---- */

static int64_t cpu_us_of(clockid_t clock)
{
	return clock_read_ns(clock) / 1000;
}

/* Somebody is left with the same work there. */
static bool somebody_is_at(const struct searches *search, enum work work, pid_t pid)
{
	for (int i = 0; search->left > 0 && i < CHILDREN_MAX; i++)
		if (search->children[i].left_at == pid && search->children[i].work == work)
			return true;
	return false;
}

static void go_to(struct desk *desk, pid_t pid)
{
	atomic_store(&desk->cpu_us, cpu_us_of(CLOCK_PROCESS_CPUTIME_ID));
	atomic_store(&desk->since_us, clock_now_us());
	atomic_store(&desk->at, pid);
}

/* False: the child was left alone there meanwhile. */
static bool part(struct desk *desk)
{
	uint32_t turn = atomic_load(&desk->turn);

	atomic_store(&desk->at, 0);
	atomic_store(&desk->since_us, clock_now_us());
	return turn != LEFT && atomic_compare_exchange_strong(&desk->turn, &turn, turn + 1);
}

static bool is_due(const struct searches *search, int slot)
{
	pid_t pid = search->look.page->slots[slot].pid;

	return look_is_due(&search->look, slot) && !(pid && somebody_is_at(search, OPENERS, pid));
}

/* `unnumbered`: only at those whose slot has no number of its process. */
static void look_at_openers(struct searches *search, struct desk *desk, bool unnumbered)
{
	const struct look *look = &search->look;

	for (int i = 0; i < look->opener_count; i++) {
		int slot = look->openers[i].slot;

		if (!is_due(search, slot) || (unnumbered && look->page->slots[slot].number))
			continue;
		go_to(desk, look->openers[i].pid);
		while (i > 0 && look->openers[i - 1].pid == look->openers[i].pid)
			i--;
		look_at_opener(&search->look, i);
		if (!part(desk))
			return;
		while (i + 1 < look->opener_count &&
		       look->openers[i + 1].pid == look->openers[i].pid)
			i++;
	}
}

/* How far behind the nearest loser the process was started, as its number says: those that have
 * inherited a file come soon after. */
static unsigned distance(const struct look *look, pid_t pid)
{
	int below = 0, above = look->opener_count;

	while (below < above) {
		int middle = below + (above - below) / 2;

		if (look->openers[middle].pid <= pid)
			below = middle + 1;
		else
			above = middle;
	}
	return below == 0 ? (unsigned)pid + INT32_MAX
	                  : (unsigned)(pid - look->openers[below - 1].pid);
}

static const struct look *sorted_for;

static int compare_distances(const void *a, const void *b)
{
	unsigned x = distance(sorted_for, *(const pid_t *)a),
		 y = distance(sorted_for, *(const pid_t *)b);

	return x < y ? -1 : x > y;
}

static void list_processes(struct searches *search)
{
	static pid_t pids[PROCESSES_MAX];
	struct list *list = &search->shared->list;

	list->count = (uint32_t)scan_pids(pids, PROCESSES_MAX);
	if (list->count == 0) { /* /proc could not be opened */
		atomic_fetch_add(&search->shared->look.unseen, 1);
		atomic_store(&search->shared->look.found, true);
	}
	sorted_for = &search->look;
	qsort(pids, list->count, sizeof(pids[0]), compare_distances);
	for (uint32_t i = 0; i < list->count; i++) {
		list->processes[i] = (struct todo){.pid = pids[i]};
		list->turn[i] = i;
	}
	list->next = list->later_count = 0;
	list->part_us = PART_US;
	list->listed = true;
}

/* False: nothing is left to be done. */
static bool next_turn(struct list *list)
{
	if (list->later_count == 0)
		return false;
	memcpy(list->turn, list->later, list->later_count * sizeof(list->later[0]));
	list->count = list->later_count;
	list->next = list->later_count = 0;
	if (list->part_us < PART_MAX_US)
		list->part_us *= PART_GROWS;
	return true;
}

static void look_at_all(struct searches *search, struct desk *desk)
{
	struct list *list = &search->shared->list;

	if (!list->listed)
		list_processes(search);
	while (list->next < list->count || next_turn(list)) {
		uint32_t index = list->turn[list->next++];
		struct todo own = list->processes[index];

		list->at = index;
		/* From here on the list may be another child's. */
		go_to(desk, own.pid);
		if (!somebody_is_at(search, ALL, own.pid))
			look_at_process(&search->look, own.pid, &own.place, list->part_us);
		else
			own.place.more = false;
		if (!part(desk)) {
			if (own.place.more)
				look_at_process(&search->look, own.pid, &own.place, SCAN_ALL);
			return;
		}
		list->processes[index] = own;
		if (own.place.more)
			list->later[list->later_count++] = index;
	}
	list->done = true;
}

static _Noreturn void be_a_child(struct searches *search, enum work work, struct desk *desk,
                                 pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(search->fd);
	(void)setpriority(PRIO_PROCESS, 0, search->hurry ? HURRY_NICE : 0);
	if (getppid() != parent)
		_exit(0);
	if (work == OPENERS)
		look_at_openers(search, desk, /* unnumbered = */ false);
	else
		look_at_all(search, desk);
	_exit(0);
}

/* ---- the guardian ---- */

static struct child *at_work(struct searches *search, enum work work)
{
	for (int i = 0; i < CHILDREN_MAX; i++) {
		struct child *child = &search->children[i];

		if (child->pid && child->work == work && !child->left_at && !child->killed)
			return child;
	}
	return NULL;
}

static void add_child(struct searches *search, enum work work)
{
	pid_t parent = getpid(), pid;

	for (int i = 0; i < CHILDREN_MAX; i++) {
		struct desk *desk = &search->shared->desks[i];

		if (search->children[i].pid)
			continue;
		look_prepare(&search->look);
		memset(desk, 0, sizeof(*desk));
		desk->since_us = clock_now_us();
		pid = fork();
		if (pid == 0)
			be_a_child(search, work, desk, parent);
		/* look_stop_late() stops those that have a number, without a look that may hang. */
		if (pid < 0 && work == OPENERS)
			look_at_openers(search, desk, /* unnumbered = */ true);
		if (pid > 0)
			search->children[i] = (struct child){.pid = pid, .work = work};
		return;
	}
}

/* Not waited for: it may be where nothing can be killed. */
static void kill_child(struct searches *search, struct child *child)
{
	kill(child->pid, SIGKILL);
	search->left -= child->left_at != 0;
	child->killed = true;
	child->left_at = 0;
}

static void kill_oldest(struct searches *search)
{
	struct child *oldest = NULL;

	for (int i = 0; i < CHILDREN_MAX; i++) {
		struct child *child = &search->children[i];

		if (child->left_at && (!oldest || child->left_us < oldest->left_us))
			oldest = child;
	}
	if (oldest)
		kill_child(search, oldest);
}

/* Whether the child waits for a processor. A child of this process is never in exec. */
static bool wants_to_run(pid_t pid)
{
	char text[256], *state;

	if (!proc_read_of(pid, "status", text, sizeof(text)))
		return true;
	state = strstr(text, "\nState:\t");
	return state && state[strlen("\nState:\t")] == 'R';
}

static bool hangs(const struct child *child, const struct desk *desk, int64_t now)
{
	bool at_any = atomic_load(&desk->at);
	int64_t since = atomic_load(&desk->since_us);
	clockid_t clock;

	if (now - since <= (at_any ? HANGS_US : HANGS_BETWEEN_US))
		return false;
	if (!wants_to_run(child->pid))
		return true;
	return at_any && clock_getcpuclockid(child->pid, &clock) == 0 &&
	       cpu_us_of(clock) - atomic_load(&desk->cpu_us) > HANGS_CPU_US;
}

/* With a list that a child has left in the middle of a step. */
static void begin_again(struct searches *search, const struct child *child)
{
	if (child->work == ALL)
		search->shared->list.listed = false;
}

static void leave_child(struct searches *search, struct child *child, struct desk *desk,
                        int64_t now)
{
	struct rlimit limit = {.rlim_cur = LEFT_CPU_S, .rlim_max = LEFT_CPU_S};
	uint32_t turn = atomic_load(&desk->turn);
	pid_t at = atomic_load(&desk->at);

	if (!at && now - atomic_load(&desk->since_us) > HANGS_BETWEEN_US) {
		kill_child(search, child);
		begin_again(search, child);
	}
	if (!at || !atomic_compare_exchange_strong(&desk->turn, &turn, LEFT))
		return; /* the child has gone on */
	if (search->left >= LEFT_MAX)
		kill_oldest(search);
	(void)setpriority(PRIO_PROCESS, (id_t)child->pid, LEFT_NICE);
	(void)prlimit(child->pid, RLIMIT_CPU, &limit, NULL);
	search->left++;
	child->left_at = at;
	child->left_us = clock_now_us();
}

/* Somebody has killed the child. Another one looks at its process. */
static void do_again(struct searches *search, const struct child *child, const struct desk *desk)
{
	struct list *list = &search->shared->list;

	search->ended++;
	look_unclaim(&search->look);
	if (child->left_at)
		return;
	if (!atomic_load(&desk->at))
		begin_again(search, child);
	else if (child->work == ALL && list->later_count < PROCESSES_MAX)
		list->later[list->later_count++] = list->at;
}

static void tend_child(struct searches *search, int number, int64_t now)
{
	struct child *child = &search->children[number];
	struct desk *desk = &search->shared->desks[number];
	int status;

	if (!child->pid)
		return;
	if (waitpid(child->pid, &status, WNOHANG) == child->pid) {
		if (WIFSIGNALED(status) && !child->killed)
			do_again(search, child, desk);
		search->left -= child->left_at != 0;
		*child = (struct child){0};
	} else if (!child->left_at && !child->killed && hangs(child, desk, now)) {
		leave_child(search, child, desk, now);
	}
}

struct searches *search_create(struct page *page, enum on_lost on_lost, int fd)
{
	struct searches *search = calloc(1, sizeof(*search));

	if (!search)
		return NULL;
	/* All of it ends with this process, which ends if this fails. */
	search->shared = memory_share(sizeof(*search->shared));
	search->fd = fd;
	search->look.page = page;
	search->look.on_lost = on_lost;
	search->look.stops = stops_create(page);
	if (!search->shared || !search->look.stops) {
		free(search);
		return NULL;
	}
	search->look.shared = &search->shared->look;
	return search;
}

/* A child may be about to tell what it has done for a loss of before. */
static bool any_child(const struct searches *search)
{
	for (int i = 0; i < CHILDREN_MAX; i++)
		if (search->children[i].pid)
			return true;
	return false;
}

struct search_lost search_note(struct searches *search)
{
	struct look *look = &search->look;
	struct search_lost lost = {.newest_us = INT64_MIN / 2, .kill_us = INT64_MAX};

	look->used = atomic_load(&look->page->used);
	for (int i = 0; i < look->used; i++) {
		struct loss *loss = &look->losses[i];
		const struct slot *slot = &look->page->slots[i];
		unsigned word = atomic_load(&slot->word);

		if (STATE_OF(word) == SLOT_LOST && loss->word != word) {
			lost.more = true;
			*loss = (struct loss){
				.since_us = clock_now_us(),
				.cause = stop_cause_of(look->page, look->on_lost,
			                               atomic_load(&slot->until_us)),
			};
		}
		loss->word = word;
		if (STATE_OF(word) != SLOT_LOST)
			continue;
		lost.count++;
		lost.due |= look_is_due(look, i);
		if (look_kill_us(look, i) < lost.kill_us)
			lost.kill_us = look_kill_us(look, i);
		if (loss->since_us > lost.newest_us)
			lost.newest_us = loss->since_us;
	}
	if (lost.count == 0 && search->any_lost && !any_child(search)) {
		stops_forget(look->stops);
		search->any_lost = false;
	}
	search->any_lost |= lost.count > 0;
	return lost;
}

void search_hurry(struct searches *search, bool hurry)
{
	for (int i = 0; hurry != search->hurry && i < CHILDREN_MAX; i++) {
		const struct child *child = &search->children[i];

		if (child->pid && !child->left_at)
			(void)setpriority(PRIO_PROCESS, (id_t)child->pid, hurry ? HURRY_NICE : 0);
	}
	search->hurry = hurry;
}

void search_begin(struct searches *search)
{
	struct child *child = at_work(search, ALL);

	if (child)
		kill_child(search, child);
	search->begun = true;
	search->shared->list.listed = search->shared->list.done = false;
	atomic_store(&search->shared->look.found, false);
	atomic_store(&search->shared->look.unseen, 0);
	add_child(search, ALL);
}

static void end_search(struct searches *search)
{
	struct look *look = &search->look;

	search->begun = false;
	for (int i = 0; i < look->opener_count; i++) {
		struct loss *loss = &look->losses[look->openers[i].slot];

		if (STATE_OF(loss->word) == SLOT_LOST && !loss->searched)
			stop_note_unseen(look->stops, look->openers[i].slot, loss->word,
			                 atomic_load(&look->shared->unseen));
		loss->searched = true;
	}
}

static void tend_openers(struct searches *search, int64_t now)
{
	bool due = false;

	for (int i = 0; i < search->look.used; i++) {
		if (!look_is_due(&search->look, i))
			continue;
		look_stop_late(&search->look, i, now);
		due |= is_due(search, i);
	}
	if (due && !at_work(search, OPENERS))
		add_child(search, OPENERS);
}

bool search_tend(struct searches *search)
{
	int64_t now = clock_now_us();

	for (int i = 0; i < CHILDREN_MAX; i++)
		tend_child(search, i, now);
	tend_openers(search, now);
	if (!search->begun || at_work(search, ALL))
		return !search->begun;
	if (!search->shared->list.done) {
		add_child(search, ALL);
		return false;
	}
	end_search(search);
	return true;
}

bool search_found(const struct searches *search)
{
	return atomic_load(&search->shared->look.found);
}

bool search_hangs(const struct searches *search)
{
	return search->left > 0;
}

unsigned long search_ended(const struct searches *search)
{
	return search->ended;
}
