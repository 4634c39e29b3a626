/* SPDX-License-Identifier: MIT
 *
 * check.c - see check.h. A verdict is a line of the log: so what the start says by itself is one.
 */
#include "daemon/check.h"

#include "daemon/start.h"
#include "guard/guardian.h"
#include "host/args.h"
#include "host/clock.h"
#include "host/log.h"
#include "host/pause.h"
#include "host/proc.h"
#include "host/signals.h"
#include "lockcore.h"
#include "setup/env_file.h"
#include "setup/mountpoint.h"
#include "setup/options_file.h"
#include "setup/unit_name.h"
#include "setup/unmounted.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <mntent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Slower than this, a write is more than the disk and the network of an ensemble should need. */
#define SLOW_WRITE_US 100000
/* Fewer connections of a host than this leave no room for some mounts that ask for settings. */
#define FEW_CONNECTIONS 5
/* No server may grant less, at any time: rule 45 of lockcore/RULES.md. */
#define LEAST_LIMIT_MS 5000

/* OK; RISK: a mount works, but less safely or less well than it could; WRONG: a mount fails, or its
 * locks are not what its options say. */
static const enum lc_level OK = LC_NOTICE, RISK = LC_WARNING, WRONG = LC_ERROR;

/* ---- servers ---- */

static void report_server(const struct probe *probe, bool only)
{
	char text[256];
	size_t len;

	if (probe->met != PROBE_USABLE) {
		log_line(only ? WRONG : RISK, "server %s: %s%s", probe->address, probe_text(probe),
		         only ? "" : ": start it, or leave it out of SERVERS");
		return;
	}
	len = (size_t)snprintf(text, sizeof(text), "ZooKeeper %s%s%s",
	                       *probe->version ? probe->version : "of an unknown version",
	                       *probe->mode ? ", " : "", probe->mode);
	if (probe->has_conf)
		len += (size_t)snprintf(text + len, sizeof(text) - len, ", tickTime %" PRId64 " ms",
		                        probe->tick_ms);
	if (probe->longest_ms > 0)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
		                        ", sessions of %" PRId64 " to %" PRId64 " ms",
		                        probe->shortest_ms, probe->longest_ms);
	if (probe->connections > 0)
		(void)snprintf(text + len, sizeof(text) - len, ", maxClientCnxns %" PRId64,
		               probe->connections);
	if (probe_forgets(probe->version))
		log_line(
			RISK,
			"server %s: %s: can forget answered writes, and so a lock: use %s or later",
			probe->address, text, PROBE_SAFE);
	else if (probe->connections > 0 && probe->connections < FEW_CONNECTIONS)
		log_line(RISK, "server %s: %s: raise it, each mount of a host needs two",
		         probe->address, text);
	else
		log_line(OK, "server %s: %s", probe->address, text);
}

static void report_quorum(const struct settings *settings, size_t usable)
{
	bool alone = false, together = strchr(settings->options->servers, ',') != NULL;

	for (size_t i = 0; i < settings->count; i++) {
		const char *mode = settings->answers[i].probe.mode;

		alone |= strcmp(mode, "standalone") == 0;
		together |= *mode && strcmp(mode, "standalone") != 0;
	}
	if (alone && together)
		log_line(WRONG, "quorum: a server is standalone: these servers are no ensemble, "
		                "and two hosts "
		                "may hold a lock");
	else if (alone)
		log_line(RISK,
		         "quorum: one server: there are no locks while it is down: use three");
	else if (settings->count == 1)
		log_line(RISK, "quorum: only one server is named: name the others, too");
	else
		log_line(usable == 1 ? RISK : OK, "quorum: %zu of %zu servers can be used%s",
		         usable, settings->count,
		         usable == 1 ? " from here: there are no locks while it is down" : "");
}

static void report_tick(const struct settings *settings)
{
	const char *by = settings_tick_by(settings);
	int64_t tick_ms = settings->tick_us / 1000;

	if (strcmp(by, "-") == 0)
		log_line(RISK,
		         "tickTime: not known, %" PRId64
		         " ms is taken; if it is more, two may hold a lock: allow conf in "
		         "4lw.commands.whitelist, or use -o tick_time=",
		         tick_ms);
	else
		log_line(OK, "tickTime: %" PRId64 " ms, known by %s", tick_ms,
		         strcmp(by, "option") == 0 ? "-o tick_time="
		         : strcmp(by, "conf") == 0 ? "the servers"
		                                   : "the servers' limits of sessions");
}

/* A session may be renewed by any server at any time. */
static void report_limits(const struct probe *probe, int64_t asked_ms)
{
	if (probe->longest_ms > 0 && probe->longest_ms < LEAST_LIMIT_MS)
		log_line(WRONG,
		         "server %s: sessions of %" PRId64 " ms at most: two may hold a lock: "
		         "maxSessionTimeout must be %d ms or more on every server",
		         probe->address, probe->longest_ms, LEAST_LIMIT_MS);
	else if (probe->longest_ms > 0 && probe->longest_ms < asked_ms)
		log_line(WRONG,
		         "server %s: sessions of %" PRId64 " ms at most, and %" PRId64
		         " ms are asked for: lower session_timeout, or raise maxSessionTimeout",
		         probe->address, probe->longest_ms, asked_ms);
	if (probe->shortest_ms > asked_ms)
		log_line(RISK,
		         "server %s: sessions of %" PRId64 " ms at least, and %" PRId64
		         " ms are asked for: a dead host keeps its locks for longer: lower "
		         "minSessionTimeout, or ask for as much by session_timeout",
		         probe->address, probe->shortest_ms, asked_ms);
}

/* Do all servers have the same settings, and the same mark? */
static void report_differences(const struct settings *settings)
{
	const struct options *options = settings->options;
	const struct probe *first = NULL;

	for (size_t i = 0; i < settings->count; i++) {
		const struct probe *probe = &settings->answers[i].probe;

		if (probe->met != PROBE_USABLE)
			continue;
		report_limits(probe, options->session_timeout_us / 1000);
		first = first || !probe->looked ? first : probe;
		if (!probe->looked)
			log_line(RISK,
			         "server %s: does not show whether it is of the ensemble (%s/%s): "
			         "leave "
			         "it out of SERVERS if it is not",
			         probe->address, options->root, LC_MARK_NODE);
		else if (memcmp(&first->mark, &probe->mark, sizeof(first->mark)) != 0)
			log_line(WRONG,
			         "servers %s and %s: are of different ensembles: %s/%s is not the "
			         "same",
			         first->address, probe->address, options->root, LC_MARK_NODE);
		else if (first->longest_ms != probe->longest_ms ||
		         first->shortest_ms != probe->shortest_ms ||
		         first->tick_ms != probe->tick_ms)
			log_line(RISK,
			         "servers %s and %s: differ in ticks, or in limits of sessions: "
			         "give "
			         "all servers the same zoo.cfg",
			         first->address, probe->address);
	}
}

static void hear_servers(struct settings *settings)
{
	struct probe probe;

	while (settings->prober.fd >= 0) {
		(void)poll(&(struct pollfd){.fd = settings->prober.fd, .events = POLLIN}, 1, -1);
		while (prober_read(&settings->prober, &probe))
			settings_hear(settings, &probe);
	}
}

/* False: no server can be used. */
static bool ask_servers(struct settings *settings, const char *addresses)
{
	size_t usable = 0;

	(void)settings_begin(settings, addresses, NULL);
	hear_servers(settings);
	for (size_t i = 0; i < settings->count; i++) {
		settings_believe(settings, &settings->answers[i]);
		usable += settings->answers[i].probe.met == PROBE_USABLE;
	}
	for (size_t i = 0; i < settings->count; i++)
		report_server(&settings->answers[i].probe, usable == 0);
	if (settings->count < resolve_count(addresses))
		log_line(usable == 0 ? WRONG : RISK,
		         "servers: not all could be asked: there is no memory, or are too many "
		         "processes: try again");
	if (usable == 0)
		return false;
	report_quorum(settings, usable);
	report_tick(settings);
	report_differences(settings);
	return true;
}

/* ---- a session ---- */

static int compare_times(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void report_session(const struct lc_examination *result, int64_t asked_ms)
{
	int64_t granted_ms = result->session_timeout_us / 1000;

	if (result->too_short)
		return;
	if (granted_ms != asked_ms)
		log_line(RISK,
		         "session: %" PRId64 " ms are granted, and %" PRId64
		         " ms asked for: change session_timeout, or the servers' limits",
		         granted_ms, asked_ms);
	else
		log_line(OK, "session: %" PRId64 " ms are granted by %s", granted_ms,
		         result->server);
}

static void report_writes(const struct lc_examination *result, const struct options *options)
{
	int64_t times[LC_EXAMINE_WRITES], median_us;

	memcpy(times, result->write_us, sizeof(times));
	qsort(times, result->writes, sizeof(*times), compare_times);
	median_us = times[result->writes / 2];
	log_line(OK, "root: %s is there, and may be written%s", options->root,
	         options->credentials ? " with these credentials" : "");
	log_line(median_us > SLOW_WRITE_US ? RISK : OK,
	         "a write takes %.1f ms, the longest of %u took %.1f ms%s",
	         (double)median_us / 1000, result->writes, (double)times[result->writes - 1] / 1000,
	         median_us > SLOW_WRITE_US ? ": give dataLogDir a disk of its own, or move the "
	                                     "servers nearer"
	                                   : "");
}

static void report_root(const struct lc_examination *result, const struct loop *loop)
{
	const struct options *options = loop->options;

	if (!result->done)
		contact_log_error(options, &loop->servers, -ETIMEDOUT);
	else if (result->err == 0)
		report_writes(result, options);
	else if (result->err == -ENOENT && options->make_root)
		log_line(OK, "root: there is no %s: the first mount makes it", options->root);
	else if (result->err == -EIO)
		log_line(WRONG, "root: a write below %s is refused: %s", options->root,
		         *result->why ? result->why : "over a quota?");
	else
		contact_log_error(options, &loop->servers, result->err);
}

static void examine_ensemble(struct loop *loop, int64_t until_us)
{
	struct lc_config config = engine_config(loop->options, loop);
	const struct lc_examination *result;
	struct lc_examine *examine;
	int r = engine_port(loop->options, loop->servers.addresses, &loop->ensemble);

	config.tick_time_us = loop->settings.tick_us;
	if (r == 0)
		r = lc_examine(&config, loop->ensemble, &examine);
	if (r < 0) {
		contact_log_error(loop->options, &loop->servers, r);
		return;
	}
	result = lc_examine_process(examine, 0);
	while (!result->done && clock_now_us() < until_us) {
		struct pollfd pollfd;
		int64_t wait_us = lc_examine_prepare(examine, &pollfd);

		if (poll(&pollfd, 1, (int)((wait_us + 999) / 1000)) < 0)
			pollfd.revents = 0;
		result = lc_examine_process(examine, pollfd.revents);
	}
	if (*result->server)
		report_session(result, loop->options->session_timeout_us / 1000);
	report_root(result, loop);
	lc_examine_end(examine);
}

static void check_servers(struct loop *loop)
{
	int64_t until_us = clock_now_us() + options_start_timeout_us(loop->options);
	char path[PATH_MAX];
	int r;

	/* A mount leaves out names that are slow to be found, and uses them later. */
	loop->servers.patience_us = options_start_timeout_us(loop->options) / 2;
	r = start_find(loop, until_us);
	/* From here on nothing reads the loop's signals: they end the process. */
	signals_unblock_all();
	if (r < 0) {
		if (unit_meant(loop->options->source, path))
			log_line(WRONG,
			         "servers: %s is the name of a unit, and %s its mount point: "
			         "zklockfs --check %s",
			         loop->options->source, path, path);
		return;
	}
	if (loop->servers.resolver.fd >= 0)
		log_line(RISK, "servers: the name service does not answer for all of them: try "
		               "again, or name addresses");
	if (ask_servers(&loop->settings, loop->servers.addresses))
		examine_ensemble(loop, clock_now_us() + options_start_timeout_us(loop->options));
}

/* ---- this host ---- */

static bool has_line(const char *path, const char *start)
{
	char *line = proc_read_line(path, start);
	bool there = line;

	free(line);
	return there;
}

static void check_fuse(const struct loop *loop)
{
	const char *aborted = mountpoint_aborted(/* is_mounted = */ false);
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		log_line(OK, "/dev/fuse can be used");
	else
		log_line(WRONG, "/dev/fuse: %s: %s", strerror(errno),
		         errno == EACCES || errno == EPERM
		                 ? "give this user, or the container, the device"
		                 : "load the module fuse; a container needs the device");
	if (fd >= 0)
		close(fd);
	if (geteuid() == 0 && prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN) == 0)
		log_line(WRONG, "root may not mount here, for want of CAP_SYS_ADMIN: "
		                "zklockfs-containers(7)");
	if (aborted)
		log_line(WRONG, "%s", aborted);
	if (geteuid() == 0 || !loop->options->all_users)
		return;
	if (has_line("/etc/fuse.conf", "user_allow_other"))
		log_line(OK, "/etc/fuse.conf has user_allow_other");
	else
		log_line(WRONG, "/etc/fuse.conf: allow_other needs the line user_allow_other");
}

static void check_clocks(const struct pauses *pauses)
{
	char names[64];

	pauses_names(pauses, names, sizeof(names));
	if (!pause_processor_has("/proc/cpuinfo", "hypervisor"))
		log_line(OK, "clocks: a pause of this machine is seen by %s", names);
	else if (strstr(names, "vmclock") || strstr(names, "tsc") || strstr(names, "ptp"))
		log_line(OK, "clocks: a pause of this virtual machine is seen by %s", names);
	else
		log_line(
			RISK,
			"clocks: a pause of this virtual machine is seen only if an agent sets the "
			"wall clock: /dev/vmclock0, or the module ptp_kvm");
}

/* Compares the options with those of the mount, by its text. False: they are the same. */
static bool tell_difference(const struct options *options, const char *text, const char *where,
                            const char *cure)
{
	char differ[768], stay[OPTIONS_STAY_MAX];

	if (!*options_differ(options, text, differ, sizeof(differ), stay))
		return false;
	if (*stay)
		log_line(RISK,
		         "%s: the mount runs with %s: no reload changes %s: stop the mount when no "
		         "lock is held, and start it again",
		         where, differ, stay);
	else
		log_line(RISK, "%s: the mount runs with %s: %s", where, differ, cure);
	return true;
}

/* What the mount of another user runs with is not for this user to change. */
static bool is_for_this_user(const char *path)
{
	struct stat top;

	return geteuid() == 0 || stat(path, &top) < 0 || top.st_uid == geteuid();
}

/* Says nothing if the options cannot be read: the status cannot be read then, either. */
static void check_options_there(const struct options *options, const char *path)
{
	const char *why;
	char *session, *text = NULL;

	if (is_for_this_user(path))
		text = options_file_read(path, /* waits = */ false, &why);
	if (!text)
		return;
	if (!tell_difference(options, text, "mount point",
	                     "zklockfs --reload with these arguments changes it, --check without "
	                     "servers takes it as it is"))
		log_line(OK, "mount point: the mount runs with these options");
	if (options_session_is_shorter(options, text, &session)) {
		log_line(RISK,
		         "mount point: the session that the mount has is of %s, and "
		         "session_timeout is longer: it counts from the next session on, as after "
		         "a restart",
		         session);
		free(session);
	}
	free(text);
}

/* Tells what programs would find when the mount has ended. */
static void check_below(const char *path)
{
	switch (unmounted_look_below(path)) {
	case UNMOUNTED_USED:
		log_line(RISK,
		         "mount point: the directory below the mount is not empty: while nothing "
		         "is mounted, programs find what is in it: unmount, and empty it");
		break;
	case UNMOUNTED_OPEN:
		log_line(RISK,
		         "mount point: files can be made in the directory below the mount while "
		         "nothing is mounted: unmount; chmod 000, chattr +i");
		break;
	case UNMOUNTED_FOREIGN: /* as that of a user's mount is */
	case UNMOUNTED_PROTECTED:
	case UNMOUNTED_OTHER:
	case UNMOUNTED_UNKNOWN:
		break;
	}
}

#define TAKEN "; a start is refused until it is unmounted"

/* True: the mount serves. A dead one is mounted anew. */
static bool check_mount_there(const struct options *options, const char *path)
{
	char status[4096], line[64];
	bool dead = false;
	FILE *file;

	check_options_there(options, path);
	check_below(path);
	snprintf(status, sizeof(status), "%s/.zklockfs/status", path);
	file = fopen(status, "re");
	if (file && fgets(line, sizeof(line), file))
		log_line(strcmp(line, "state: ready\n") == 0 ? OK : RISK,
		         "mount point: zklockfs is mounted there, %.*s" TAKEN,
		         (int)strcspn(line, "\n"), line);
	else if (errno == EACCES)
		log_line(OK, "mount point: zklockfs is mounted there, for another user" TAKEN);
	else if ((dead = errno == ENOTCONN || errno == ECONNABORTED))
		log_line(RISK, "mount point: a dead zklockfs is there: mount again");
	else
		log_line(RISK, "mount point: zklockfs is mounted there, and %s: %s", status,
		         strerror(errno));
	while (file && fgets(line, sizeof(line), file))
		if (strcmp(line, "keeper: 0\n") == 0)
			log_line(RISK,
			         "mount point: its keeper was killed: nothing would restart the "
			         "daemon after a crash; when no lock is held, stop the mount "
			         "and start it again");
	if (file)
		fclose(file);
	return !dead;
}

static void check_unmounted(const struct options *options, const char *path)
{
	bool root = geteuid() == 0, protects;
	char name[UNIT_NAME_MAX];

	switch (unmounted_look(path)) {
	case UNMOUNTED_PROTECTED:
		log_line(OK, "mount point: nobody can make files there while nothing is mounted");
		break;
	case UNMOUNTED_OPEN:
		protects = root && options->protect;
		log_line(protects ? OK : RISK, "mount point: %s",
		         protects ? "empty; a mount makes it unusable for all else"
		                  : "files can be made there while nothing is mounted: "
		                    "chmod 000, chattr +i");
		break;
	case UNMOUNTED_USED:
		log_line(RISK,
		         "mount point: it is not empty: while nothing is mounted, programs find "
		         "what is in it: empty it, or choose another");
		break;
	case UNMOUNTED_FOREIGN:
		log_line(root ? RISK : WRONG, "mount point: it is another user's%s",
		         root ? ", who can make files there while nothing is mounted: chown root"
		              : ": choose your own");
		break;
	case UNMOUNTED_OTHER:
		log_line(RISK,
		         "mount point: another filesystem is mounted there: umount it, or choose "
		         "another");
		break;
	case UNMOUNTED_UNKNOWN:
		log_line(root ? WRONG : RISK, "mount point: %s", strerror(errno));
		break;
	}
	/* Whoever names servers prepares a first mount; whoever does not expects one. */
	if (options->unit)
		log_line(RISK,
		         "mount point: no zklockfs is mounted there: systemctl start 'zklockfs@%s'",
		         unit_name(path, name));
}

static bool has_unit(void)
{
	static const char *const directories[] = {"/etc", "/run", "/usr/local/lib", "/usr/lib",
	                                          "/lib"};
	char file[64];

	for (size_t i = 0; i < sizeof(directories) / sizeof(*directories); i++) {
		snprintf(file, sizeof(file), "%s/systemd/system/zklockfs@.service", directories[i]);
		if (access(file, F_OK) == 0)
			return true;
	}
	return false;
}

static bool has_fstab(const char *path)
{
	FILE *table = setmntent("/etc/fstab", "re");
	const struct mntent *line = NULL;

	while (table && (line = getmntent(table)) &&
	       (strcmp(line->mnt_dir, path) != 0 || !strstr(line->mnt_type, "zklockfs")))
		;
	if (table)
		endmntent(table);
	return line;
}

/* systemd takes the last of two lines of one name, and every name. */
static void check_names(const char *file, char *text)
{
	static const char *const names[] = {"OPTIONS", "SERVERS", NULL};
	unsigned counts[2] = {0};
	char *name, *value, slip[UNIT_SLIP_MAX];

	while (env_file_next(&text, &name, &value)) {
		for (size_t i = 0; names[i]; i++)
			counts[i] += strcmp(name, names[i]) == 0;
		if (*unit_slip(name, slip))
			log_line(RISK, "unit: %s: %s", file, slip);
	}
	for (size_t i = 0; names[i]; i++)
		if (counts[i] > 1)
			log_line(RISK,
			         "unit: %s: %u lines are %s=, and only the last counts: make them "
			         "one line",
			         file, counts[i], names[i]);
}

/* What the next start by the unit finds, or the next reload. */
static void check_words(const char *path, const char *file, char **words)
{
	struct options options;
	struct refusal refusal;
	char where[UNIT_FILE_MAX + 8], *text;
	const char *why;

	if (options_read(args_count(words), words, NULL, &options, &refusal)) {
		snprintf(where, sizeof(where), "unit: %s", file);
		text = options_file_read(path, /* waits = */ false, &why);
		if (text)
			(void)tell_difference(&options, text, where, "systemctl reload changes it");
		free(text);
		options_free(&options);
	} else if (refusal.why) {
		log_line(WRONG, "unit: %s: %s", file, refusal.why);
	}
	free(refusal.why);
}

static void check_settings(const char *path)
{
	char *argv[] = {(char *)"zklockfs", (char *)"--reload", (char *)path};
	char file[UNIT_FILE_MAX], *text = unit_settings_read(path, file), **words;
	char slip[UNIT_SLIP_MAX];

	if (!text)
		return;
	check_names(file, text);
	words = unit_words(path, sizeof(argv) / sizeof(*argv), argv, file, slip);
	if (words)
		check_words(path, file, words);
	free(words);
	free(text);
}

/* The two names differ where the mount point has a dash, and a shell takes a backslash away. */
static void tell_unit(const char *path)
{
	char name[UNIT_NAME_MAX], file[UNIT_FILE_MAX];

	check_settings(path);
	if (has_unit())
		log_line(OK, "unit: systemctl enable --now 'zklockfs@%s', with its settings in %s",
		         unit_name(path, name), unit_settings(path, file));
	else if (has_fstab(path))
		log_line(OK, "unit: a line in /etc/fstab mounts it at boot");
	else
		log_line(RISK, "unit: no zklockfs@.service is installed: a mount at boot needs it, "
		               "or a line in fstab");
}

enum { FOUND_WRONG = 1, FOUND_MOUNT = 2 };

static int look_at_mountpoint(void *ctx)
{
	const struct options *options = ctx;
	char *path = realpath(options->mountpoint, NULL);
	const char *why =
		path ? mountpoint_refusal(path) : mountpoint_unresolved(options->mountpoint, errno);
	char advice[UNIT_ADVICE_MAX];
	bool serves = false;

	if (path && strcmp(path, "/") != 0 && mountpoint_is_zklockfs(path))
		serves = check_mount_there(options, path);
	else if (!path)
		log_line(WRONG, "mount point: %s: %s%s", options->mountpoint, why,
		         unit_advice(options->mountpoint, advice));
	else if (why)
		log_line(WRONG, "mount point: %s", why);
	else
		check_unmounted(options, path);
	if (path && strcmp(path, "/") != 0 && geteuid() == 0)
		tell_unit(path);
	free(path);
	return (log_found_wrong() ? FOUND_WRONG : 0) | (serves ? FOUND_MOUNT : 0);
}

/* Whether a mount is there and serves. */
static bool check_mountpoint(struct options *options)
{
	int found = mountpoint_ask(look_at_mountpoint, options);

	if (found < 0)
		log_line(WRONG, "mount point: %s", mountpoint_unasked(found));
	else if (found & FOUND_WRONG)
		log_set_wrong();
	return found >= 0 && found & FOUND_MOUNT;
}

int check_all(struct options *options, struct loop *loop)
{
	if (options->unit)
		log_line(OK, "unit: servers and options are read from %s", options->unit);
	check_servers(loop);
	check_clocks(&loop->front->pauses);
	if (guardian_fd(loop->front->guardian) >= 0)
		log_line(OK, "on_lost: a process could be found by its file, and stopped");
	/* A mount that serves has got what the kernel gives, be it by another user. */
	if (!options->mountpoint || !check_mountpoint(options))
		check_fuse(loop);
	return log_found_wrong() ? EXIT_MOUNT : 0;
}
