/* SPDX-License-Identifier: MIT
 *
 * options_kept.c - what a mount runs with, and may change to: see options.h.
 */
#include "setup/options.h"

#include "host/duration.h"
#include "setup/options_file.h"

#include <argz.h>
#include <fuse_lowlevel.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kept_kind {
	KEPT_TEXT,
	KEPT_OPTIONS,
	KEPT_TIME,
	KEPT_FLAG,
	KEPT_NUMBER,
	KEPT_OCTAL,
	KEPT_LOSS
};

#define AT(field) offsetof(struct options, field)
#define OF_START "the kernel has it from the start"

/* Each option, and whether a reload takes it over. What counts at the start alone is taken over,
 * too: so a mount runs with what its file says. */
static const struct kept {
	const char *name;
	enum kept_kind kind;
	size_t at;
	const char *forbids; /* why it stays as it is; NULL: it is taken over */
	bool grows;          /* it may become larger all the same */
	const char *no;      /* the option that takes the flag off; NULL: there is none */
} kept_options[] = {
	{"servers", KEPT_TEXT, AT(servers), NULL, false, NULL},
	{"root", KEPT_TEXT, AT(root), "its locks are others", false, NULL},
	{"session_timeout", KEPT_TIME, AT(session_timeout_us),
         "the locks rest on the longer session", true, NULL},
	{"tick_time", KEPT_TIME, AT(tick_time_us), "the lease rests on the longer tick", true,
         NULL},
	{"connect_timeout", KEPT_TIME, AT(connect_timeout_us), NULL, false, NULL},
	{"retry", KEPT_TIME, AT(retry_us), NULL, false, NULL},
	{"drain", KEPT_TIME, AT(drain_us), NULL, false, NULL},
	{"credentials", KEPT_TEXT, AT(credentials_file), "the locks are for that user", false,
         NULL},
	{"mkroot", KEPT_FLAG, AT(make_root), NULL, false, NULL},
	{"on_lost", KEPT_LOSS, AT(on_lost), NULL, false, NULL},
	{"reuse", KEPT_FLAG, AT(reuse), NULL, false, "noreuse"},
	{"log_takes", KEPT_FLAG, AT(log_takes), NULL, false, "nolog_takes"},
	{"audit", KEPT_FLAG, AT(audit), NULL, false, "noaudit"},
	{"debug", KEPT_FLAG, AT(debug), NULL, false, NULL},
	{"keeper", KEPT_FLAG, AT(supervisor), "the supervisor is there from the start, or never",
         false, "nokeeper"},
	{"protect", KEPT_FLAG, AT(protect), NULL, false, "noprotect"},
	{"host", KEPT_TEXT, AT(host), "the entries have that name", false, NULL},
	{"clients", KEPT_TEXT, AT(clients), "the entries have names of that family", false, NULL},
	{"uid", KEPT_NUMBER, AT(uid), NULL, false, NULL},
	{"gid", KEPT_NUMBER, AT(gid), NULL, false, NULL},
	{"umask", KEPT_OCTAL, AT(umask), NULL, false, NULL},
	{"allow_other", KEPT_FLAG, AT(all_users), OF_START, false, NULL},
	{"ro", KEPT_FLAG, AT(read_only), OF_START, false, "rw"},
	{"noatime", KEPT_FLAG, AT(no_atime), OF_START, false, "atime"},
	{"context", KEPT_OPTIONS, AT(contexts), OF_START, false, NULL},
	{.name = NULL},
};

/* The most bytes of one option's number, in decimal. */
#define NUMBER_MAX 32

static const char *kept_value(const struct kept *kept, const struct options *options,
                              char number[NUMBER_MAX])
{
	const char *at = (const char *)options + kept->at;
	const char *text;
	int64_t us;

	/* Otherwise it is computed from what servers say. */
	if (kept->at == AT(tick_time_us) && !options->has_tick_time)
		return "-";
	switch (kept->kind) {
	case KEPT_TEXT:
	case KEPT_OPTIONS:
		memcpy(&text, at, sizeof(text));
		return text ? text : "-";
	case KEPT_TIME:
		memcpy(&us, at, sizeof(us));
		snprintf(number, NUMBER_MAX, us % 1000000 ? "%" PRId64 "ms" : "%" PRId64 "s",
		         us % 1000000 ? us / 1000 : us / 1000000);
		return number;
	case KEPT_FLAG:
		return *(const bool *)at ? "yes" : "no";
	case KEPT_NUMBER:
		snprintf(number, NUMBER_MAX, "%u", *(const unsigned *)at);
		return number;
	case KEPT_OCTAL:
		snprintf(number, NUMBER_MAX, "%03o", *(const unsigned *)at);
		return number;
	case KEPT_LOSS:
		return guardian_on_lost_name(*(const enum on_lost *)at);
	}
	return "-";
}

char *options_text(const struct options *options)
{
	char number[NUMBER_MAX], *text = NULL;
	size_t len = 0;
	FILE *file = open_memstream(&text, &len);
	bool ok = file;

	for (const struct kept *kept = kept_options; file && kept->name; kept++)
		ok &= fprintf(file, "%s: %s\n", kept->name, kept_value(kept, options, number)) > 0;
	if (file && fclose(file) == 0 && ok)
		return text;
	free(text);
	return NULL;
}

/* Adds it as an option that has that value. */
static bool add_kept(char **opts, const struct kept *kept, const char *value)
{
	char *option = NULL;
	bool ok;

	if (strcmp(value, "no") == 0 && kept->kind == KEPT_FLAG)
		return !kept->no || fuse_opt_add_opt(opts, kept->no) == 0;
	if (kept->kind == KEPT_FLAG)
		return fuse_opt_add_opt(opts, kept->name) == 0;
	if (strcmp(value, "-") == 0)
		return true;
	if (kept->kind == KEPT_OPTIONS)
		return fuse_opt_add_opt(opts, value) == 0;
	ok = asprintf(&option, "%s=%s", kept->name, value) >= 0 &&
	     fuse_opt_add_opt_escaped(opts, option) == 0;
	free(option);
	return ok;
}

/* The locks rest on the session that the mount has, which may be shorter than what it would ask for
 * now: the engine compares the two when it takes over. */
static bool is_of_session(const struct kept *kept)
{
	return kept->at == AT(session_timeout_us);
}

static bool is_argument(const struct kept *kept)
{
	return kept->at == AT(servers) || kept->at == AT(root);
}

char *options_args(const struct options *options, size_t *ret_len)
{
	char number[NUMBER_MAX], *opts = NULL, *source = NULL, *bytes = NULL;
	bool ok = asprintf(&source, "%s%s", options->servers, options->root) >= 0;

	for (const struct kept *kept = kept_options; ok && kept->name; kept++)
		ok = is_argument(kept) || add_kept(&opts, kept, kept_value(kept, options, number));
	if (ok)
		(void)argz_create((char *[]){(char *)"-o", opts, (char *)"--", source,
		                             options->mountpoint, NULL},
		                  &bytes, ret_len);
	free(source);
	free(opts);
	return bytes;
}

/* The value in the line of that name; NULL: there is none. Malloced. */
static char *line_value(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (; text; text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL)
		if (strncmp(text, name, len) == 0 && strncmp(text + len, ": ", 2) == 0)
			return strndup(text + len + 2, strcspn(text + len + 2, "\n"));
	return NULL;
}

bool options_again(const char *text, char **ret_opts, char **ret_source)
{
	char *servers = line_value(text, "servers"), *root = line_value(text, "root");
	bool ok = servers && root && asprintf(ret_source, "%s%s", servers, root) >= 0;

	for (const struct kept *kept = kept_options; ok && kept->name; kept++) {
		char *value = is_argument(kept) ? NULL : line_value(text, kept->name);

		ok = !value || add_kept(ret_opts, kept, value);
		free(value);
	}
	free(servers);
	free(root);
	return ok;
}

/* Why a mount that has the one value keeps it; NULL: it may go on with the other. */
static const char *kept_forbids(const struct kept *kept, const char *old, const char *new)
{
	int64_t old_us = OPTIONS_TICK_TIME_US, new_us = OPTIONS_TICK_TIME_US;

	if (!kept->forbids || strcmp(old, new) == 0)
		return NULL;
	if (kept->grows) { /* a tick that is not given is "-" */
		(void)duration_parse(old, &old_us);
		(void)duration_parse(new, &new_us);
	}
	return kept->grows && new_us >= old_us ? NULL : kept->forbids;
}

const char *options_forbid(const struct options *was, const struct options *wanted)
{
	char before[NUMBER_MAX], after[NUMBER_MAX];
	static char why[512];

	for (const struct kept *kept = kept_options; kept->name; kept++) {
		const char *old = kept_value(kept, was, before);
		const char *new = kept_value(kept, wanted, after);
		const char *forbids = is_of_session(kept) ? NULL : kept_forbids(kept, old, new);

		if (!forbids)
			continue;
		snprintf(why, sizeof(why),
		         "%s cannot change from %s to %s in place, only by a restart: %s",
		         kept->name, old, new, forbids);
		return why;
	}
	return NULL;
}

const char *options_changes(const struct options *was, const struct options *now, char *room,
                            size_t size)
{
	char before[NUMBER_MAX], after[NUMBER_MAX];
	size_t len = 0;

	*room = '\0';
	for (const struct kept *kept = kept_options; kept->name && len < size; kept++) {
		const char *old = kept_value(kept, was, before);
		const char *new = kept_value(kept, now, after);

		if (strcmp(old, new) != 0)
			len += (size_t)snprintf(room + len, size - len, "%s%s %s -> %s%s",
			                        len ? "; " : "", kept->name, old, new,
			                        is_of_session(kept) ? ", from the next session on"
			                                            : "");
	}
	return room;
}

bool options_session_is_shorter(const struct options *options, const char *text, char **ret_has)
{
	int64_t has_us = 0;

	*ret_has = line_value(text, OPTIONS_FILE_SESSION);
	if (*ret_has && duration_parse(*ret_has, &has_us) && has_us > 0 &&
	    has_us < options->session_timeout_us)
		return true;
	free(*ret_has);
	return false;
}

static void add_kept_name(char names[OPTIONS_STAY_MAX], const char *name)
{
	size_t len = strlen(names);

	snprintf(names + len, OPTIONS_STAY_MAX - len, "%s%s", len ? ", " : "", name);
}

const char *options_differ(const struct options *options, const char *text, char *room, size_t size,
                           char stay[OPTIONS_STAY_MAX])
{
	char number[NUMBER_MAX];
	size_t len = 0;

	*room = '\0';
	*stay = '\0';
	for (const struct kept *kept = kept_options; kept->name && len < size; kept++) {
		const char *wanted = kept_value(kept, options, number);
		char *has = line_value(text, kept->name);
		char *held = is_of_session(kept) ? line_value(text, OPTIONS_FILE_SESSION) : NULL;

		if (has && strcmp(has, wanted) != 0) {
			len += (size_t)snprintf(room + len, size - len, "%s%s %s, and not %s",
			                        len ? "; " : "", kept->name, has, wanted);
			if (kept_forbids(kept, held ? held : has, wanted))
				add_kept_name(stay, kept->name);
		}
		free(held);
		free(has);
	}
	return room;
}
