/* SPDX-License-Identifier: MIT
 *
 * ensemble.c - the log of transactions, the servers that lag behind it, and the requests under way.
 */
#include "model.h"

#include "check.h"

#include <string.h>

struct state S;
int M;
unsigned going;

void view(const struct state *s, int pos, unsigned *present, unsigned *marks)
{
	unsigned p = s->base, k = s->base_marks;

	for (int i = 0; i < pos; i++) {
		p &= ~(unsigned)s->log[i].deleted;
		if (s->log[i].made)
			p |= BIT(s->log[i].made - 1);
		if (s->log[i].marked)
			k |= BIT(s->log[i].marked - 1);
	}
	*present = p;
	if (marks)
		*marks = k;
}

unsigned committed(const struct state *s)
{
	unsigned p;

	view(s, s->logged, &p, NULL);
	return p;
}

unsigned shown(const struct state *s, int m)
{
	unsigned p;

	view(s, s->mount[m].applied, &p, NULL);
	return p;
}

void trim_log(void)
{
	for (;;) {
		unsigned p, k;

		if (S.logged == 0)
			return;
		for (int m = 0; m < config.mounts; m++)
			if (S.mount[m].session && S.mount[m].applied == 0)
				return;
		view(&S, 1, &p, &k);
		S.base = (uint8_t)p;
		S.base_marks = (uint8_t)(k & p); /* a mark goes with its node */
		memmove(S.log, S.log + 1, (LOG_MAX - 1) * sizeof(S.log[0]));
		memset(&S.log[LOG_MAX - 1], 0, sizeof(S.log[0]));
		S.logged--;
		for (int m = 0; m < config.mounts; m++)
			if (S.mount[m].applied > 0)
				S.mount[m].applied--;
	}
}

/* The takers of a mount come in the order of their numbers, and queue in this order. */
static bool is_overtaken(int e)
{
	int first = e - e % config.users;

	for (int k = first; k < e; k++)
		if (config.owner[k] == config.owner[e] && S.taker[k].state == WAIT &&
		    !(S.taker[k].more & A_MADE) && !is_try(k))
			return true;
	return false;
}

static bool is_hopeless(int e)
{
	return S.taker[e].state == WAIT && is_try(e) && !is_upgrade(e) &&
	       !(S.taker[e].more & A_FREE);
}

bool append(struct change change)
{
	if (S.logged >= LOG_MAX) {
		check_drop();
		return false;
	}
	if (change.made && S.taker[change.made - 1].more & A_MADE)
		S.broken = BROKEN_TWO;
	if (change.made && is_overtaken(change.made - 1))
		S.broken = BROKEN_ORDER;
	if (change.made && is_hopeless(change.made - 1))
		S.broken = BROKEN_HOPELESS;
	if (change.made) {
		S.number[change.made - 1] = ++S.numbers;
		S.taker[change.made - 1].more |= A_MADE;
	}
	S.log[S.logged++] = change;
	for (int m = 0; m < config.mounts; m++)
		if (!S.mount[m].session)
			S.mount[m].applied = S.logged;
	return true;
}

void push(int kind, unsigned deletes, int entry, int check)
{
	struct mount *mount = me();

	if (mount->requests >= REQUESTS_MAX) {
		S.broken = BROKEN_FULL;
		return;
	}
	mount->request[mount->requests++] =
		(struct request){(uint8_t)kind, (uint8_t)deletes, (uint8_t)entry, (uint8_t)check};
}

/* Requests of an earlier connection stand first. A write of this one waits for them at the leader,
 * a read does not. */
int count_former(const struct mount *m)
{
	int n = 0;

	while (n < m->requests && m->request[n].check & FORMER)
		n++;
	return n;
}

struct request pop(struct mount *m, int at)
{
	struct request r = m->request[at];

	memmove(m->request + at, m->request + at + 1,
	        (size_t)(REQUESTS_MAX - 1 - at) * sizeof(m->request[0]));
	memset(&m->request[REQUESTS_MAX - 1], 0, sizeof(m->request[0]));
	m->requests--;
	return r;
}

/* The writes of this connection that are in the log and not answered: the first ones of its
 * requests. */
int count_committed(const struct state *s, int m)
{
	int n = 0;

	for (int i = s->mount[m].applied; i < s->logged; i++)
		n += (s->log[i].by & ~REFUSED) == m + 1;
	return n;
}
