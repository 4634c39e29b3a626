/* SPDX-License-Identifier: MIT
 *
 * span.h - lengths of time: as users write them, as they are shown, and the clock they are
 * measured by, which goes on while the machine is suspended.
 */
#ifndef ZKLOCK_SPAN_H
#define ZKLOCK_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPAN_MAX 16

/* A whole number and ms, s, m, h or d; seconds without a unit. At most a year. */
bool span_parse(const char *text, int64_t *ret_ms);
/* Writes `250ms`, `42s`, `3m07s`, `2h05m`, `12d03h`; `-` below 0. */
const char *span_format(char buffer[SPAN_MAX], int64_t ms);
/* CLOCK_BOOTTIME. */
int64_t span_now_ms(void);
/* A descriptor that poll(2) shows as readable from that time on; -1 and errno. */
int span_alarm(void);
bool span_alarm_at(int fd, int64_t at_ms);
/* How long ago a time was that a file of the mount shows; -1 if it shows none. */
int64_t span_since(const char *time);
/* The same by another clock, which is so far before this host's. */
int64_t span_since_by(const char *time, int64_t ahead_ms);
/* Writes the time of the text by the clock on the wall: `02:41:07` today, else with the date. `-`
 * if the text shows none. */
#define SPAN_TIME_MAX 32
const char *span_time(char buffer[SPAN_TIME_MAX], const char *text);
/* The reason of a lock that is kept begins so, with the time until when: span_kept() puts
 * span_time() in its place. False: the lock is not kept. */
#define SPAN_KEPT "kept until "
bool span_kept(char *reason);

#endif
