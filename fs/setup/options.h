/* SPDX-License-Identifier: MIT
 *
 * options.h - the command line, as mount(8) and people write it.
 */
#ifndef FS_OPTIONS_H
#define FS_OPTIONS_H

#define FUSE_USE_VERSION 314

#include "guard/guardian.h"

#include <fuse_opt.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	EXIT_USAGE = 1,
	EXIT_MOUNT = 32, /* mount(8): the mount failed */
};

#define OPTIONS_TICK_TIME_US (2 * 1000000LL) /* if it is not given */

struct options {
	char *source;     /* SERVERS[/ROOT] as given */
	char *servers;    /* its first part */
	char *root;       /* its second, "/locks" when left out */
	char *mountpoint; /* absolute; to check: as given, or NULL */
	char *unit;       /* the file of a unit that servers and options are from, or NULL */
	bool foreground, debug, make_root, read_only, reuse, log_takes, audit, supervisor;
	bool check;         /* nothing is mounted: check.h */
	bool change;        /* a mount is to go on with these options: change.h */
	bool has_tick_time; /* it was given */
	bool protect;       /* the mount point: unmounted.h */
	int64_t session_timeout_us, tick_time_us, connect_timeout_us, retry_us, drain_us;
	char *host;
	char *clients;                        /* one of LC_CLIENTS, or NULL */
	char *credentials_file, *credentials; /* credentials.h, or NULL */
	enum on_lost on_lost;
	bool all_users; /* may use the mount */
	bool no_atime;
	char *contexts; /* context= and the like, as options; or NULL */
	uid_t uid;      /* of locks that other clients have made */
	gid_t gid;
	mode_t umask;
	struct fuse_args fuse_args; /* options for libfuse and the kernel */
};

/* Why there are no options: the exit status, and a line for people, malloced; NULL: it has been
 * said. */
struct refusal {
	int status;
	char *why;
};

/* `mountpoint`: where the mount is already; NULL: it is as given, and free, or to be changed. */
bool options_read(int argc, char **argv, const char *mountpoint, struct options *ret_options,
                  struct refusal *ret_refusal);
/* The same. True: go on. False: leave with *ret_status; everything has been said. */
bool options_parse(int argc, char **argv, const char *mountpoint, struct options *ret_options,
                   int *ret_status);
/* How long the start goes on trying to reach a server. */
int64_t options_start_timeout_us(const struct options *options);
void options_free(struct options *options);

/* ---- what a mount runs with, and may change to: options_kept.c ---- */

/* A line for each option: "name: value". Malloced; NULL: no memory. */
char *options_text(const struct options *options);
/* The options as a command line: args.h. Malloced; NULL: no memory. */
char *options_args(const struct options *options, size_t *ret_len);
/* Takes options and SERVERS/ROOT out of such a text, as words of a command line. Malloced, also if
 * memory runs out: false. */
bool options_again(const char *text, char **ret_opts, char **ret_source);
/* Why a mount with the one cannot go on with the others. Good until the next call. NULL: it can. */
const char *options_forbid(const struct options *was, const struct options *wanted);
/* What a reload changes: "on_lost none -> term; ..." Returns `room`; "": nothing. */
const char *options_changes(const struct options *was, const struct options *now, char *room,
                            size_t size);
/* Whether a mount, by its text, has a shorter session than these options ask for: *ret_has,
 * malloced. */
bool options_session_is_shorter(const struct options *options, const char *text, char **ret_has);
/* What a mount runs with, by its text, and these options do not say: "on_lost none, and not term;
 * ..." Returns `room`; "": nothing. `stay`: the names of those that no reload changes, "host,
 * ro"; "": a reload would take these options. */
#define OPTIONS_STAY_MAX 256
const char *options_differ(const struct options *options, const char *text, char *room, size_t size,
                           char stay[OPTIONS_STAY_MAX]);

#endif
