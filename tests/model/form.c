/* SPDX-License-Identifier: MIT
 *
 * form.c - one state for all that differ in nothing that counts.
 */
#include "model.h"

#include <string.h>

/* Numbers count only in their order, and where one follows the other. */
static void renumber(void)
{
	unsigned there = S.base, used = 0;
	uint8_t to[64] = {0};
	int last = 0, next = 0;

	for (int i = 0; i < S.logged; i++)
		if (S.log[i].made)
			there |= BIT(S.log[i].made - 1);
	for (int e = 0; e < config.takers; e++) {
		struct taker *t = &S.taker[e];

		if (t->state == LEFT && t->entry == ABSENT && !(there & BIT(e))) {
			t->more &= A_DELETED;
			t->flags = 0;
		}
		if (there & BIT(e) || (t->state != DEAD && t->entry != ABSENT)) {
			if (S.number[e])
				used |= BIT(S.number[e]);
		} else {
			S.number[e] = 0;
		}
		if (S.last_token)
			used |= BIT(S.last_token);
		if (t->follows && t->entry == CREATING)
			used |= BIT(t->follows);
		else
			t->follows = 0;
	}
	for (int n = 1; n <= S.numbers; n++)
		if (used & BIT(n)) {
			next += n == last + 1 && last ? 1 : last ? 2 : 1;
			to[n] = (uint8_t)next;
			last = n;
		}
	S.numbers = (uint8_t)(next + (S.numbers != last));
	S.last_token = to[S.last_token];
	for (int e = 0; e < config.takers; e++) {
		S.number[e] = to[S.number[e]];
		S.taker[e].follows = to[S.taker[e].follows];
	}
}

static uint8_t mask_to(uint8_t mask, const int *to)
{
	uint8_t r = 0;

	for (int e = 0; e < config.takers; e++)
		if (mask & BIT(e))
			r |= (uint8_t)BIT(to[e]);
	return r;
}

static uint8_t ref_to(uint8_t ref, const int *to)
{
	return ref ? (uint8_t)(to[ref - 1] + 1) : 0;
}

/* The mounts `a` and `b`, which have as many config.takers, change places. */
static void swap_mounts(const struct state *s, struct state *r, int a, int b)
{
	int to[TAKERS], from_a = 0, from_b = 0;

	for (int e = config.users - 1; e >= 0; e--) {
		if (config.owner[e] == a)
			from_a = e;
		if (config.owner[e] == b)
			from_b = e;
	}
	for (int e = 0; e < config.users; e++) {
		to[e] = config.owner[e] == a   ? e - from_a + from_b
		        : config.owner[e] == b ? e - from_b + from_a
		                               : e;
		if (config.again)
			to[e + config.users] = to[e] + config.users;
	}
	*r = *s;
	for (int e = 0; e < config.takers; e++) {
		r->taker[to[e]] = s->taker[e];
		r->taker[to[e]].ahead = ref_to(s->taker[e].ahead, to);
		r->number[to[e]] = s->number[e];
	}
	r->mount[a] = s->mount[b];
	r->mount[b] = s->mount[a];
	for (int m = 0; m < config.mounts; m++) {
		struct mount *x = &r->mount[m];

		x->front = ref_to(x->front, to);
		x->unseen = ref_to(x->unseen, to);
		x->front_watched = ref_to(x->front_watched, to);
		x->unsent = mask_to(x->unsent, to);
		x->watches = mask_to(x->watches, to);
		for (int i = 0; i < x->requests; i++) {
			struct request *q = &x->request[i];

			if (q->kind == R_WRITE) {
				q->deletes = mask_to(q->deletes, to);
				q->entry = ref_to(q->entry, to);
				q->check = (uint8_t)((q->check & FORMER) |
				                     ref_to((uint8_t)(q->check & ~FORMER), to));
			} else if (q->kind != R_BEAT && q->kind != R_LIST) {
				q->entry = (uint8_t)to[q->entry];
			}
		}
	}
	for (int i = 0; i < s->logged; i++) {
		int org = s->log[i].by & ~REFUSED;

		r->log[i].deleted = mask_to(s->log[i].deleted, to);
		r->log[i].made = ref_to(s->log[i].made, to);
		r->log[i].marked = ref_to(s->log[i].marked, to);
		if (org == a + 1 || org == b + 1)
			r->log[i].by = (uint8_t)((s->log[i].by & REFUSED) |
			                         (org == a + 1 ? b + 1 : a + 1));
	}
	r->base = mask_to(s->base, to);
	r->base_marks = mask_to(s->base_marks, to);
	r->evicted = mask_to(s->evicted, to);
}

static bool alike(int a, int b)
{
	unsigned of_a = config.of_mount[a], of_b = config.of_mount[b];
	int shift = __builtin_ctz(of_b) - __builtin_ctz(of_a);

	return of_a << shift == of_b && (config.shared & of_a) << shift == (config.shared & of_b) &&
	       (config.tries & of_a) << shift == (config.tries & of_b) &&
	       (config.upgrades & of_a) << shift == (config.upgrades & of_b);
}

void normal_form(void)
{
	static struct state other;

	renumber();
	for (int round = 0; config.symmetry && round < 3; round++)
		for (int a = 0; a + 1 < config.mounts; a++)
			for (int b = a + 1; b < config.mounts; b++) {
				if (!alike(a, b))
					continue;
				swap_mounts(&S, &other, a, b);
				if (memcmp(&other, &S, sizeof(S)) < 0)
					S = other;
			}
}
