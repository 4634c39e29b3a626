/* SPDX-License-Identifier: MIT
 *
 * host.h - one host: an engine on the world, the loop around it, and the clock of both.
 * The loop is prepare, poll, requests, process, send. A host that is paused does nothing while
 * its sockets fill.
 */
#ifndef WORLD_HOST_H
#define WORLD_HOST_H

#include "lockcore.h"
#include "notes.h"
#include "wire.h"
#include "world.h"

struct host;

/* Functions of the test; each may be NULL. */
struct host_hooks {
	/* A turn begins. */
	void (*turns)(struct host *host);
	/* A turn ends: the function calls lc_send(), unless the host dies before that. */
	void (*ends)(struct host *host);
	/* The host goes on after a pause in which its clock stood still. */
	void (*stood_still)(struct host *host);
	/* As in struct wire. */
	void (*freeze)(void *ctx, int64_t duration_us);
	void (*renews)(void *ctx);
	void (*joined)(void *ctx, int64_t timeout_us, int64_t connect_us);
	void (*wrote)(void *ctx, int64_t sent_us, enum ensemble_kind kind, const char *path);
	void (*greets)(void *ctx);
};

struct host {
	void *owner; /* an object of the test */
	const struct host_hooks *hooks;
	struct world *world;
	struct agenda *agenda; /* the world's */
	int index;
	char name[8];       /* m0, m1, ... */
	struct lc *lc;      /* NULL: not started yet, or stopped */
	struct notes notes; /* the engine's records */
	struct wire wire;
	struct rng rng;
	bool jitter; /* the loop wakes up after random delays */
	int64_t turn_at_us;
	uint64_t turn_serial;
	int64_t clock_base_us, drift_ppm;
	bool paused;
	bool still; /* paused, and its clock with it */
	int64_t still_clock_us, paused_since_us, paused_total_us;
};

/* The host's clock is the world's; set another base and a drift before the start. */
void host_init(struct host *host, struct world *world, int index, struct rng rng,
               const struct host_hooks *hooks, void *owner);
/* The configuration of an engine on this host; its `ctx` is the host. */
struct lc_config host_config(struct host *host, const char *root);
/* As lc_create(). */
int host_start(struct host *host, const struct lc_config *config);
/* As lc_adopt(), after host_stop(): the engine goes on from the records of the last commit. */
int host_adopt(struct host *host, const struct lc_config *config);
/* Ends the engine as SIGKILL does; with farewell, as umount does. It can be started again. */
void host_stop(struct host *host, bool farewell);
void host_finish(struct host *host);
/* The engine got a request: the loop has to take a turn. */
void host_wake(struct host *host);
/* Requests of its engine wait to be sent. */
bool host_keeps(const struct host *host);
/* The process is stopped for that time, by SIGSTOP and SIGCONT. */
void host_pause(struct host *host, int64_t duration_us);
/* The machine is stopped, and its clock stands still. */
void host_still(struct host *host, int64_t duration_us);
void host_slew(struct host *host, int64_t drift_ppm);
void host_move_clock(struct host *host, int64_t clock_us);
int64_t host_clock_us(const struct host *host);
/* Virtual time without the pauses. */
int64_t host_running_us(const struct host *host);

#endif
