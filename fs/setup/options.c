/* SPDX-License-Identifier: MIT */
#include "setup/options.h"

#include "host/args.h"
#include "host/duration.h"
#include "host/nearest.h"
#include "host/safe.h"
#include "setup/credentials.h"
#include "setup/mountpoint.h"
#include "setup/options_file.h"
#include "setup/source.h"
#include "setup/unit_name.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BAD_MAX 2000 /* bytes, after which no more wrong options are told */

static const char usage[] =
	"usage: zklockfs [-f] [-d] [-o OPTION[,OPTION...]] SERVERS[/ROOT] MOUNTPOINT\n"
	"       zklockfs --check [-o OPTION[,OPTION...]] SERVERS[/ROOT] [MOUNTPOINT]\n"
	"       zklockfs --check [-o OPTION[,OPTION...]] MOUNTPOINT\n"
	"       zklockfs --reload [-o OPTION[,OPTION...]] [SERVERS[/ROOT]] MOUNTPOINT\n"
	"\n"
	"Mounts the locks of a ZooKeeper ensemble. Each directory is a lock: opening its\n"
	"file `lock` for writing acquires the lock, closing that file releases it.\n"
	"\n"
	"  SERVERS   host[:port][,...], for example zk1:2181,zk2:2181,zk3:2181\n"
	"  ROOT      the sub-tree to mount (/locks)\n"
	"\n"
	"  -f   stay in the foreground, log to stderr\n"
	"  -d   like -f, and log each answered request\n"
	"  --check         say of each thing that a mount needs whether it is right\n"
	"  --reload        have the mount go on with this program and these options\n"
	"  -h, --help      print this text\n"
	"  -V, --version   print the versions\n"
	"\n"
	"options (DUR is a number with ms, s, m or h; the default is in parentheses):\n"
	"  session_timeout=DUR   how long a dead host keeps its locks (15s)\n"
	"  tick_time=DUR         the servers' tickTime, if they do not tell it (2s)\n"
	"  connect_timeout=DUR   how long to wait for a server at the start (10s)\n"
	"  retry=DUR             try again for so long, if more than connect_timeout (0s)\n"
	"  drain=DUR             how long holders are served after SIGTERM (60s)\n"
	"  credentials=FILE      file with user:password for the ensemble (none)\n"
	"  mkroot                make ROOT if it is absent; /locks is always made\n"
	"  on_lost=none|term|kill  how to stop processes that lose a lock (none)\n"
	"  noreuse, reuse        give up the place of a process that takes again at once\n"
	"  log_takes, nolog_takes  log each grant, release and refusal\n"
	"  audit, noaudit        log each hold when it ends\n"
	"  nokeeper, keeper      do not restart the daemon after a crash\n"
	"  noprotect, protect    leave the empty mount point as it is\n"
	"  host=NAME             name of this host in the queues (its host name)\n"
	"  clients=FAMILY        whose clients of ZooKeeper use the locks, too (curator)\n"
	"  uid=N, gid=N          owner of locks that other clients made (the mounter)\n"
	"  umask=MASK            bits removed from the mode 0777 of such locks (022)\n"
	"  allow_other           let other users in; always set when root mounts\n"
	"  remount               as --reload, for mount(8)\n"
	"  ro, noatime, context=... as for every mount\n";

enum key { KEY_CONTEXT, KEY_KERNEL };

struct raw {
	char *session_timeout, *tick_time, *connect_timeout, *retry, *drain;
	char *host, *clients, *on_lost, *credentials, *uid, *gid, *umask;
	int mkroot, noreuse, log_takes, audit, nokeeper, noprotect, read_only, no_atime, all_users;
	int help, version, check, foreground, debug;
	int reload, remount;
	char *source, *mountpoint;
	const char *mounted;
	char *unit;     /* the file that has these words; NULL: they are given */
	char *slip;     /* a name in it that nobody reads, and which one is meant, or NULL */
	char *bad;      /* what is wrong with options that are not taken */
	char *kernels;  /* an option that only mount(8) names, as it found it */
	char *extra;    /* the first argument too many */
	char *contexts; /* options for the kernel, as one */
};

#define VALUE(name, field)                                 \
	{                                                  \
		name "=%s", offsetof(struct raw, field), 0 \
	}

static const struct fuse_opt table[] = {
	VALUE("session_timeout", session_timeout),
	VALUE("tick_time", tick_time),
	VALUE("connect_timeout", connect_timeout),
	VALUE("retry", retry),
	VALUE("drain", drain),
	VALUE("host", host),
	VALUE("clients", clients),
	/* Former versions had metrics_locks=; it does nothing. */
	FUSE_OPT_KEY("metrics_locks=", FUSE_OPT_KEY_DISCARD),
	VALUE("on_lost", on_lost),
	VALUE("credentials", credentials),
	VALUE("uid", uid),
	VALUE("gid", gid),
	VALUE("umask", umask),
	{"mkroot", offsetof(struct raw, mkroot), 1},
	{"reuse", offsetof(struct raw, noreuse), 0}, /* as it is anyway */
	{"noreuse", offsetof(struct raw, noreuse), 1},
	{"log_takes", offsetof(struct raw, log_takes), 1},
	{"nolog_takes", offsetof(struct raw, log_takes), 0},
	{"audit", offsetof(struct raw, audit), 1},
	{"noaudit", offsetof(struct raw, audit), 0},
	{"keeper", offsetof(struct raw, nokeeper), 0}, /* the same */
	{"nokeeper", offsetof(struct raw, nokeeper), 1},
	{"protect", offsetof(struct raw, noprotect), 0}, /* the same */
	{"noprotect", offsetof(struct raw, noprotect), 1},
	{"ro", offsetof(struct raw, read_only), 1},
	{"rw", offsetof(struct raw, read_only), 0},
	{"noatime", offsetof(struct raw, no_atime), 1},
	{"atime", offsetof(struct raw, no_atime), 0},
	{"relatime", offsetof(struct raw, no_atime), 0},
	{"strictatime", offsetof(struct raw, no_atime), 0},
	{"-h", offsetof(struct raw, help), 1},
	{"--help", offsetof(struct raw, help), 1},
	{"-V", offsetof(struct raw, version), 1},
	{"--version", offsetof(struct raw, version), 1},
	{"--check", offsetof(struct raw, check), 1},
	{"--reload", offsetof(struct raw, reload), 1},
	{"remount", offsetof(struct raw, remount), 1},
	{"-f", offsetof(struct raw, foreground), 1},
	{"-d", offsetof(struct raw, debug), 1},
	{"debug", offsetof(struct raw, debug), 1},
	{"allow_other", offsetof(struct raw, all_users), 1},
	FUSE_OPT_KEY("context=", KEY_CONTEXT),
	FUSE_OPT_KEY("fscontext=", KEY_CONTEXT),
	FUSE_OPT_KEY("defcontext=", KEY_CONTEXT),
	FUSE_OPT_KEY("rootcontext=", KEY_CONTEXT),
	FUSE_OPT_KEY("user_id=", KEY_KERNEL),
	FUSE_OPT_KEY("group_id=", KEY_KERNEL),
	FUSE_OPT_KEY("max_read=", KEY_KERNEL),
	FUSE_OPT_END,
};

static int take_argument(struct raw *raw, const char *arg)
{
	char **to = !raw->source ? &raw->source : !raw->mountpoint ? &raw->mountpoint : &raw->extra;

	if (*to)
		return 0;
	*to = strdup(arg);
	return *to ? 0 : -1;
}

/* Options that mount(8), fstab and systemd keep for themselves, and the opposites of those that are
 * always set. */
static const char *const ignored[] = {
	"defaults",   "_netdev",
	"nofail",     "auto",
	"noauto",     "user",
	"silent",     "loud",
	"dirsync",    "nomand",
	"noiversion", "symfollow",
	"nouser",     "users",
	"owner",      "group",
	"dev",        "nodev",
	"suid",       "nosuid",
	"exec",       "noexec",
	"diratime",   "nodiratime",
	"norelatime", "nostrictatime",
	"lazytime",   "nolazytime",
	"-v",         "-n",
	"-s",         "async",
	"sync",       "default_permissions",
	NULL,
};

static bool is_ignored(const char *arg)
{
	static const char *const begins[] = {"user=", "helper=", "uhelper=", "comment=", "x-"};

	if (!*arg) /* mount(8) takes `a,,b`, too */
		return true;
	for (const char *const *name = ignored; *name; name++)
		if (strcmp(arg, *name) == 0)
			return true;
	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (strncmp(arg, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

static int keep_first(char **to, const char *arg)
{
	if (!*to)
		*to = strdup(arg);
	return *to ? 0 : -1;
}

/* The pattern of the option with the name that `option` begins with; NULL: there is none. */
static const char *find_pattern(const char *option, size_t length)
{
	for (const struct fuse_opt *known = table; known->templ; known++)
		if (strcspn(known->templ, "=") == length &&
		    strncmp(known->templ, option, length) == 0)
			return known->templ;
	return NULL;
}

/* What is wrong with an option that is not taken. Malloced; NULL: no memory. */
static char *describe_bad(const char *option)
{
	int length = (int)strcspn(option, "="), r;
	const char *pattern = find_pattern(option, (size_t)length);
	const char *meant = nearest(option, table, sizeof(*table));
	char *text;

	if (!meant)
		meant = nearest(option, ignored, sizeof(*ignored));
	if (pattern)
		r = asprintf(&text,
		             pattern[length] ? "'%s': %.*s needs a value, as in %.*s=..."
		                             : "'%s': %.*s takes no value",
		             option, length, option, length, option);
	else if (option[strcspn(option, " \t")])
		r = asprintf(&text, "unknown option '%s': commas separate options, without blanks",
		             option);
	else if (meant)
		r = asprintf(&text, "unknown option '%s' (did you mean %.*s?)", option,
		             (int)strcspn(meant, "="), meant);
	else
		r = asprintf(&text, "unknown option '%s'", option);
	return r < 0 ? NULL : text;
}

/* Adds it to the others. */
static int note_bad(char **bad, const char *option)
{
	char *one, *all = NULL;

	if (*bad && strlen(*bad) > BAD_MAX)
		return 0;
	one = describe_bad(option);
	if (!one || asprintf(&all, "%s%s%s", *bad ? *bad : "", *bad ? "; " : "", one) < 0)
		all = NULL;
	free(one);
	if (!all)
		return -1;
	free(*bad);
	*bad = all;
	return 0;
}

/* 0: the option is taken. libfuse gets none of them. */
static int take_option(void *data, const char *arg, int key, struct fuse_args *outargs)
{
	struct raw *raw = data;

	(void)outargs;
	switch (key) {
	case KEY_CONTEXT:
		/* Commas in its value come escaped and must stay so. */
		return fuse_opt_add_opt_escaped(&raw->contexts, arg);
	case KEY_KERNEL:
		return keep_first(&raw->kernels, arg);
	case FUSE_OPT_KEY_NONOPT:
		return take_argument(raw, arg);
	default:
		return is_ignored(arg) ? 0 : note_bad(&raw->bad, arg);
	}
}

/* The last of several reasons counts. */
__attribute__((format(printf, 3, 4))) static bool complain(struct refusal *refusal, int status,
                                                           const char *format, ...)
{
	va_list args;
	char *line;

	va_start(args, format);
	if (vasprintf(&line, format, args) < 0)
		line = NULL;
	va_end(args);
	if (line)
		safe_text(line, strlen(line) + 1, line, SAFE_LINE);
	free(refusal->why);
	*refusal = (struct refusal){.status = status, .why = line ? line : strdup("no memory")};
	return false;
}

static bool read_source(const struct raw *raw, struct options *options, struct refusal *refusal)
{
	const char *slash = strchrnul(raw->source, '/');
	const char *why;
	char *end, meant[PATH_MAX];

	options->source = strdup(raw->source);
	options->servers = strndup(raw->source, (size_t)(slash - raw->source));
	options->root = strdup(*slash ? slash : "/locks");
	if (!options->source || !options->servers || !options->root)
		return complain(refusal, EXIT_MOUNT, "%s", strerror(ENOMEM));
	for (end = options->root + strlen(options->root);
	     end > options->root + 1 && end[-1] == '/';)
		*--end = '\0';
	why = servers_wrong(options->servers, raw->source, raw->mountpoint);
	if (why && unit_meant(options->servers, meant))
		return complain(refusal, EXIT_USAGE,
		                "'%s' is the name of a unit: name the mount point, %s",
		                options->servers, meant);
	if (why)
		return complain(refusal, EXIT_USAGE, "bad server list '%s': %s", options->servers,
		                why);
	if (strcmp(options->root, "/") == 0)
		return complain(
			refusal, EXIT_USAGE,
			"the whole ensemble cannot be mounted: name a sub-tree, such as %s/locks",
			options->servers);
	why = root_wrong(options->root);
	if (why)
		return complain(refusal, EXIT_USAGE, "'%s' cannot be a root: %s", options->root,
		                why);
	options->read_only = raw->read_only;
	/* If any root were made, a typo in it would make a new tree, whose locks exclude nobody. */
	options->make_root = raw->mkroot || strcmp(options->root, "/locks") == 0;
	return true;
}

/* Not below `least_us`. */
static bool read_duration(const char *name, const char *text, int64_t by_default, int64_t least_us,
                          int64_t *ret_us, struct refusal *refusal)
{
	const char *why = NULL;

	*ret_us = by_default;
	if (text && !duration_parse(text, ret_us))
		why = "not a duration like 15s or 500ms";
	else if (*ret_us < least_us || *ret_us > 86400 * 1000000LL)
		why = least_us > 0 ? "must be 1ms to 24h" : "must be at most 24h";
	return !why || complain(refusal, EXIT_USAGE, "%s=%s: %s", name, text, why);
}

static bool read_durations(const struct raw *raw, struct options *options, struct refusal *refusal)
{
	return read_duration("session_timeout", raw->session_timeout, 15 * 1000000LL, 1,
	                     &options->session_timeout_us, refusal) &&
	       read_duration("tick_time", raw->tick_time, OPTIONS_TICK_TIME_US, 1,
	                     &options->tick_time_us, refusal) &&
	       read_duration("connect_timeout", raw->connect_timeout, 10 * 1000000LL, 1,
	                     &options->connect_timeout_us, refusal) &&
	       read_duration("retry", raw->retry, 0, 0, &options->retry_us, refusal) &&
	       read_duration("drain", raw->drain, 60 * 1000000LL, 0, &options->drain_us, refusal);
}

static bool read_mountpoint(const struct raw *raw, struct options *options, struct refusal *refusal)
{
	const char *why = strerror(ENOMEM);

	if (raw->check || options->change) {
		options->mountpoint = raw->mountpoint ? strdup(raw->mountpoint) : NULL;
		return true;
	}
	options->mountpoint =
		raw->mounted ? strdup(raw->mounted) : mountpoint_prepare(raw->mountpoint, &why);
	return options->mountpoint || complain(refusal, EXIT_MOUNT, "%s: %s", raw->mountpoint, why);
}

static bool add_if(char **opts, bool wanted, const char *opt)
{
	return !wanted || fuse_opt_add_opt(opts, opt) == 0;
}

static bool read_fuse_args(const struct raw *raw, struct options *options, struct refusal *refusal)
{
	char *opts = NULL, *name;
	bool ok;

	options->fuse_args = (struct fuse_args)FUSE_ARGS_INIT(0, NULL);
	if (asprintf(&name, "fsname=%s", options->source) < 0)
		name = NULL;
	/* Always set: files with an x bit have text that any host's takers have written. */
	ok = fuse_opt_add_opt(&opts, "default_permissions,nosuid,nodev,noexec,subtype=zklockfs") ==
	             0 &&
	     add_if(&opts, options->all_users, "allow_other") && name &&
	     fuse_opt_add_opt_escaped(&opts, name) == 0 &&
	     add_if(&opts, raw->contexts, raw->contexts) && add_if(&opts, raw->read_only, "ro") &&
	     add_if(&opts, raw->no_atime, "noatime") &&
	     fuse_opt_add_arg(&options->fuse_args, "zklockfs") == 0 &&
	     fuse_opt_add_arg(&options->fuse_args, "-o") == 0 &&
	     fuse_opt_add_arg(&options->fuse_args, opts) == 0;
	free(name);
	free(opts);
	return ok || complain(refusal, EXIT_MOUNT, "%s", strerror(ENOMEM));
}

static bool read_host(const struct raw *raw, struct options *options, struct refusal *refusal)
{
	char name[256] = "";

	if (!raw->host && gethostname(name, sizeof(name) - 1) < 0)
		return complain(refusal, EXIT_MOUNT, "host name: %s", strerror(errno));
	options->host = strdup(raw->host ? raw->host : name);
	if (!options->host)
		return complain(refusal, EXIT_MOUNT, "%s", strerror(ENOMEM));
	if (!*options->host)
		return complain(refusal, EXIT_USAGE, "host= is empty");
	return true;
}

static bool read_clients(const struct raw *raw, struct options *options, struct refusal *refusal)
{
	if (!raw->clients)
		return true;
	if (!lc_knows_clients(raw->clients))
		return complain(refusal, EXIT_USAGE, "clients=%s: must be one of " LC_CLIENTS,
		                raw->clients);
	options->clients = strdup(raw->clients);
	return options->clients || complain(refusal, EXIT_MOUNT, "%s", strerror(ENOMEM));
}

static bool read_on_lost(const struct raw *raw, struct options *options, struct refusal *refusal)
{
	if (!raw->on_lost)
		return true;
	for (enum on_lost i = ON_LOST_NONE; i <= ON_LOST_KILL; i++)
		if (strcmp(raw->on_lost, guardian_on_lost_name(i)) == 0) {
			options->on_lost = i;
			return true;
		}
	return complain(refusal, EXIT_USAGE, "on_lost=%s: must be none, term or kill",
	                raw->on_lost);
}

static bool read_credentials(const struct raw *raw, struct options *options,
                             struct refusal *refusal)
{
	const char *why;

	if (!raw->credentials)
		return true;
	if (!*raw->credentials)
		return complain(refusal, EXIT_USAGE, "credentials= is empty");
	/* The next daemon reads it, too, from wherever that one runs. */
	if (*raw->credentials != '/')
		return complain(refusal, EXIT_USAGE, "credentials=%s: the path must be absolute",
		                raw->credentials);
	options->credentials = credentials_read(raw->credentials, &why);
	options->credentials_file = strdup(raw->credentials);
	return (options->credentials && options->credentials_file) ||
	       complain(refusal, EXIT_MOUNT, "credentials=%s: %s", raw->credentials, why);
}

/* Reads digits of that base, up to a maximum. */
static bool read_number(const char *name, const char *text, int base, unsigned by_default,
                        unsigned max, unsigned *ret_number, struct refusal *refusal)
{
	const char *digits = base == 8 ? "01234567" : "0123456789";
	unsigned long number;

	*ret_number = by_default;
	if (!text)
		return true;
	errno = 0;
	number = strtoul(text, NULL, base);
	if (!*text || text[strspn(text, digits)] || errno || number > max)
		return complain(refusal, EXIT_USAGE,
		                base == 8 ? "%s=%s: must be an octal number, at most 0%o"
		                          : "%s=%s: must be a number, at most %u",
		                name, text, max);
	*ret_number = (unsigned)number;
	return true;
}

static bool read_owner(const struct raw *raw, struct options *options, struct refusal *refusal)
{
	return read_number("uid", raw->uid, 10, getuid(), UINT32_MAX - 1, &options->uid, refusal) &&
	       read_number("gid", raw->gid, 10, getgid(), UINT32_MAX - 1, &options->gid, refusal) &&
	       read_number("umask", raw->umask, 8, 022, 0777, &options->umask, refusal);
}

static void print_version(void)
{
	printf("zklockfs %s\nfuse %s\n", ZKLOCKFS_VERSION, fuse_pkgversion());
}

/* The word too many is the one that is an option, as where OPTIONS= of a unit has no -o. */
static const char *find_extra(const struct raw *raw)
{
	const char *const words[] = {raw->source, raw->mountpoint, raw->extra};
	const char *with_value = NULL;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (find_pattern(words[i], strcspn(words[i], "=,")))
			return words[i];
		if (!with_value && strchr(words[i], '='))
			with_value = words[i];
	}
	return with_value ? with_value : raw->extra;
}

static bool read_all(const struct raw *raw, struct options *options, struct refusal *refusal)
{
	if (raw->help || raw->version) {
		if (raw->help)
			fputs(usage, stdout);
		else
			print_version();
		refusal->status = fflush(stdout) == 0 ? 0 : EXIT_USAGE;
		return false;
	}
	if (raw->bad)
		return complain(refusal, EXIT_USAGE, "%s", raw->bad);
	if (raw->kernels && !raw->remount)
		return complain(refusal, EXIT_USAGE, "unknown option '%s'", raw->kernels);
	if (raw->extra)
		return complain(refusal, EXIT_USAGE,
		                "too many arguments: options stand behind -o, as in -o %s",
		                find_extra(raw));
	if (!raw->source || (!raw->mountpoint && !raw->check))
		return complain(refusal, EXIT_USAGE, "%s",
		                raw->source || raw->reload || raw->remount ? "no mount point given"
		                                                           : "no servers given");
	options->foreground = raw->foreground || raw->debug;
	options->debug = raw->debug;
	options->check = raw->check;
	options->change = raw->reload || raw->remount;
	options->reuse = !raw->noreuse;
	options->log_takes = raw->log_takes;
	options->audit = raw->audit;
	options->supervisor = !raw->nokeeper;
	options->all_users = geteuid() == 0 || raw->all_users;
	options->no_atime = raw->no_atime;
	options->contexts = raw->contexts ? strdup(raw->contexts) : NULL;
	options->protect = !raw->noprotect;
	options->has_tick_time = raw->tick_time != NULL;
	options->unit = raw->unit ? strdup(raw->unit) : NULL;
	return read_durations(raw, options, refusal) && read_on_lost(raw, options, refusal) &&
	       read_clients(raw, options, refusal) && read_source(raw, options, refusal) &&
	       read_host(raw, options, refusal) && read_credentials(raw, options, refusal) &&
	       read_owner(raw, options, refusal) && read_mountpoint(raw, options, refusal) &&
	       read_fuse_args(raw, options, refusal);
}

static void free_raw(struct raw *raw)
{
	for (const struct fuse_opt *option = table; option->templ; option++)
		if (strchr(option->templ, '%'))
			free(*(char **)((char *)raw + option->offset));
	free(raw->contexts);
	free(raw->kernels);
	free(raw->source);
	free(raw->mountpoint);
	free(raw->extra);
	free(raw->bad);
	free(raw->unit);
	free(raw->slip);
	*raw = (struct raw){.mounted = raw->mounted};
}

/* ---- all of it ---- */

/* mount(8) names the source that the mount began with, unless fstab has another one. */
static bool names_source(const struct raw *raw)
{
	char *begun;
	bool names;

	if (!raw->mountpoint)
		return false;
	if (!raw->remount)
		return true;
	begun = mountpoint_source(raw->mountpoint);
	names = !begun || strcmp(begun, raw->source) != 0;
	free(begun);
	return names;
}

#define NAME_SERVERS "; to check what a mount needs, name the servers, too"

/* What is not named stays as the mount has it: *ret_opts and *ret_source, malloced. *ret_absent: no
 * mount lives there. */
static bool read_mount(const struct raw *raw, char **ret_opts, char **ret_source,
                       struct refusal *refusal, bool *ret_absent)
{
	const char *mountpoint = raw->mountpoint ? raw->mountpoint : raw->source, *why;
	const char *silence = raw->check ? mountpoint_silence(mountpoint) : NULL;
	char *text =
		silence ? NULL : options_file_read(mountpoint, /* waits = */ !raw->check, &why);
	bool ok = text && options_again(text, ret_opts, ret_source);
	char advice[UNIT_ADVICE_MAX];

	*ret_absent = !silence && !text && (errno == ENODEV || errno == ENOTCONN);
	if (!ok)
		complain(refusal, EXIT_MOUNT, "%s: %s%s%s", mountpoint,
		         text      ? strerror(ENOMEM)
		         : silence ? silence
		                   : why,
		         text || silence ? "" : unit_advice(mountpoint, advice),
		         raw->check && !text && !*ret_absent ? NAME_SERVERS : "");
	free(text);
	return ok;
}

static bool parse_words(struct raw *raw, int argc, char **argv)
{
	struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
	bool ok = fuse_opt_parse(&args, raw, table, take_option) == 0;

	fuse_opt_free_args(&args);
	return ok;
}

/* Behind these options: of one that is named twice the last counts. */
static bool parse_behind(struct raw *raw, int argc, char **argv, char *opts)
{
	char **words = malloc(((size_t)argc + 3) * sizeof(*words));
	bool ok = words;

	if (words) {
		words[0] = argv[0];
		words[1] = (char *)"-o";
		words[2] = opts;
		memcpy(words + 3, argv + 1, (size_t)argc * sizeof(*argv));
		ok = parse_words(raw, argc + 2, words);
	}
	free(words);
	return ok;
}

/* No mount lives there: the words of its unit count, as the start will read them. */
static bool parse_unit(struct raw *raw, int argc, char **argv, struct refusal *refusal)
{
	char file[UNIT_FILE_MAX], slip[UNIT_SLIP_MAX];
	char **words = unit_words(raw->source, argc, argv, file, slip);
	bool ok = false;

	if (!words) {
		complain(refusal, refusal->status, "%s; %s: %s" NAME_SERVERS, refusal->why, file,
		         strerror(errno));
	} else {
		free(refusal->why);
		*refusal = (struct refusal){.status = EXIT_USAGE};
		free_raw(raw);
		ok = parse_words(raw, args_count(words), words);
		raw->unit = strdup(file);
		raw->slip = *slip ? strdup(slip) : NULL;
	}
	free(words);
	return ok;
}

/* Reads the words of a mount that is there again, behind what it has. */
static bool parse_again(struct raw *raw, int argc, char **argv, struct refusal *refusal)
{
	char *opts = NULL, *source = NULL;
	bool absent, names = names_source(raw);
	bool ok = read_mount(raw, &opts, &source, refusal, &absent);

	if (absent && raw->check)
		return parse_unit(raw, argc, argv, refusal);
	if (ok) {
		free_raw(raw);
		ok = parse_behind(raw, argc, argv, opts);
	}
	if (ok && !names) {
		if (!raw->mountpoint)
			raw->mountpoint = raw->source;
		else
			free(raw->source);
		raw->source = source;
		source = NULL;
	}
	free(source);
	free(opts);
	return ok;
}

static bool is_partial(const struct raw *raw)
{
	if (raw->help || raw->version || raw->bad || raw->extra || !raw->source)
		return false;
	if (raw->remount)
		return raw->mountpoint != NULL;
	return !raw->mountpoint && (raw->reload || (raw->check && *raw->source == '/'));
}

bool options_read(int argc, char **argv, const char *mountpoint, struct options *ret_options,
                  struct refusal *ret_refusal)
{
	struct options options = {0};
	struct raw raw = {.mounted = mountpoint};
	bool ok;

	*ret_refusal = (struct refusal){.status = EXIT_USAGE};
	ok = parse_words(&raw, argc, argv);
	if (ok && is_partial(&raw))
		ok = parse_again(&raw, argc, argv, ret_refusal);
	ok = ok && read_all(&raw, &options, ret_refusal);
	if (!ok && raw.unit && ret_refusal->why)
		(void)complain(ret_refusal, ret_refusal->status, "%s: %s%s%s", raw.unit,
		               raw.slip ? raw.slip : "", raw.slip ? "; " : "", ret_refusal->why);
	free_raw(&raw);
	if (ok)
		*ret_options = options;
	else
		options_free(&options);
	return ok;
}

bool options_parse(int argc, char **argv, const char *mountpoint, struct options *ret_options,
                   int *ret_status)
{
	struct refusal refusal;
	bool ok = options_read(argc, argv, mountpoint, ret_options, &refusal);

	if (!ok && refusal.why)
		fprintf(stderr, "zklockfs: %s%s\n", refusal.why,
		        refusal.status == EXIT_USAGE ? "; try zklockfs --help" : "");
	free(refusal.why);
	*ret_status = refusal.status;
	return ok;
}

int64_t options_start_timeout_us(const struct options *options)
{
	return options->retry_us > options->connect_timeout_us ? options->retry_us
	                                                       : options->connect_timeout_us;
}

void options_free(struct options *options)
{
	free(options->source);
	free(options->servers);
	free(options->root);
	free(options->mountpoint);
	free(options->unit);
	free(options->host);
	free(options->clients);
	free(options->contexts);
	free(options->credentials_file);
	credentials_wipe(options->credentials);
	fuse_opt_free_args(&options->fuse_args);
}
