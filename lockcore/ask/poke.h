/* SPDX-License-Identifier: MIT
 *
 * poke.h - telling a mount that one of its entries is marked, and being told: see poke.c.
 */
#ifndef LOCKCORE_POKE_H
#define LOCKCORE_POKE_H

#include "lock/entry.h"

/* VANISHED: it was made, and somebody has deleted it: its lines may not have been read. */
enum pokes_state { POKES_ABSENT, POKES_MADE, POKES_VANISHED };

struct pokes {
	char *node; /* of this mount: see poke.c */
	enum pokes_state state;
	unsigned asked;         /* requests to make or read it, under way */
	bool unread;            /* the ensemble has refused to show it */
	bool look_at_all;       /* lines may have gone: the next read looks at all entries */
	int32_t seen;           /* its version */
	int64_t sent_us;        /* its create */
	struct poke *under_way; /* to other mounts */
};

/* The node for pokes is that of the heartbeats, with this at the end. */
#define POKES_SUFFIX "-pokes"

/* 0 or -ENOMEM. */
int pokes_begin(struct lc *lc);
void pokes_new_session(struct lc *lc);
/* From one process to the next, in the same session. */
void pokes_save_load(struct codec *codec, struct lc *lc);
/* Contact is good: pokes that came meanwhile are read. */
void pokes_resume(struct lc *lc);
/* A heartbeat was answered. The node may have been refused, or it may have gone with the root. */
void pokes_try_again(struct lc *lc);
void pokes_changed(struct lc *lc, const char *path, enum ensemble_change change);

/* The mount was poked, or it has no node for that, or the ensemble refuses it for too long. */
typedef void poke_done_fn(void *ctx);

/* The entry of that path and name, of any mount. NULL: no memory. */
struct poke *poke_make(struct lc *lc, const char *entry, const struct entry_name *name,
                       poke_done_fn *done, void *ctx);
/* Refusals are tried again until `until_us`. `done` comes once, not from inside, and the poke is
 * freed before that. */
void poke_send(struct poke *poke, int64_t until_us);
/* One that was not sent, or NULL. */
void poke_free(struct poke *poke);
/* None is under way any more, and no `done` comes. */
void pokes_cancel(struct lc *lc);
void pokes_finish(struct lc *lc);

#endif
