/* SPDX-License-Identifier: MIT */
#include "guard/order.h"

#include <stdlib.h>

/* A chain of ancestors that is longer counts as no kin. The numbers are of different moments,
 * so that a chain may even be a circle. */
#define GENERATIONS_MAX 128

static int compare_pids(const void *a, const void *b)
{
	return *(const pid_t *)a - *(const pid_t *)b;
}

static int compare_by_pid(const void *a, const void *b)
{
	return ((const struct order_process *)a)->pid - ((const struct order_process *)b)->pid;
}

const struct order_process *order_process_of(const struct order_process *processes, size_t count,
                                             pid_t pid)
{
	struct order_process key = {.pid = pid};

	return bsearch(&key, processes, count, sizeof(key), compare_by_pid);
}

void order_find_kin(struct order_process *processes, size_t count, const pid_t *of, size_t of_count)
{
	for (size_t i = 0; i < count; i++) {
		struct order_process *chain[GENERATIONS_MAX], *process = &processes[i];
		size_t length = 0;
		enum order_kin kin = ORDER_NO_KIN;

		while (process && process->kin == ORDER_OPEN && length < GENERATIONS_MAX) {
			chain[length++] = process;
			if (bsearch(&process->parent, of, of_count, sizeof(*of), compare_pids)) {
				kin = ORDER_KIN;
				break;
			}
			process = (struct order_process *)order_process_of(processes, count,
			                                                   process->parent);
		}
		if (process && process->kin != ORDER_OPEN)
			kin = process->kin;
		while (length > 0)
			chain[--length]->kin = kin;
	}
}

/* As long as all turns are 0: by users. */
static int compare_turns(const void *a, const void *b)
{
	const struct order_process *x = a, *y = b;

	if (x->kin != y->kin)
		return x->kin > y->kin ? -1 : 1;
	if (x->turn != y->turn)
		return x->turn < y->turn ? -1 : 1;
	if (x->uid != y->uid)
		return x->uid < y->uid ? -1 : 1;
	return x->pid - y->pid;
}

void order_sort(struct order_process *processes, size_t count)
{
	qsort(processes, count, sizeof(*processes), compare_turns);
	for (size_t i = 0; i < count; i++) {
		const struct order_process *before = i > 0 ? &processes[i - 1] : NULL;
		bool same = before && before->kin == processes[i].kin &&
		            before->uid == processes[i].uid;

		processes[i].turn = same ? before->turn + 1 : 0;
	}
	qsort(processes, count, sizeof(*processes), compare_turns);
}
