/* SPDX-License-Identifier: MIT
 *
 * rng.h - the only source of chance in the simulation: one 64-bit state
 * (splitmix64), so that a seed always gives the same run.
 */
#ifndef WORLD_RNG_H
#define WORLD_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
	uint64_t state;
};

static inline uint64_t rng_next(struct rng *rng)
{
	uint64_t z = (rng->state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* 0 .. n - 1 */
static inline uint64_t rng_below(struct rng *rng, uint64_t n)
{
	return n ? rng_next(rng) % n : 0;
}

/* lo .. hi, both included */
static inline int64_t rng_between(struct rng *rng, int64_t lo, int64_t hi)
{
	return lo + (int64_t)rng_below(rng, (uint64_t)(hi - lo) + 1);
}

static inline bool rng_chance(struct rng *rng, unsigned per_mille)
{
	return rng_below(rng, 1000) < per_mille;
}

/* lo .. hi, mostly short values: 40 % of them are at most hi / 1000 (or `lo`, if that is more). */
static inline int64_t rng_spread(struct rng *rng, int64_t lo, int64_t hi)
{
	int64_t top = lo < hi / 1000 ? hi / 1000 : lo;

	while (top < hi && rng_chance(rng, 600))
		top = top * 3 < hi ? top * 3 : hi;
	return rng_between(rng, lo, top);
}

/* An independent stream, so that the choices of one actor do not change another's. */
static inline struct rng rng_fork(struct rng *rng)
{
	return (struct rng){rng_next(rng) ^ 0x5851f42d4c957f2du};
}

#endif
