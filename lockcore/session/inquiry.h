/* SPDX-License-Identifier: MIT
 *
 * inquiry.h - is the session over, as a server says? While the lease stands, our ensemble cannot
 * have ended it, unless somebody has closed it: see inquiry.c.
 */
#ifndef LOCKCORE_INQUIRY_H
#define LOCKCORE_INQUIRY_H

#include "session/session.h"

/* The server's word would cost the lease, and the server may be of another ensemble. */
bool inquiry_is_due(struct lc *lc);
/* Asks the next server, in a session of its own. The port is closed. 0 or -errno. The answer is in
 * session->inquiry, when the timer session->retry fires. */
int inquiry_begin(struct lc *lc);

#endif
