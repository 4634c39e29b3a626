/* SPDX-License-Identifier: MIT */
#include "session/base.h"

#include "pure/name.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define QUIET_US (10 * 1000000LL)

int64_t lc_now(struct lc *lc)
{
	lc->read_us = lc->config.clock_us(lc->config.ctx);
	return lc->read_us;
}

int64_t lc_lately(const struct lc *lc)
{
	return lc->read_us;
}

uint64_t lc_random(struct lc *lc)
{
	uint64_t bits;

	lc->config.random(lc->config.ctx, &bits, sizeof(bits));
	return bits;
}

void config_report(const struct lc_config *config, enum lc_level level, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	config->report(config->ctx, level, text);
}

bool lc_may_say_again(struct lc *lc, int64_t *said_us)
{
	if (*said_us != 0 && lc_now(lc) - *said_us < QUIET_US)
		return false;
	*said_us = lc_now(lc);
	return true;
}

void lc_submit(struct lc *lc, struct ensemble_op op, ensemble_answer_fn *answer, void *ctx)
{
	lc_submit_all(lc, &op, 1, answer, ctx);
}

void lc_submit_all(struct lc *lc, const struct ensemble_op *ops, int count,
                   ensemble_answer_fn *answer, void *ctx)
{
	lc->counters.requests++;
	lc->ensemble->port->submit(lc->ensemble, ops, count, answer, ctx);
}

void lc_ignore(void *ctx, const struct ensemble_answer *answer)
{
	(void)ctx;
	(void)answer;
}

const char *lc_why_refused(const struct ensemble_answer *answer)
{
	if (answer->why)
		return answer->why;
	return answer->result == ENSEMBLE_REFUSED ? "for a reason of its own"
	                                          : "for a reason that should not be";
}

int errno_of(enum ensemble_result result)
{
	switch (result) {
	case ENSEMBLE_OK:
		return 0;
	case ENSEMBLE_NONODE:
		return -ENOENT;
	case ENSEMBLE_EXISTS:
		return -EEXIST;
	case ENSEMBLE_NOTEMPTY:
		return -ENOTEMPTY;
	case ENSEMBLE_NOAUTH:
		return -EACCES;
	case ENSEMBLE_NOCHILDREN:
		return -EPERM;
	case ENSEMBLE_INVALID:
		return -EINVAL;
	case ENSEMBLE_BADVERSION:
	case ENSEMBLE_REFUSED:
		return -ENOLCK;
	case ENSEMBLE_UNKNOWN:
	case ENSEMBLE_GONE:
		return -EHOSTUNREACH;
	}
	return -EIO;
}

int lc_check_name(const struct lc *lc, const char *name, const char **ret_why)
{
	int r = name_check(name, ret_why);
	const char *why = r == 0 && lc->config.reserved ? lc->config.reserved(name) : NULL;

	if (!why)
		return r;
	*ret_why = why;
	return -EINVAL;
}

char *path_join(const char *directory, const char *name)
{
	size_t before = strlen(directory), size = strlen(name) + 1;
	char *path = malloc(before + 1 + size);

	if (path) {
		memcpy(path, directory, before);
		path[before] = '/';
		memcpy(path + before + 1, name, size);
	}
	return path;
}

char *lc_path(struct lc *lc, const char *lock)
{
	return *lock ? path_join(lc->root, lock) : strdup(lc->root);
}

char *lc_path_above(struct lc *lc, const char *lock)
{
	char *path = lc_path(lc, lock);

	if (path)
		*strrchr(path, '/') = '\0';
	return path;
}
