/* SPDX-License-Identifier: MIT
 *
 * mailbox.h - what heartbeat.c and session.c need of the mailbox; what others need is in session.h.
 */
#ifndef LOCKCORE_MAILBOX_H
#define LOCKCORE_MAILBOX_H

#include "session/session.h"

/* The mailbox has the path of the heartbeats' node, with this at the end. */
#define MAILBOX_SUFFIX "-pokes"

void mailbox_save_load(struct codec *codec);
/* There is a new connection. */
void mailbox_connected(struct lc *lc);
/* A watched node has changed. True: the mailbox is gone, and is made again after a heartbeat; or
 * the whole tree goes. */
bool mailbox_changed(struct lc *lc, const char *path, enum ensemble_change change);

#endif
