/* SPDX-License-Identifier: MIT
 *
 * poke.h - telling a mount that one of its entries is marked, and being told: see poke.c.
 */
#ifndef LOCKCORE_POKE_H
#define LOCKCORE_POKE_H

#include "engine.h"

/* What is appended to the path of a mount's heartbeats, for its pokes. */
#define POKES_SUFFIX "-pokes"

/* Contact is good: what came meanwhile is looked at. */
void pokes_resume(struct lc *lc);
void pokes_changed(struct lc *lc, const char *path, enum ensemble_change change);

/* The entry of that path and name, of any mount; tried up to that time. */
void poke_mount(struct lc *lc, const char *entry, const struct entry_name *name, int64_t until_us);
void pokes_finish(struct lc *lc);

#endif
