/* SPDX-License-Identifier: MIT
 *
 * home.h - the ensemble that this mount belongs to. The mount knows it again by ROOT/ROOT_DIR, a
 * node that is made once: see home.c.
 */
#ifndef LOCKCORE_HOME_H
#define LOCKCORE_HOME_H

#include "session/base.h"

/* GOOD: a heartbeat was answered OK. GONE: somebody has removed the root since, and that was
 * reported. */
enum home_root { ROOT_UNKNOWN, ROOT_GOOD, ROOT_GONE };

enum home_answer {
	HOME_HERE,     /* this is the mount's ensemble, and ROOT_DIR is there */
	HOME_NOT_HERE, /* another ensemble, or the same without its data: home->met */
	HOME_LATER,    /* refused for the moment, or the root is gone */
	HOME_UNUSABLE, /* the root cannot be had: -errno */
	HOME_UNKNOWN,  /* there was no answer */
};
typedef void home_found_fn(struct lc *lc, enum home_answer answer, int err);

#define HOME_MET_MAX 512

struct home {
	char *dir; /* ROOT/ROOT_DIR */
	struct lc_mark known;
	enum home_root root;
	bool certain;   /* this connection leads home: a heartbeat was answered on it */
	bool looked;    /* ROOT_DIR was read on this connection, since a node in it was missed */
	bool strange;   /* this connection has shown what is unusual at home: home_missed() */
	bool elsewhere; /* the last connection led to another ensemble */
	home_found_fn *found;
	/* Why there is no contact: who was met last, and what is wrong; "" after contact. */
	char met[HOME_MET_MAX];
};

/* 0 or -ENOMEM; home_free() follows in either case. */
int home_begin(struct lc *lc, home_found_fn *found);
void home_free(struct lc *lc);
void home_save_load(struct codec *codec, struct lc *lc);

/* There is a new connection. Where it leads is not known. */
void home_connected(struct lc *lc);
/* Finds out whether this connection leads home; found() is called once, later. A missing
 * ROOT_DIR is made at the start, and where the connection is certain. A missing root is made
 * only at the start. */
void home_find(struct lc *lc);
/* A node below ROOT_DIR is not there, or a watched one has changed: ROOT_DIR may be gone, too. */
void home_missed(struct lc *lc);
/* The mount knows its ensemble, and nothing shows yet that this connection leads there. */
bool home_may_be_elsewhere(const struct lc *lc);
/* A heartbeat was answered OK. */
void home_proved(struct lc *lc);
/* Remembers, for the status, why contact cannot be had. Reports it, if that is news. */
void home_met(struct lc *lc, enum lc_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
