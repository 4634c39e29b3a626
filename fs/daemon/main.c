/* SPDX-License-Identifier: MIT
 *
 * main.c - the order of starting and stopping, and nothing else.
 *
 *   options ─► fork ─► guardian ─► loop: addresses ─► session ready ─► mount ─► INIT comes
 *   ─► the command returns 0 ... serve ... ─► unmounted ─► last deletes ─► session ended
 *
 *   to take over: options ─► the records are read: session, files, takers ─► serve ...
 *
 * The session comes before the mount, so that a bad ensemble leaves no dead mount.
 */
#include "setup/unmounted.h"

#include "daemon/check.h"
#include "daemon/mount.h"
#include "daemon/start.h"
#include "daemon/supervisor.h"
#include "files/attributes.h"
#include "files/file.h"
#include "files/lists.h"
#include "guard/guardian.h"
#include "guard/trial.h"
#include "hold/hold.h"
#include "hold/linger.h"
#include "host/clock.h"
#include "host/log.h"
#include "host/memory.h"
#include "host/process.h"
#include "host/signals.h"
#include "host/subuid.h"
#include "port/ensemble_zookeeper.h"
#include "request/frontend.h"
#include "setup/change.h"
#include "setup/credentials.h"
#include "setup/options.h"
#include "setup/ready.h"
#include "setup/servers.h"
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void fuse_log_line(enum fuse_log_level level, const char *format, va_list args)
{
	char text[256];

	vsnprintf(text, sizeof(text), format, args);
	text[strcspn(text, "\n")] = '\0';
	log_line(level <= FUSE_LOG_ERR       ? LC_ERROR
	         : level <= FUSE_LOG_WARNING ? LC_WARNING
	                                     : LC_INFO,
	         "%s", text);
}

/* Each process that holds a lock costs a descriptor: process_watch(). */
#define DESCRIPTORS_WANTED 65536
/* The daemon needs descriptors of its own, and the supervisor as many again, to give them to the
 * next daemon. */
#define DESCRIPTORS_LEAST 64

/* Raises the limit as far as the kernel allows. Returns the new limit; RLIM_INFINITY: there is
 * none, or it is not known. */
static rlim_t raise_limit(__rlimit_resource_t resource, rlim_t wanted)
{
	struct rlimit limit, raised = {.rlim_cur = wanted, .rlim_max = wanted};

	if (getrlimit(resource, &limit) < 0)
		return RLIM_INFINITY;
	if (limit.rlim_max > wanted || setrlimit(resource, &raised) < 0) {
		raised.rlim_cur = raised.rlim_max = limit.rlim_max;
		(void)setrlimit(resource, &raised);
	}
	return raised.rlim_cur;
}

/* The supervisor inherits the limit, and needs it to place the descriptors of the next daemon. */
static bool has_descriptors(void)
{
	rlim_t limit = raise_limit(RLIMIT_NOFILE, DESCRIPTORS_WANTED);

	process_limit_fds(limit);
	if (limit < DESCRIPTORS_LEAST)
		log_line(LC_ERROR, "cannot start: %d files may be open (ulimit -n), and %d must be",
		         (int)limit, DESCRIPTORS_LEAST);
	return limit >= DESCRIPTORS_LEAST;
}

static bool begin_store(struct store **ret_store)
{
	const char *call;

	errno = -store_create(ret_store, &call);
	return errno == 0 || log_cannot_start(call);
}

/* Why a mount that has a session cannot work, in words; NULL: no server has given a session. */
static const char *find_obstacle(const struct loop *loop)
{
	struct lc_status status;

	lc_status(loop->front->lc, &status);
	return status.session != 0 && *status.met ? status.met : NULL;
}

static int begin_session(struct options *options, struct loop *loop)
{
	int64_t until = clock_now_us() + options_start_timeout_us(options);
	int r = start_find(loop, until);
	const char *obstacle = NULL;

	if (r < 0)
		return r;
	settings_ask(&loop->settings, loop->servers.addresses);
	r = engine_begin(options, loop, NULL);
	if (r < 0)
		return r;
	r = start_connect(loop, until);
	if (r == -ETIMEDOUT)
		obstacle = find_obstacle(loop);
	if (r == -ETIMEDOUT && !obstacle) {
		start_try(loop);
		r = start_connect(loop, until);
	}
	if (r == 0)
		r = start_learn(loop, clock_now_us() + PROBE_ANSWER_S * 1000000);
	if (obstacle)
		contact_log_obstacle(options, obstacle);
	else if (r < 0)
		contact_log_error(options, &loop->servers, r);
	return r;
}

/* `codec`: for the records of the daemon that this one takes over from; NULL: there is none. */
static int run_mount(struct options *options, struct loop *loop, struct codec *codec)
{
	struct guardian *guardian;
	struct lc_status status;
	int exit_status = EXIT_MOUNT;
	bool clean;

	if (codec) {
		loop->adopts = true;
		mount_records_read_parts(&loop->mount_records, codec);
		if (engine_begin(options, loop, codec) < 0)
			codec->give_up("no engine can go on from the state of the locks");
		reload_read(&loop->reload, codec);
		mount_adopt(options, loop, codec);
		codec_end(codec);
		exit_status = mount_serve(loop);
	} else if (options->check) {
		exit_status = check_all(options, loop);
	} else if (begin_session(options, loop) == 0 && mount_begin(options, loop)) {
		exit_status = mount_serve(loop);
	}
	if (!loop->front->lc) {
		ensemble_zookeeper_destroy(loop->ensemble);
		guardian_end(loop->front->guardian, /* clean = */ true);
		loop->front->guardian = NULL;
		return exit_status;
	}
	lc_status(loop->front->lc, &status);
	/* A program that still holds, or is being stopped, has no good descriptor any more, but may
	 * be at work: its entry is left to the session timeout. */
	clean = status.holders == 0 && status.losing == 0;
	if (clean && exit_status == 0)
		loop_delete_entries(loop, status.session_timeout_us);
	lc_destroy(loop->front->lc, clean);
	loop->front->lc = NULL;
	guardian = loop->front->guardian;
	loop->front->guardian = NULL; /* the guardian's process still watches those that hold */
	files_end(loop->front);
	guardian_end(guardian, clean);
	if (loop->front->pending.fuse)
		/* Until now requests may be answered. */
		fuse_session_destroy(loop->front->pending.fuse);
	inbox_finish(&loop->front->inbox);
	requests_finish(loop->front);
	ensemble_zookeeper_destroy(loop->ensemble);
	return exit_status;
}

static void set_up_frontend(struct frontend *front, const struct options *options,
                            struct loop *loop)
{
	struct audit_log *log = &front->holds->audit_log;

	front->files.what = "open files";
	front->requests.what = "requests";
	front->contents.budget = &front->files;
	front->contents.records = &front->records;
	front->read_only = options->read_only;
	front->traces = options->debug;
	front->without = (struct lc_attributes){
		.uid = options->uid,
		.gid = options->gid,
		.mode = 0777 & ~options->umask,
		.lock_file_mode = attributes_lock_file_mode(0777 & ~options->umask),
	};
	front->facts.mountpoint = options->mountpoint;
	front->facts.settings = &loop->settings;
	front->facts.host = options->host;
	front->facts.servers = &loop->servers;
	front->facts.covered = loop->covers.text;
	front->facts.on_lost = guardian_on_lost_name(options->on_lost);
	front->facts.supervisor_up = options->supervisor ? 1 : -1;
	log->clock_us = clock_now_us;
	log->log_takes = options->log_takes;
	log->audit = options->audit;
	log->history.records = &front->records;
}

static void set_up_loop(struct loop *loop, const struct options *options)
{
	loop->options = options;
	loop->reload.front = loop->mount_records.front = loop->front;
	loop->reload.mount_records = &loop->mount_records;
	loop->mount_records.servers = &loop->servers;
	loop->mount_records.contact = &loop->contact;
	loop->contact.away_us = -1;
	loop->mount_records.mountpoint = options->mountpoint;
	if (loop->mount_records.args_len == 0) {
		loop->mount_records.args = loop->reload.args;
		loop->mount_records.args_len = loop->reload.args_len;
	}
}

/* What a check leaves out: from here on the daemon runs in the background, below its supervisor.
 * False: it is said why not. */
static bool leave_the_command(const struct options *options,
                              const struct supervisor_config *supervisor)
{
	if (!ready_begin(options->foreground) ||
	    (options->supervisor && !supervisor_begin(supervisor, options->credentials)))
		return false;
	if (options->protect && geteuid() == 0)
		unmounted_protect(options->mountpoint);
	credentials_confine(options->credentials);
	if (options->foreground)
		log_prepare_child();
	return true;
}

/* The processes beside the daemon. False: it is said why not. */
static bool start_others(const struct options *options, const struct supervisor_config *supervisor,
                         struct guardian **ret_guardian)
{
	struct process own;
	int error;

	if (options->on_lost != ON_LOST_NONE)
		(void)trial_stop(); /* before credentials_confine() */
	if (!options->check && !leave_the_command(options, supervisor))
		return false;
	error = -process_hold(getpid(), &own);
	process_close(&own);
	if (error != 0)
		log_line(LC_WARNING,
		         "pidfd_open: %s: nobody can join a holder (reentrant), and a signal costs "
		         "its place in a queue",
		         strerror(error));
	return options->on_lost == ON_LOST_NONE || guardian_start(options->on_lost, ret_guardian);
}

static bool begin_nodes(struct frontend *front)
{
	errno = -nodes_create(&front->records, &front->nodes);
	return errno == 0 || log_cannot_start(errno == ENOMEM ? "malloc" : "getrandom");
}

/* `codec`: as of run_mount(). */
static int run_daemon(struct options *options, struct loop *loop, struct codec *codec)
{
	struct frontend *front = loop->front;
	int status = EXIT_MOUNT;

	settings_init(&loop->settings, options);
	if (servers_init(&loop->servers, options->servers, options->session_timeout_us) &&
	    begin_nodes(front)) {
		if (holds_init(front)) {
			if (loop_begin(loop)) {
				pauses_begin(&front->pauses);
				status = run_mount(options, loop, codec);
				pauses_finish(&front->pauses);
				loop_finish(loop);
			}
			linger_finish(&front->holds->linger);
		}
		nodes_destroy(front->nodes);
	}
	history_finish(&front->holds->audit_log.history);
	servers_finish(&loop->servers);
	settings_finish(&loop->settings);
	return status;
}

/* All of the start that comes after the store. Returns the exit status. */
static int go_to_work(struct options *options, struct loop *loop, struct store *store, char **argv,
                      struct codec *adopted)
{
	struct frontend *front = loop->front;
	const struct supervisor_config supervisor = {
		.store = store,
		.argv = argv,
		.session_timeout_us = options->session_timeout_us,
	};
	int status = EXIT_MOUNT;

	mount_records_begin(front, store);
	if (adopted)
		credentials_confine(options->credentials);
	if (adopted || start_others(options, &supervisor, &front->guardian)) {
		if (options->supervisor && supervisor_fd() < 0)
			front->facts.supervisor_up = 0;
		status = run_daemon(options, loop, adopted);
	}
	records_finish(&front->records);
	return status;
}

int main(int argc, char **argv)
{
	struct holds holds = {0};
	struct lists lists = {0};
	struct frontend front = {
		.clock_us = clock_now_us,
		.uid = getuid(),
		.gid = getgid(),
		.holds = &holds,
		.lists = &lists,
	};
	struct loop loop = {.front = &front, .signals = -1};
	struct options options;
	struct codec codec;
	struct store *store = NULL;
	bool adopts;
	char **recorded = NULL, *text = NULL;
	int status;

	if (!ready_open_standard())
		return EXIT_MOUNT;
	memory_begin();
	signals_ignore_others();
	loop.reload.crash = supervisor_take_over();
	adopts = reload_adopts(&loop.reload, &loop.mount_records, &argc, &argv, &store, &codec,
	                       &recorded);
	if (!options_parse(argc, argv, loop.mount_records.mountpoint, &options, &status)) {
		free(recorded);
		return status;
	}
	loop.reload.on_lost = loop.reload.was = options.on_lost;
	if (adopts)
		reload_compare(&loop.reload, &loop.mount_records, &codec, &options);
	if (options.change) {
		status = change_ask(&options);
		options_free(&options);
		return status;
	}
	/* The state that outlives the daemon is a file in memory (journal.c): a limit of the shell
	 * that mounts is not meant for it. */
	(void)raise_limit(RLIMIT_FSIZE, RLIM_INFINITY);
	reload_init(&loop.reload, argv);
	log_level(options.debug ? LC_INFO : LC_NOTICE);
	if (options.check)
		log_verdicts();
	else
		log_about(options.mountpoint);
	fuse_set_log_func(fuse_log_line);
	set_up_frontend(&front, &options, &loop);
	front.facts.options = text = options_text(&options);
	set_up_loop(&loop, &options);
	subuid_look();
	status = EXIT_MOUNT;
	if (text && has_descriptors() && (store || begin_store(&store))) {
		status = go_to_work(&options, &loop, store, argv, adopts ? &codec : NULL);
		store_close(store);
		ready_fail(status);
	}
	reload_finish(&loop.reload);
	options_free(&options);
	free(text);
	free(recorded);
	log_finish();
	return status;
}
