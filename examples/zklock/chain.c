/* SPDX-License-Identifier: MIT
 *
 * chain.c - see chain.h.
 *
 * All waiters of all locks are found by .zklockfs/locks, and by one list of each queue in which
 * somebody waits; what an entry says is read only of those that may be in the chain. A waiter
 * waits for all holders of its lock, also when others wait before it. With slots it waits for one
 * of them, so a circle through such a lock is no deadlock yet.
 */
#include "chain.h"

#include "clean.h"
#include "span.h"
#include "table.h"
#include "tree.h"

#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#define QUEUES_MAX 500 /* that are listed */
#define STEPS_MAX 40
#define HOLDERS_MAX 5 /* of one lock that are followed */
#define BACK_MAX 5

struct queue {
	const struct row *row;
	struct entry *entries;
	size_t count;
	bool told; /* its holders were */
};

/* One holder on the way, and the entry by which it waits for the lock of the next step. */
struct step {
	const char *lock;
	struct entry *holder, *waiter;
	bool below; /* it is not the holder itself that waits */
	bool slots; /* of the lock */
};

struct chain {
	const struct mount *mount;
	const struct health *health;
	struct table table;
	struct queue *queues;
	size_t count;
	struct step steps[STEPS_MAX];
	size_t depth;
	/* is_below() remembers its last answer, since many waiters have one parent. */
	pid_t parent, above;
	bool below; /* `parent` is `above`, or below it */
};

/* ---- who waits ---- */

struct chain *chain_begin(const struct mount *mount, const struct health *health)
{
	struct chain *chain = calloc(1, sizeof(*chain));
	char why[HEALTH_MAX];

	if (!chain)
		err(EX_OSERR, NULL);
	chain->mount = mount;
	chain->health = health;
	if (!table_read(mount, "locks", &chain->table)) {
		printf("whether its holders wait themselves is not known: %s\n",
		       errno == ENOENT ? "this is a part of a mount"
		                       : health_explain(mount, errno, why));
		free(chain);
		return NULL;
	}
	chain->queues = calloc(chain->table.count + 1, sizeof(*chain->queues));
	if (!chain->queues)
		err(EX_OSERR, NULL);
	for (size_t i = 0; i < chain->table.count && chain->count < QUEUES_MAX; i++) {
		struct queue *queue = &chain->queues[chain->count];

		queue->row = &chain->table.rows[i];
		if (strcmp(queue->row->waiters, "0") != 0 &&
		    entries_list(mount, queue->row->lock, &queue->entries, &queue->count))
			chain->count++;
	}
	if (chain->count == QUEUES_MAX)
		printf("more than %d locks are waited for: some of them were not looked at\n",
		       QUEUES_MAX - 1);
	return chain;
}

void chain_end(struct chain *chain)
{
	for (size_t i = 0; i < chain->count; i++)
		entries_free(chain->queues[i].entries, chain->queues[i].count);
	free(chain->queues);
	table_free(&chain->table);
	free(chain);
}

static struct queue *find_queue(const struct chain *chain, const char *lock)
{
	for (size_t i = 0; i < chain->count; i++)
		if (strcmp(chain->queues[i].row->lock, lock) == 0)
			return &chain->queues[i];
	return NULL;
}

/* ---- who is who ---- */

static const char *host_of(const struct entry *entry)
{
	const char *owner = entry_owner(entry);

	return owner + strcspn(owner, "-");
}

static bool is_of_one_host(const struct entry *holder, const struct entry *waiter)
{
	return strcmp(host_of(holder), host_of(waiter)) == 0;
}

/* The names are compared first: to read an entry is a request. */
static bool is_of_one_mount(const struct chain *chain, const struct queue *queue,
                            struct entry *holder, struct entry *waiter)
{
	if (!is_of_one_host(holder, waiter))
		return false;
	entry_read(chain->mount, queue->row->lock, waiter);
	return strcmp(holder->session, "-") != 0 && strcmp(holder->session, waiter->session) == 0;
}

static bool is_below(struct chain *chain, pid_t pid, pid_t above)
{
	pid_t parent = tree_parent(pid);

	if (parent != chain->parent || above != chain->above) {
		chain->parent = parent;
		chain->above = above;
		chain->below = parent == above || tree_is_below(parent, above);
	}
	return chain->below;
}

/* Whether the process of the holder waits by that entry, or one of its descendants does. */
static bool is_held_up(struct chain *chain, const struct queue *queue, struct entry *holder,
                       struct entry *waiter, bool *ret_below)
{
	pid_t above = atoi(holder->pid), pid = entry_pid(waiter);

	if (waiter->held || above <= 0 || pid <= 0 || holder->foreign || waiter->foreign ||
	    !is_of_one_host(holder, waiter))
		return false;
	*ret_below = pid != above;
	return (pid == above || (health_sees_pids(chain->health, holder->session) &&
	                         is_below(chain, pid, above))) &&
	       is_of_one_mount(chain, queue, holder, waiter);
}

/* ---- what is told ---- */

static void tell_process(const struct entry *entry)
{
	char who[ENTRY_WHO_MAX];

	fputs(entry_who(entry, who), stdout);
}

/* Two blanks for the lock that a holder waits for, four for its holders, and so on. */
static void indent(const struct chain *chain, int more)
{
	printf("%*s", 4 * (int)chain->depth - 2 + 2 * more, "");
}

static void tell_lock(const char *lock)
{
	char shown[CLEAN_MAX];

	printf(strchr(lock, ' ') ? "'%s'" : "%s", clean(shown, sizeof(shown), lock));
}

static void tell_holding(const struct chain *chain, const struct entry *entry)
{
	char reason[CLEAN_MAX], age[SPAN_MAX];
	int64_t ms = entry_age(entry, chain->health);

	printf(entry->shared ? "shared by " : "held by ");
	tell_process(entry);
	printf(" for %s%s\n", ms < 0 ? "a moment" : span_format(age, ms), entry_why(entry, reason));
}

/* `and` goes on in the line of its holder. */
static void tell_waiting(const struct step *step, const char *lock, const char *and)
{
	if (step->below) {
		printf(*and? ", and below it " : "below it ");
		tell_process(step->waiter);
		printf(" waits for ");
	} else {
		printf("%swaits for ", *and? and : "it ");
	}
	tell_lock(lock);
}

static const struct step *find_slots(const struct chain *chain, size_t first)
{
	for (size_t i = first; i < chain->depth; i++)
		if (chain->steps[i].slots)
			return &chain->steps[i];
	return NULL;
}

/* The steps from `first` on, the last of which waits for the lock of the first. */
static void tell_circle(const struct chain *chain, size_t first)
{
	const struct step *slots = find_slots(chain, first);

	puts(slots ? "these wait for each other:"
	           : "deadlock: these wait for each other until one gives up or is evicted:");
	for (size_t i = first; i < chain->depth; i++) {
		const struct step *step = &chain->steps[i];
		size_t next = i + 1 < chain->depth ? i + 1 : first;

		printf("  ");
		tell_process(step->holder);
		printf(" holds ");
		tell_lock(step->lock);
		tell_waiting(step, chain->steps[next].lock, " and ");
		putchar('\n');
	}
	if (!slots)
		return;
	printf("  unless another holder of ");
	tell_lock(slots->lock);
	puts(" releases it, this is a deadlock");
}

static bool is_on_the_way(const struct chain *chain, const char *lock)
{
	for (size_t i = 0; i < chain->depth; i++)
		if (strcmp(chain->steps[i].lock, lock) == 0)
			return true;
	return false;
}

/* Whose entry it is was told already. */
static bool is_told(const struct chain *chain, const struct entry *waiter)
{
	for (size_t i = 0; i < chain->depth; i++)
		if (chain->steps[i].waiter == waiter)
			return true;
	return false;
}

static bool leads_back(struct chain *chain, struct queue *queue, int depth);

/* Whether that holder of the lock surely waits for one on the way. */
static bool holder_leads_back(struct chain *chain, struct queue *of, struct entry *holder,
                              int depth)
{
	bool below;

	entry_read(chain->mount, of->row->lock, holder);
	for (size_t i = 0; i < chain->count; i++)
		for (size_t k = 0; k < chain->queues[i].count; k++)
			if (is_held_up(chain, &chain->queues[i], holder,
			               &chain->queues[i].entries[k], &below) &&
			    leads_back(chain, &chain->queues[i], depth + 1))
				return true;
	return false;
}

/* Whether who waits for this lock waits for one on the way. */
static bool leads_back(struct chain *chain, struct queue *queue, int depth)
{
	if (is_on_the_way(chain, queue->row->lock))
		return true;
	for (size_t i = 0; i < queue->count && i < HOLDERS_MAX && depth < BACK_MAX; i++)
		if (queue->entries[i].held &&
		    holder_leads_back(chain, queue, &queue->entries[i], depth))
			return true;
	return false;
}

static void tell_suspect(const struct step *last, const struct entry *waiter, const char *lock)
{
	char host[CLEAN_MAX];

	printf("perhaps a deadlock: ");
	tell_process(waiter);
	printf(" waits for ");
	tell_lock(lock);
	printf("; `zklock why ");
	tell_lock(last->lock);
	printf("` on %s tells whether it is below process %d\n",
	       clean(host, sizeof(host), waiter->host), atoi(last->holder->pid));
}

/* Somebody of the last holder's mount waits for a lock that leads back here. Whether that process
 * is below the holder, only its own host can tell. */
static void tell_suspects(struct chain *chain)
{
	const struct step *last = &chain->steps[chain->depth - 1];

	for (size_t i = 0; i < chain->count; i++)
		for (size_t k = 0; k < chain->queues[i].count; k++) {
			struct queue *queue = &chain->queues[i];
			struct entry *waiter = &queue->entries[k];

			if (!waiter->held && !is_told(chain, waiter) &&
			    is_of_one_mount(chain, queue, last->holder, waiter) &&
			    leads_back(chain, queue, 0)) {
				tell_suspect(last, waiter, queue->row->lock);
				break; /* that command tells of the others, too */
			}
		}
}

/* ---- the way ---- */

static void follow_holders(struct chain *chain, struct queue *queue);

/* The last holder waits for this lock. */
static void follow_waiter(struct chain *chain, struct queue *queue)
{
	const struct step *last = &chain->steps[chain->depth - 1];
	size_t first = 0;

	while (first < chain->depth && strcmp(chain->steps[first].lock, queue->row->lock) != 0)
		first++;
	if (first < chain->depth) {
		tell_circle(chain, first);
		return;
	}
	indent(chain, 0);
	tell_waiting(last, queue->row->lock, "");
	puts(queue->told ? ", see above" : ":");
	if (!queue->told)
		follow_holders(chain, queue);
}

static void follow_last(struct chain *chain)
{
	struct step *last = &chain->steps[chain->depth - 1];
	bool found = false;

	for (size_t i = 0; i < chain->count; i++) {
		struct queue *queue = &chain->queues[i];

		for (size_t k = 0; k < queue->count; k++) {
			if (!is_held_up(chain, queue, last->holder, &queue->entries[k],
			                &last->below))
				continue;
			last->waiter = &queue->entries[k];
			found = true;
			follow_waiter(chain, queue);
			break; /* others that wait for it lead to the same */
		}
	}
	if (!found && !health_sees_pids(chain->health, last->holder->session))
		tell_suspects(chain);
}

static void push_step(struct chain *chain, const char *lock, struct entry *holder)
{
	const struct queue *queue = find_queue(chain, lock);

	chain->steps[chain->depth++] = (struct step){
		.lock = lock,
		.holder = holder,
		.slots = queue && row_has_slots(queue->row),
	};
	follow_last(chain);
	chain->depth--;
}

static void follow_holders(struct chain *chain, struct queue *queue)
{
	size_t told = 0;

	queue->told = true;
	for (size_t i = 0; i < queue->count && chain->depth < STEPS_MAX; i++) {
		struct entry *entry = &queue->entries[i];

		if (!entry->held || told++ >= HOLDERS_MAX)
			continue;
		entry_read(chain->mount, queue->row->lock, entry);
		if (!entry->text)
			continue;
		indent(chain, 1);
		tell_holding(chain, entry);
		push_step(chain, queue->row->lock, entry);
	}
	if (told > HOLDERS_MAX) {
		indent(chain, 1);
		printf("and by %zu more\n", told - HOLDERS_MAX);
	}
}

void chain_follow(struct chain *chain, const char *lock, struct entry *holder)
{
	push_step(chain, lock, holder);
}
