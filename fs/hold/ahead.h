/* SPDX-License-Identifier: MIT
 *
 * ahead.h - a host that dies with a lock cannot tell of it. So whoever gets the lock after a wait
 * is told, in its log and history, that the session of the one ahead has ended. That is asked when
 * the lock is granted already: nobody waits for the answer.
 */
#ifndef FS_AHEAD_H
#define FS_AHEAD_H

struct frontend;
struct hold;

/* The hold was granted just now. */
void ahead_granted(struct hold *hold);
/* The engine has ended, and answers nothing more. */
void ahead_end(struct frontend *front);

#endif
