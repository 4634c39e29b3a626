/* SPDX-License-Identifier: MIT
 *
 * check.c - see check.h. The servers are found and asked as a mount does it: resolve.h, probe.h,
 * settings.h, lc_examine().
 */
#include "setup/check.h"

#include "guard/trial.h"
#include "host/clock.h"
#include "host/kernel_limit.h"
#include "host/pause.h"
#include "host/process.h"
#include "host/safe.h"
#include "host/who.h"
#include "lockcore.h"
#include "setup/mountpoint.h"
#include "setup/resolve.h"
#include "setup/settings.h"
#include "setup/unit_name.h"
#include "setup/unmounted.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Slower than this, a write is more than the disk and the network of an ensemble should need. */
#define SLOW_WRITE_US 100000
/* Fewer connections of a host than this leave no room for some mounts that ask for settings. */
#define FEW_CONNECTIONS 5
/* No server may grant less, at any time: rule 45 of lockcore/RULES.md. */
#define LEAST_LIMIT_MS 5000

/* OK; RISK: a mount works, but less safely or less well than it could; WRONG: a mount fails, or its
 * locks are not what its options say. */
enum verdict { OK, RISK, WRONG };

struct check {
	const struct options *options;
	char *addresses;
	char *found; /* the addresses of all names */
	struct settings settings;
	bool wrong;
};

__attribute__((format(printf, 3, 4))) static void say(struct check *check, enum verdict verdict,
                                                      const char *format, ...)
{
	static const char *const words[] = {"ok   ", "risk ", "wrong"};
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	printf("%s  %s\n", words[verdict], safe_text(text, sizeof(text), text, SAFE_LINE));
	fflush(stdout); /* a later step may hang */
	check->wrong |= verdict == WRONG;
}

/* ---- names ---- */

static void name_heard(void *ctx, enum resolver_answer answer, size_t name, char *text)
{
	struct check *check = ctx;
	char *found;

	(void)name;
	if (answer != RESOLVER_FOUND) {
		say(check, strchr(check->options->servers, ',') ? RISK : WRONG, "server %s", text);
		return;
	}
	if (asprintf(&found, "%s,%s", check->found ? check->found : "", text) < 0)
		return;
	free(check->found);
	check->found = found;
}

static void find_servers(struct check *check)
{
	int64_t until_us = clock_now_us() + options_start_timeout_us(check->options);
	struct resolver resolver;
	bool finished = false;
	int r;

	resolver_init(&resolver);
	r = resolver_begin(&resolver, check->options->servers);
	if (r < 0)
		say(check, WRONG, "servers cannot be looked up: %s", strerror(-r));
	else
		while (!finished && clock_poll(resolver.fd, POLLIN, until_us) > 0)
			finished = resolver_read(&resolver, name_heard, check);
	resolver_stop(&resolver);
	if (!finished)
		say(check, RISK,
		    "servers: the name service does not answer for all of them: try again, or name "
		    "addresses");
	check->addresses = resolve_join((const char *const *)&check->found, 1);
	if (!check->addresses)
		say(check, WRONG, "servers: none of them has an address");
	free(check->found);
}

/* ---- servers ---- */

static void report_server(struct check *check, const struct probe *probe, bool only)
{
	char text[256];
	size_t len;

	if (probe->met != PROBE_USABLE) {
		say(check, only ? WRONG : RISK, "server %s: %s%s", probe->address,
		    probe_text(probe), only ? "" : ": start it, or leave it out of SERVERS");
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
		say(check, RISK,
		    "server %s: %s: can forget answered writes, and so a lock: use %s or later",
		    probe->address, text, PROBE_SAFE);
	else if (probe->connections > 0 && probe->connections < FEW_CONNECTIONS)
		say(check, RISK, "server %s: %s: raise it, each mount of a host needs two",
		    probe->address, text);
	else
		say(check, OK, "server %s: %s", probe->address, text);
}

static void report_quorum(struct check *check, size_t usable)
{
	const struct settings *settings = &check->settings;
	bool alone = false, together = strchr(check->options->servers, ',') != NULL;

	for (size_t i = 0; i < settings->count; i++) {
		const char *mode = settings->answers[i].probe.mode;

		alone |= strcmp(mode, "standalone") == 0;
		together |= *mode && strcmp(mode, "standalone") != 0;
	}
	if (alone && together)
		say(check, WRONG,
		    "quorum: a server is standalone: these servers are no ensemble, and two hosts "
		    "may hold a lock");
	else if (alone)
		say(check, RISK,
		    "quorum: one server: there are no locks while it is down: use three");
	else if (usable == 1)
		say(check, RISK, "quorum: only one server can be used from here: name more");
	else
		say(check, OK, "quorum: %zu servers can be used", usable);
}

static void report_tick(struct check *check)
{
	const struct settings *settings = &check->settings;
	const char *by = settings_tick_by(settings);
	int64_t tick_ms = settings->tick_us / 1000;

	if (strcmp(by, "-") == 0)
		say(check, RISK,
		    "tickTime: not known, %" PRId64
		    " ms is taken; if it is more, two may hold a lock: allow conf in "
		    "4lw.commands.whitelist, or use -o tick_time=",
		    tick_ms);
	else
		say(check, OK, "tickTime: %" PRId64 " ms, known by %s", tick_ms,
		    strcmp(by, "option") == 0 ? "-o tick_time="
		    : strcmp(by, "conf") == 0 ? "the servers"
		                              : "the servers' limits of sessions");
}

/* A session may be renewed by any server at any time. */
static void report_limits(struct check *check, const struct probe *probe)
{
	int64_t asked_ms = check->options->session_timeout_us / 1000;

	if (probe->longest_ms > 0 && probe->longest_ms < LEAST_LIMIT_MS)
		say(check, WRONG,
		    "server %s: sessions of %" PRId64 " ms at most: two may hold a lock: "
		    "maxSessionTimeout must be %d ms or more on every server",
		    probe->address, probe->longest_ms, LEAST_LIMIT_MS);
	else if (probe->longest_ms > 0 && probe->longest_ms < asked_ms)
		say(check, WRONG,
		    "server %s: sessions of %" PRId64 " ms at most, and %" PRId64
		    " ms are asked for: lower session_timeout, or raise maxSessionTimeout",
		    probe->address, probe->longest_ms, asked_ms);
	if (probe->shortest_ms > asked_ms)
		say(check, RISK,
		    "server %s: sessions of %" PRId64 " ms at least, and %" PRId64
		    " ms are asked for: a dead host keeps its locks for longer: lower "
		    "minSessionTimeout, or ask for as much by session_timeout",
		    probe->address, probe->shortest_ms, asked_ms);
}

/* Do all servers have the same settings, and the same mark? */
static void report_differences(struct check *check)
{
	const struct settings *settings = &check->settings;
	const struct probe *first = NULL;

	for (size_t i = 0; i < settings->count; i++) {
		const struct probe *probe = &settings->answers[i].probe;

		if (probe->met != PROBE_USABLE)
			continue;
		report_limits(check, probe);
		first = first || !probe->looked ? first : probe;
		if (!probe->looked)
			say(check, RISK,
			    "server %s: does not show whether it is of the ensemble (%s/%s): leave "
			    "it out of SERVERS if it is not",
			    probe->address, check->options->root, LC_MARK_NODE);
		else if (memcmp(&first->mark, &probe->mark, sizeof(first->mark)) != 0)
			say(check, WRONG,
			    "servers %s and %s: are of different ensembles: %s/%s is not the same",
			    first->address, probe->address, check->options->root, LC_MARK_NODE);
		else if (first->longest_ms != probe->longest_ms ||
		         first->shortest_ms != probe->shortest_ms ||
		         first->tick_ms != probe->tick_ms)
			say(check, RISK,
			    "servers %s and %s: differ in ticks, or in limits of sessions: give "
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
static bool ask_servers(struct check *check)
{
	struct settings *settings = &check->settings;
	size_t usable = 0;

	(void)settings_begin(settings, check->addresses);
	hear_servers(settings);
	for (size_t i = 0; i < settings->count; i++) {
		settings_believe(settings, &settings->answers[i]);
		usable += settings->answers[i].probe.met == PROBE_USABLE;
	}
	for (size_t i = 0; i < settings->count; i++)
		report_server(check, &settings->answers[i].probe, usable == 0);
	if (settings->count < resolve_count(check->addresses))
		say(check, usable == 0 ? WRONG : RISK,
		    "servers: not all could be asked: there is no memory, or are too many "
		    "processes: try again");
	if (usable == 0)
		return false;
	report_quorum(check, usable);
	report_tick(check);
	report_differences(check);
	return true;
}

/* ---- a session ---- */

static int compare_times(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void report_session(struct check *check, const struct lc_examination *result)
{
	int64_t granted_ms = result->session_timeout_us / 1000;
	int64_t asked_ms = check->options->session_timeout_us / 1000;

	if (result->session_timeout_us < result->shortest_us)
		say(check, WRONG,
		    "session: %" PRId64 " ms are granted, and the lease needs %" PRId64
		    " ms: raise session_timeout, or maxSessionTimeout",
		    granted_ms, result->shortest_us / 1000);
	else if (granted_ms != asked_ms)
		say(check, RISK,
		    "session: %" PRId64 " ms are granted, and %" PRId64
		    " ms asked for: change session_timeout, or the servers' limits",
		    granted_ms, asked_ms);
	else
		say(check, OK, "session: %" PRId64 " ms are granted by %s", granted_ms,
		    result->server);
}

static void report_root(struct check *check, const struct lc_examination *result)
{
	const struct options *options = check->options;
	const char *root = options->root;
	int64_t times[LC_EXAMINE_WRITES], median_us;

	switch (-result->err) {
	case 0:
		memcpy(times, result->write_us, sizeof(times));
		qsort(times, result->writes, sizeof(*times), compare_times);
		median_us = times[result->writes / 2];
		say(check, OK, "root: %s is there, and may be written%s", root,
		    options->credentials ? " with these credentials" : "");
		say(check, median_us > SLOW_WRITE_US ? RISK : OK,
		    "a write takes %.1f ms, the longest of %u took %.1f ms%s",
		    (double)median_us / 1000, result->writes,
		    (double)times[result->writes - 1] / 1000,
		    median_us > SLOW_WRITE_US ? ": give dataLogDir a disk of its own, or move the "
		                                "servers nearer"
		                              : "");
		break;
	case ENOENT:
		say(check, options->make_root ? OK : WRONG,
		    options->make_root ? "root: there is no %s: the first mount makes it"
		                       : "root: there is no %s: a typing error, or use -o mkroot",
		    root);
		break;
	case ENOTDIR:
		say(check, WRONG, "root: %s is an ephemeral node: choose another root", root);
		break;
	case EACCES:
		say(check, WRONG, "root: %s may not be read and written%s", root,
		    options->credentials ? " with these credentials" : ": use -o credentials=");
		break;
	case EKEYREJECTED:
		say(check, WRONG, "root: the ensemble %s",
		    options->credentials ? "does not accept these credentials"
		                         : "wants credentials: use -o credentials=");
		break;
	case ETIMEDOUT:
		say(check, WRONG, "session: no server gave one in time");
		break;
	default:
		say(check, WRONG, "root: a write below %s is refused: %s", root,
		    *result->why ? result->why : "over a quota?");
	}
}

static void wait_for_examination(struct check *check, struct lc_examine *examine)
{
	int64_t until_us = clock_now_us() + check->options->connect_timeout_us;
	const struct lc_examination *result = lc_examine_process(examine, 0);
	struct lc_examination late;

	while (!result->done && clock_now_us() < until_us) {
		struct pollfd pollfd;
		int64_t wait_us = lc_examine_prepare(examine, &pollfd);

		if (poll(&pollfd, 1, (int)((wait_us + 999) / 1000)) < 0)
			pollfd.revents = 0;
		result = lc_examine_process(examine, pollfd.revents);
	}
	late = *result;
	if (!late.done)
		late.err = -ETIMEDOUT;
	if (*late.server)
		report_session(check, &late);
	report_root(check, &late);
}

static int64_t check_clock_us(void *ctx)
{
	(void)ctx;
	return clock_now_us();
}

static void examine_ensemble(struct check *check, check_port_fn *port, check_port_end_fn *port_end)
{
	struct lc_config config = {
		.root = check->options->root,
		.session_timeout_us = check->options->session_timeout_us,
		.tick_time_us = check->settings.tick_us,
		.loss_lead_us = guardian_lead_us(check->options->on_lost),
		.clock_us = check_clock_us,
	};
	struct lc_examine *examine;
	struct ensemble *ensemble;
	int r;

	if (port(check->options, check->addresses, &ensemble) < 0) {
		say(check, WRONG, "no memory");
		return;
	}
	r = lc_examine(&config, ensemble, &examine);
	if (r < 0) {
		say(check, WRONG, "session: %s", strerror(-r));
	} else {
		wait_for_examination(check, examine);
		lc_examine_end(examine);
	}
	port_end(ensemble);
}

/* ---- this host ---- */

static bool has_line(const char *path, const char *start)
{
	char *line = who_read_line(path, start);
	bool there = line;

	free(line);
	return there;
}

static void check_fuse(struct check *check)
{
	int64_t limit_s = kernel_limit_read();
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		say(check, OK, "/dev/fuse can be used");
	else
		say(check, WRONG, "/dev/fuse: %s: %s", strerror(errno),
		    errno == EACCES || errno == EPERM
		            ? "give this user, or the container, the device"
		            : "load the module fuse; a container needs the device");
	if (fd >= 0)
		close(fd);
	if (geteuid() == 0 && prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN) == 0)
		say(check, WRONG,
		    "root may not mount here, for want of CAP_SYS_ADMIN: zklockfs-containers(7)");
	if (limit_s > 0)
		say(check, RISK,
		    "fs.fuse.max_request_timeout is %" PRId64
		    " s: waiting opens get EINTR before: write 0 into it, then mount",
		    limit_s);
	if (geteuid() == 0 || !check->options->all_users)
		return;
	if (has_line("/etc/fuse.conf", "user_allow_other"))
		say(check, OK, "/etc/fuse.conf has user_allow_other");
	else
		say(check, WRONG, "/etc/fuse.conf: allow_other needs the line user_allow_other");
}

static void check_clocks(struct check *check)
{
	struct pauses pauses;
	char names[64];

	pauses_begin(&pauses);
	pauses_names(&pauses, names, sizeof(names));
	pauses_finish(&pauses);
	if (!pause_processor_has("/proc/cpuinfo", "hypervisor"))
		say(check, OK, "clocks: a pause of this machine is seen by %s", names);
	else if (strstr(names, "vmclock") || strstr(names, "tsc") || strstr(names, "ptp"))
		say(check, OK, "clocks: a pause of this virtual machine is seen by %s", names);
	else
		say(check, RISK,
		    "clocks: a pause of this virtual machine is seen only if an agent sets the "
		    "wall clock: /dev/vmclock0, or the module ptp_kvm");
}

/* Without a word if it cannot be read: so is the status then. */
static void check_options_there(struct check *check, const char *path)
{
	char text[65536], name[4200], differ[768];
	int fd;
	ssize_t n;

	snprintf(name, sizeof(name), "%s/.zklockfs/options", path);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return;
	text[n] = '\0';
	if (*options_differ(check->options, text, differ, sizeof(differ)))
		say(check, RISK, "mount point: the mount runs with %s: zklockfs --reload", differ);
	else
		say(check, OK, "mount point: the mount runs with these options");
}

static void check_mount_there(struct check *check, const char *path)
{
	char status[4096], line[64];
	FILE *file;

	check_options_there(check, path);
	snprintf(status, sizeof(status), "%s/.zklockfs/status", path);
	file = fopen(status, "re");
	if (file && fgets(line, sizeof(line), file))
		say(check, strcmp(line, "state: ready\n") == 0 ? OK : RISK,
		    "mount point: zklockfs is mounted there, %.*s", (int)strcspn(line, "\n"), line);
	else if (errno == EACCES)
		say(check, OK, "mount point: zklockfs is mounted there, for another user");
	else if (errno == ENOTCONN || errno == ECONNABORTED)
		say(check, RISK, "mount point: a dead zklockfs is there: mount again");
	else
		say(check, RISK, "mount point: zklockfs is mounted there, and %s: %s", status,
		    strerror(errno));
	if (file)
		fclose(file);
}

static void check_unmounted(struct check *check, const char *path)
{
	bool root = geteuid() == 0, protects;

	switch (unmounted_look(path)) {
	case UNMOUNTED_PROTECTED:
		say(check, OK, "mount point: nobody can make files there while nothing is mounted");
		break;
	case UNMOUNTED_OPEN:
		protects = root && check->options->protect;
		say(check, protects ? OK : RISK, "mount point: %s",
		    protects ? "empty; a mount makes it unusable for all else"
		             : "files can be made there while nothing is mounted: "
		               "chmod 000, chattr +i");
		break;
	case UNMOUNTED_USED:
		say(check, RISK,
		    "mount point: it is not empty: while nothing is mounted, programs find "
		    "what is in it: empty it, or choose another");
		break;
	case UNMOUNTED_FOREIGN:
		say(check, root ? RISK : WRONG, "mount point: it is another user's%s",
		    root ? ", who can make files there while nothing is mounted: chown root"
		         : ": choose your own");
		break;
	case UNMOUNTED_OTHER:
		say(check, RISK,
		    "mount point: another filesystem is mounted there: umount it, or choose "
		    "another");
		break;
	case UNMOUNTED_UNKNOWN:
		say(check, root ? WRONG : RISK, "mount point: %s", strerror(errno));
		break;
	}
}

/* The two names differ where the mount point has a dash, and a shell takes a backslash away. */
static void tell_unit(struct check *check, const char *path)
{
	char name[UNIT_NAME_MAX], file[UNIT_NAME_MAX];

	say(check, OK,
	    "unit: systemctl enable --now 'zklockfs@%s', with its settings in "
	    "/etc/zklockfs/%s.conf",
	    unit_name(path, name), unit_file(path, file));
}

static void look_at_mountpoint(struct check *check)
{
	char *path = realpath(check->options->mountpoint, NULL);

	if (!path)
		say(check, WRONG, "mount point: %s", strerror(errno));
	else if (strcmp(path, "/") == 0)
		say(check, WRONG, "mount point: a mount at / can be neither seen nor taken off");
	else if (mountpoint_is_zklockfs(path))
		check_mount_there(check, path);
	else
		check_unmounted(check, path);
	if (path && strcmp(path, "/") != 0 && geteuid() == 0)
		tell_unit(check, path);
	free(path);
}

/* The calls that filters of system calls refuse. */
static void check_calls(struct check *check)
{
	enum on_lost on_lost = check->options->on_lost;
	const char *why = on_lost == ON_LOST_NONE ? NULL : trial_stop();
	struct process_ref own;

	if (why)
		say(check, WRONG, "on_lost: nobody could be stopped here: %s", why);
	else if (on_lost != ON_LOST_NONE)
		say(check, OK, "on_lost: a process could be found by its file, and stopped");
	why = why || on_lost == ON_LOST_NONE ? NULL : trial_find_others();
	if (why)
		say(check, RISK,
		    "on_lost cannot find other users' processes that inherited a lock's file: %s",
		    why);
	if (process_hold(getpid(), &own))
		process_close(&own);
	else
		say(check, RISK,
		    "pidfd_open: %s: nobody can join a holder (reentrant), and a signal costs its "
		    "place in a queue: let the filter of the container allow the call",
		    strerror(errno));
}

static int look_apart(void *ctx)
{
	struct check *check = ctx;

	check->wrong = false;
	look_at_mountpoint(check);
	return check->wrong;
}

static void check_mountpoint(struct check *check)
{
	int wrong = mountpoint_ask(look_apart, check);

	if (wrong == -ETIMEDOUT)
		say(check, WRONG,
		    "mount point: what is mounted there does not answer: it is stopped (SIGCONT), "
		    "or hangs");
	else if (wrong < 0)
		say(check, WRONG, "mount point: cannot look at it: %s", strerror(-wrong));
	else
		check->wrong |= wrong > 0;
}

int check_all(const struct options *options, check_port_fn *port, check_port_end_fn *port_end)
{
	struct check check = {.options = options};

	settings_init(&check.settings, options);
	find_servers(&check);
	if (check.addresses && ask_servers(&check))
		examine_ensemble(&check, port, port_end);
	check_fuse(&check);
	check_clocks(&check);
	check_calls(&check);
	if (options->mountpoint)
		check_mountpoint(&check);
	settings_finish(&check.settings);
	free(check.addresses);
	if (ferror(stdout))
		fprintf(stderr, "zklockfs: standard output cannot be written\n");
	return check.wrong || ferror(stdout) ? EXIT_MOUNT : 0;
}
