/* SPDX-License-Identifier: MIT
 *
 * limits.h - how much is under way at a time that takers would have to wait behind. The engine's
 * callers need not know.
 */
#ifndef LOCKCORE_LIMITS_H
#define LOCKCORE_LIMITS_H

/* So many questions that change something are under way at a time, in all and of one user but
 * root. The others wait, and users take turns. Of all of these numbers a part is root's alone:
 * GATE_ROOT_PART. */
#define CHANGES_MAX 16
#define USER_CHANGES_MAX 4

/* A session's requests are answered in their order. So only few reads are under way at a time,
 * or takers would wait behind them. There is one request at a time for each thing, and all calls
 * that came before it was sent share its answer. There is one list (of a queue, of the locks below)
 * at a time in all; after it no list is sent for LIST_REST_US for each of its names. Other
 * reads: at most READS_MAX in all, and so many for root and for each other user. */
#define LIST_REST_US 3
#define READS_MAX 32
#define ROOT_READS_MAX 24
#define USER_READS_MAX 16
/* A program that gets its answer may ask again at once. So at most TOLD_MAX answers are given in
 * a turn, and then none for TOLD_REST_US. */
#define TOLD_MAX 16
#define TOLD_REST_US 1000

/* The data of entries is written in the background: so many writes at a time; users take turns. */
#define DATA_WRITES_MAX 8

#endif
