/* SPDX-License-Identifier: MIT */
#include "span.h"

#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>

#define SECOND 1000LL
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define YEAR (366 * DAY)

bool span_parse(const char *text, int64_t *ret_ms)
{
	static const struct {
		const char *name;
		int64_t ms;
	} units[] = {{"", SECOND},  {"ms", 1},   {"s", SECOND},
	             {"m", MINUTE}, {"h", HOUR}, {"d", DAY}};
	int64_t number = 0;
	size_t n;

	for (n = 0; text[n] >= '0' && text[n] <= '9'; n++) {
		number = number * 10 + (text[n] - '0');
		if (number > YEAR)
			return false;
	}
	if (n == 0)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(text + n, units[i].name) != 0)
			continue;
		if (number > YEAR / units[i].ms)
			return false;
		*ret_ms = number * units[i].ms;
		return true;
	}
	return false;
}

const char *span_format(char buffer[SPAN_MAX], int64_t ms)
{
	if (ms < 0)
		return "-";
	if (ms < SECOND)
		snprintf(buffer, SPAN_MAX, "%dms", (int)ms);
	else if (ms < MINUTE)
		snprintf(buffer, SPAN_MAX, "%ds", (int)(ms / SECOND));
	else if (ms < HOUR)
		snprintf(buffer, SPAN_MAX, "%dm%02ds", (int)(ms / MINUTE),
		         (int)(ms % MINUTE / SECOND));
	else if (ms < DAY)
		snprintf(buffer, SPAN_MAX, "%dh%02dm", (int)(ms / HOUR), (int)(ms % HOUR / MINUTE));
	else
		snprintf(buffer, SPAN_MAX, "%dd%02dh", (int)(ms / DAY % 1000000),
		         (int)(ms % DAY / HOUR));
	return buffer;
}

int64_t span_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec * SECOND + now.tv_nsec / 1000000;
}

int span_alarm(void)
{
	return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
}

bool span_alarm_at(int fd, int64_t at_ms)
{
	struct itimerspec when = {.it_value = {at_ms / SECOND, at_ms % SECOND * 1000000 + 1}};

	return timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL) == 0;
}

/* Milliseconds since 1970; -1: it is no time. */
static int64_t parse_time(const char *time)
{
	struct tm tm = {0};
	char *rest = strptime(time, "%Y-%m-%dT%H:%M:%S", &tm);
	int ms = 0;

	if (!rest || (*rest && *rest != '.' && *rest != 'Z'))
		return -1;
	sscanf(rest, ".%3d", &ms);
	return timegm(&tm) * SECOND + ms;
}

int64_t span_since_by(const char *time, int64_t ahead_ms)
{
	int64_t then = parse_time(time);
	struct timespec now;

	if (then < 0)
		return -1;
	clock_gettime(CLOCK_REALTIME, &now);
	then = now.tv_sec * SECOND + now.tv_nsec / 1000000 + ahead_ms - then;
	return then < 0 ? 0 : then; /* the clocks of two hosts differ */
}

int64_t span_since(const char *time)
{
	return span_since_by(time, 0);
}

const char *span_time(char buffer[SPAN_TIME_MAX], const char *text)
{
	int64_t then_ms = parse_time(text);
	time_t then = (time_t)(then_ms / SECOND), now = time(NULL);
	struct tm tm, today;

	if (then_ms < 0 || !localtime_r(&then, &tm) || !localtime_r(&now, &today))
		return "-";
	strftime(buffer, SPAN_TIME_MAX,
	         tm.tm_year == today.tm_year && tm.tm_yday == today.tm_yday ? "%H:%M:%S"
	                                                                    : "%Y-%m-%d %H:%M:%S",
	         &tm);
	return buffer;
}

bool span_kept(char *reason)
{
	char buffer[SPAN_TIME_MAX], *from = reason + strlen(SPAN_KEPT), *rest;
	size_t n;

	if (strncmp(reason, SPAN_KEPT, strlen(SPAN_KEPT)) != 0)
		return false;
	rest = from + strcspn(from, ",");
	n = strlen(span_time(buffer, from));
	if (parse_time(from) >= 0 && from + n <= rest) {
		memcpy(from, buffer, n);
		memmove(from + n, rest, strlen(rest) + 1);
	}
	return true;
}
