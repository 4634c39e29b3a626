/* SPDX-License-Identifier: MIT
 *
 * main.c - the order of starting and stopping, and nothing else.
 *
 *   options ─► fork ─► guardian ─► loop: addresses ─► session ready ─► mount ─► the kernel greets
 *   ─► the command returns 0 ... serve ... ─► unmounted ─► last deletes ─► session ended
 *
 *   to take over: options ─► the records are read: session, files, takers ─► serve ...
 *
 * The session comes before the mount, so that a bad ensemble leaves no dead mount.
 */
#include "setup/bare.h"

#include "daemon/keeper.h"
#include "daemon/loop.h"
#include "daemon/start.h"
#include "files/attributes.h"
#include "files/file.h"
#include "files/lists.h"
#include "files/ops.h"
#include "guard/guardian.h"
#include "guard/scan.h"
#include "hold/hold.h"
#include "hold/linger.h"
#include "host/clock.h"
#include "host/family.h"
#include "host/kernel_limit.h"
#include "host/log.h"
#include "host/memory.h"
#include "host/signals.h"
#include "port/ensemble_zookeeper.h"
#include "request/face.h"
#include "request/parked.h"
#include "request/trace.h"
#include "setup/check.h"
#include "setup/credentials.h"
#include "setup/mount_error.h"
#include "setup/mountpoint.h"
#include "setup/options.h"
#include "setup/ready.h"
#include "setup/servers.h"
#include "store/store.h"
#include "tree/lock_dir.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

static int64_t clock_us(void *ctx)
{
	(void)ctx;
	return clock_now_us();
}

static int64_t wall_ms(void *ctx)
{
	(void)ctx;
	return clock_read_ns(CLOCK_REALTIME) / 1000000;
}

static void random_bytes(void *ctx, void *ret_bytes, size_t len)
{
	static unsigned char store[256]; /* getrandom(2) of so many never fails */
	static size_t left;

	(void)ctx;
	assert(len <= sizeof(store));
	if (left < len) {
		if (getrandom(store, sizeof(store), 0) != sizeof(store))
			abort();
		left = sizeof(store);
	}
	left -= len;
	memcpy(ret_bytes, store + left, len);
}

static void log_report(void *ctx, enum lc_level level, const char *text)
{
	(void)ctx;
	log_line(level, "%s", text);
}

static bool look_for_pause(void *ctx)
{
	const struct loop *loop = ctx;

	return pauses_look(&loop->face->pauses);
}

static void tell_evicted(void *ctx, void *taker_ctx, const char *by)
{
	(void)ctx;
	hold_evicted(taker_ctx, by);
}

static void set_deadline(void *ctx, int64_t deadline_us)
{
	const struct loop *loop = ctx;

	store_set_deadline(loop->face->stored.store, deadline_us);
	guardian_deadline(loop->face->guardian, deadline_us);
}

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

#define ANOTHER_UID ((uid_t)-1)

/* Each process that holds needs one: family_watch(). */
#define DESCRIPTORS_WANTED 65536

/* The state that outlives the daemon is a file in memory (journal.c): a limit of the shell that
 * mounts is not meant for it. */
static void raise_file_size(void)
{
	struct rlimit none = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY}, limit;

	if (setrlimit(RLIMIT_FSIZE, &none) == 0 || getrlimit(RLIMIT_FSIZE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_FSIZE, &limit);
}

static bool begin_store(struct store **ret_store)
{
	int r = store_create(ret_store);

	if (r < 0)
		log_line(LC_ERROR, "cannot start: %s%s", strerror(-r),
		         r == -EFBIG ? ": by a limit of file sizes (ulimit -f)" : "");
	return r == 0;
}

static void raise_limits(void)
{
	struct rlimit limit,
		wanted = {.rlim_cur = DESCRIPTORS_WANTED, .rlim_max = DESCRIPTORS_WANTED};

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	if (limit.rlim_max >= DESCRIPTORS_WANTED || setrlimit(RLIMIT_NOFILE, &wanted) < 0) {
		wanted.rlim_cur = wanted.rlim_max = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &wanted);
	}
	family_limit(wanted.rlim_cur);
}

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

struct mount {
	struct nodes *nodes;
	struct fuse_session *fuse;
	const struct ledger *at; /* knows its path, number and device */
	bool open;               /* a process has a door of it open */
};

/* The time to find out whether a door is open. */
#define LOOK_US 2000000

/* A door is known by its inode number, since containers get doors under other names, by bind
 * mounts. Each open door has a node, and this child process has a copy of it. */
static bool found_open(void *ctx, const struct seen_file *file)
{
	struct mount *mount = ctx;
	const struct node *node = node_by_ino(mount->nodes, file->ino);

	mount->open |= node && node->kind == NODE_DOOR &&
	               scan_is_on_mount(file, mount->at->mount_id, mount->at->device);
	return !mount->open;
}

/* A look through /proc may have to wait for other processes: so a child does it. */
static int look_for_open(void *ctx)
{
	struct mount *mount = ctx;

	if (mountpoint_lists(mount->at->device))
		return 1;
	if (mountpoint_is_gone(mount->at->device))
		return 0;
	scan_all(mount->at->device, found_open, mount);
	return mount->open;
}

/* Whether a door is open. The end of the kernel's connection proves nothing: `umount -f` and an
 * abort end it while programs may still be at work. 1, 0, or -1: it is not known. */
static int ask_for_open(struct loop *loop, struct mount *mount)
{
	if (!loop->gone)
		return -1;
	if (!loop->face->holds->held && !loop->face->holds->waiting)
		return 0;
	return loop_ask(loop, look_for_open, mount, LOOK_US);
}

/* An unmount by force that can be done is done within that. */
#define FORCE_MS 1000
#define FORCE_LOOK_US 10000000

static int look_for_dead(void *ctx)
{
	const struct mount *mount = ctx;

	return mountpoint_stays_dead(mount->at->mountpoint, FORCE_MS);
}

/* The kernel's connection has ended while the mount served. If nobody had a door open, and the
 * mount is off the tree, then it was unmounted. Otherwise somebody has used force, and nobody has
 * any use of what is left. */
static bool ended_by_force(struct loop *loop, struct mount *mount, int is_open)
{
	struct lc_status status;
	bool dead = loop_ask(loop, look_for_dead, mount, FORCE_LOOK_US) == 1;

	if (!dead && is_open != 1)
		return false;
	lc_status(loop->face->lc, &status);
	log_line(
		LC_ERROR,
		"the kernel's connection was ended by force (umount -f, or an abort): the mount is "
		"lost, with %u locks that were held",
		status.holders);
	return true;
}

/* Not by libfuse, which would unmount whatever is topmost at the path by now. So its descriptor is
 * replaced by one that looks like the device of an unmounted filesystem. This closes the device,
 * too. */
static void end_session(struct fuse_session *fuse)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) == 0) {
		close(fds[0]); /* the other end of a pipe without a reader polls POLLERR */
		dup2(fds[1], fuse_session_fd(fuse));
		close(fds[1]);
	}
	fuse_session_unmount(fuse);
}

/* From now on all messages between the kernel and libfuse pass through pending.c. */
static bool follow_requests(const struct options *options, struct face *face,
                            struct fuse_session *fuse)
{
	if (pending_begin(face, fuse) < 0) {
		log_line(LC_ERROR, "cannot keep track of the kernel's requests");
		return false;
	}
	if (options->debug && trace_begin(face) < 0)
		log_line(LC_WARNING, "requests cannot be traced");
	return true;
}

static bool begin_mount(struct options *options, struct loop *loop, struct mount *mount)
{
	struct ledger *at = &loop->ledger;
	struct face *face = loop->face;

	mount->fuse = fuse_session_new(&options->fuse_args, &ops, sizeof(ops), face);
	if (!mount->fuse) {
		log_line(LC_ERROR, "cannot begin a FUSE session");
		return false;
	}
	if (fuse_session_mount(mount->fuse, options->mountpoint) < 0)
		return false; /* libfuse or fusermount3 has said why, in one line */
	if (set_nonblocking(fuse_session_fd(mount->fuse)) < 0 ||
	    !mountpoint_identify(options->mountpoint, &at->mount_id, at->device)) {
		log_line(LC_ERROR, "%s: the mount cannot be found", options->mountpoint);
		end_session(mount->fuse);
		mountpoint_detach_now(options->mountpoint, NULL);
		return false;
	}
	if (!follow_requests(options, face, mount->fuse)) {
		end_session(mount->fuse);
		mountpoint_detach_now(options->mountpoint, NULL);
		return false;
	}
	guardian_mounted(face->guardian, at->mount_id, at->device);
	if (options->all_users && !guardian_reaches(face->guardian, ANOTHER_UID))
		log_line(LC_WARNING, "on_lost cannot stop the processes of other users: they may "
		                     "be at work when the next one holds");
	keeper_give(KEEPER_GUARDIAN, guardian_fd(face->guardian));
	keeper_give(KEEPER_GUARDIAN_PAGE, guardian_page(face->guardian));
	keeper_give(KEEPER_DEVICE, fuse_session_fd(mount->fuse));
	if (face->kernel_limit_s > 0)
		log_line(LC_WARNING,
		         "the kernel aborts mounts whose requests wait %" PRId64 " s "
		         "(fs.fuse.max_request_timeout): waiting opens get EINTR before that",
		         face->kernel_limit_s);
	return true;
}

/* The kernel's connection goes on, with all requests that wait. libfuse gets it as /dev/fd/N: so it
 * does not know of the mount, and will not unmount it. */
static bool adopt_mount(struct options *options, struct loop *loop, struct mount *mount,
                        bool crashed)
{
	struct face *face = loop->face;
	char device[32];

	snprintf(device, sizeof(device), "/dev/fd/%d", face->answers.fd);
	mount->fuse = fuse_session_new(&options->fuse_args, &ops, sizeof(ops), face);
	if (!mount->fuse || fuse_session_mount(mount->fuse, device) < 0 ||
	    !follow_requests(options, face, mount->fuse)) {
		log_line(LC_ERROR, "cannot begin a FUSE session");
		return false;
	}
	pending_greet(face, mount->fuse);
	if (crashed)
		answers_emit_again(face);
	pending_replay(face, mount->fuse, crashed, inbox_keep_in_doubt);
	pending_replay_read(face, mount->fuse, inbox_keep_in_doubt);
	lc_claimed(face->lc);
	return true;
}

static void say_adopted(void *ctx)
{
	struct loop *loop = ctx;

	(void)keeper_serves();
	reload_done(&loop->reload);
}

static void say_ready(void *ctx)
{
	(void)ctx;
	if (!ready_detach())
		log_to_child();
	if (!keeper_serves())
		ready_tell();
}

/* From the ready session to the unmounted filesystem. */
static int serve_mount(struct loop *loop, struct mount *mount, void (*serving)(void *ctx))
{
	struct face *face = loop->face;
	bool served;
	int status, is_open;

	mount->at = &loop->ledger;
	mount->nodes = face->nodes;
	loop->fuse = mount->fuse;
	served = loop_serve(loop, serving);
	status = served && loop->error == 0 ? 0 : EXIT_MOUNT;
	is_open = ask_for_open(loop, mount);
	if (loop->stage == LOOP_SERVES && loop->gone && ended_by_force(loop, mount, is_open))
		status = EXIT_MOUNT;
	else
		log_line(LC_INFO,
		         loop->terms > 1 || loop->stage == LOOP_OVER ? "leaving" : "unmounted");
	if (is_open == 0)
		files_end(face);
	if (loop->stage == LOOP_SERVES) {
		keeper_leaves();
		mountpoint_detach_now(mount->at->mountpoint, loop->gone ? NULL : mount->at->device);
	}
	end_session(mount->fuse);
	answers_end(face);
	holds_drop(face, 0, NULL);
	holds_drop_kept(face);
	lc_drain(face->lc);
	return status;
}

static int servers_moved(void *ctx, const char *addresses)
{
	return ensemble_zookeeper_move(ctx, addresses);
}

static struct lc_config engine_config(const struct options *options, struct loop *loop)
{
	return (struct lc_config){
		.root = options->root,
		.make_root = options->make_root,
		.host = options->host,
		.session_timeout_us = options->session_timeout_us,
		.tick_time_us = options->tick_time_us,
		.loss_lead_us = guardian_lead_us(options->on_lost),
		.uid = loop->face->uid,
		.without = loop->face->without,
		.reserved = lock_dir_reserved,
		.clock_us = clock_us,
		.wall_ms = wall_ms,
		.random = random_bytes,
		.report = log_report,
		.disrupted = look_for_pause,
		.evicted = tell_evicted,
		.deadline = set_deadline,
		.ctx = loop,
		.book = &loop->face->stored,
	};
}

/* `carry`: for the records of another engine; NULL: there are none. */
static int begin_engine(const struct options *options, struct loop *loop, struct carry *carry)
{
	struct lc_config config = engine_config(options, loop);
	int r;

	if (carry && carry->checks)
		return lc_adopt(&config, NULL, carry, &loop->face->lc);
	r = ensemble_zookeeper_create(loop->servers.addresses, options->credentials, clock_us, NULL,
	                              &loop->ensemble);

	loop->servers.moved = servers_moved;
	loop->servers.ctx = loop->ensemble;
	if (r == 0)
		r = carry ? lc_adopt(&config, loop->ensemble, carry, &loop->face->lc)
		          : lc_create(&config, loop->ensemble, &loop->face->lc);
	loop->face->holds->stories.lc = loop->face->lc;
	if (r < 0)
		log_line(LC_ERROR, r == -EINVAL ? "'%s' cannot be a root" : "cannot start at '%s'",
		         options->root);
	return r;
}

static int adopt_engine(void *ctx, struct carry *carry)
{
	struct loop *loop = ctx;

	return begin_engine(loop->options, loop, carry);
}

static int begin_session(struct options *options, struct loop *loop)
{
	int64_t now = clock_now_us(), until = now + options_patience_us(options);
	int r = start_find(loop, now + options->retry_us, until);

	if (r < 0) {
		mount_error_log(options, &loop->servers, r);
		return r;
	}
	settings_ask(&loop->settings, loop->servers.addresses);
	r = begin_engine(options, loop, NULL);
	if (r < 0)
		return r;
	r = start_connect(loop, until);
	if (r == -ETIMEDOUT) {
		start_try(loop);
		r = start_connect(loop, until);
	}
	if (r == 0)
		r = start_learn(loop, clock_now_us() + PROBE_ANSWER_S * 1000000);
	if (r < 0)
		mount_error_log(options, &loop->servers, r);
	return r;
}

/* `carry`: for the records of the daemon that this one takes over from; NULL: there is none. */
static int run_mount(struct options *options, struct loop *loop, struct carry *carry)
{
	struct mount mount = {0};
	struct guardian *guardian;
	struct lc_status status;
	int exit_status = EXIT_MOUNT;
	bool clean;

	if (carry) {
		reload_read(&loop->reload, carry);
		carry_end(carry);
		if (adopt_mount(options, loop, &mount, loop->reload.crash.signal != 0))
			exit_status = serve_mount(loop, &mount, say_adopted);
	} else if (begin_session(options, loop) == 0 && begin_mount(options, loop, &mount)) {
		exit_status = serve_mount(loop, &mount, say_ready);
	}
	if (!loop->face->lc) {
		ensemble_zookeeper_destroy(loop->ensemble);
		return exit_status;
	}
	lc_status(loop->face->lc, &status);
	/* A program that still holds, or is being stopped, has no good descriptor any more, but may
	 * be at work: its entry is left to the session timeout. */
	clean = status.holders == 0 && status.losing == 0;
	if (clean && exit_status == 0)
		loop_delete_entries(loop, status.session_timeout_us);
	lc_destroy(loop->face->lc, clean);
	loop->face->lc = NULL;
	guardian = loop->face->guardian;
	loop->face->guardian = NULL; /* it goes on watching over those that hold */
	files_end(loop->face);
	guardian_end(guardian, clean);
	if (mount.fuse)
		fuse_session_destroy(mount.fuse); /* last: until now requests may be answered */
	trace_finish(loop->face);
	inbox_finish(&loop->face->inbox);
	pending_finish(loop->face);
	ensemble_zookeeper_destroy(loop->ensemble);
	return exit_status;
}

static int make_port(const struct options *options, const char *addresses,
                     struct ensemble **ret_ensemble)
{
	return ensemble_zookeeper_create(addresses, options->credentials, clock_us, NULL,
	                                 ret_ensemble);
}

int main(int argc, char **argv)
{
	struct holds holds = {0};
	struct lists lists = {0};
	struct face face = {
		.clock_us = clock_now_us,
		.uid = getuid(),
		.gid = getgid(),
		.holds = &holds,
		.lists = &lists,
	};
	struct loop loop = {.face = &face, .signals = -1};
	struct options options;
	struct carry carry;
	const char *mounted = NULL;
	struct store *store = NULL;
	struct keeper_config keeper;
	enum reload_role role;
	char **whole_argv = argv;
	int status;

	memory_begin();
	signals_ignore_others();
	loop.reload.crash = keeper_take_over();
	role = reload_role(&argc, &argv, loop.reload.crash.signal != 0, &store, &carry, &mounted);
	if (!options_parse(argc, argv, mounted, &options, &status))
		return status;
	if (options.check) {
		status = check_all(&options, make_port, ensemble_zookeeper_destroy);
		options_free(&options);
		return status;
	}
	raise_file_size();
	reload_init(&loop.reload, whole_argv);
	log_level(options.debug ? LC_INFO : LC_NOTICE);
	log_about(options.mountpoint);
	face.holds->stories.clock_us = clock_now_us;
	face.holds->stories.log_takes = options.log_takes;
	face.holds->stories.audit = options.audit;
	face.facts.mountpoint = options.mountpoint;
	face.facts.settings = &loop.settings;
	face.facts.metrics_locks = options.metrics_locks;
	fuse_set_log_func(fuse_log_line);
	face.kernel_limit_s = kernel_limit_read();
	face.facts.host = options.host;
	face.facts.servers = &loop.servers;
	face.files.what = "open files";
	face.requests.what = "requests";
	face.contents.budget = &face.files;
	face.read_only = options.read_only;
	face.facts.on_lost = guardian_on_lost_name(options.on_lost);
	face.without = (struct lc_attributes){
		.uid = options.uid,
		.gid = options.gid,
		.mode = 0777 & ~options.umask,
		.door_mode = attributes_door_mode(0777 & ~options.umask),
	};
	loop.options = &options;
	loop.reload.face = &face;
	loop.reload.ledger = &loop.ledger;
	loop.ledger.face = &face;
	loop.ledger.servers = &loop.servers;
	loop.ledger.contact = &loop.contact;
	loop.contact.away_us = -1;
	loop.ledger.mountpoint = options.mountpoint;
	loop.ledger.adopt_engine = adopt_engine;
	loop.ledger.ctx = &loop;
	face.contents.stored = &face.stored;
	face.holds->stories.history.stored = &face.stored;
	status = EXIT_MOUNT;
	if (!store && !begin_store(&store))
		return status;
	ledger_begin(&face, store);
	keeper = (struct keeper_config){
		.store = store,
		.argv = whole_argv,
		.session_timeout_us = options.session_timeout_us,
	};
	if (role == RELOAD_STARTS &&
	    (!ready_begin(options.foreground) ||
	     (options.keeper && !keeper_begin(&keeper, options.credentials)))) {
		log_line(LC_ERROR, "cannot start: %s", strerror(errno));
		ready_fail(status);
		return status;
	}
	face.facts.keeper = options.keeper;
	face.facts.keeper_gone = options.keeper && keeper_fd() < 0;
	if (role == RELOAD_STARTS && options.protect && geteuid() == 0)
		bare_protect(options.mountpoint);
	credentials_confine(options.credentials);
	if (role == RELOAD_STARTS && options.foreground)
		log_prepare_child();
	if (role == RELOAD_STARTS && options.on_lost != ON_LOST_NONE &&
	    guardian_start(options.on_lost, &face.guardian) < 0) {
		log_line(LC_ERROR, "cannot start the guardian: %s", strerror(errno));
		ready_fail(status);
		return status;
	}
	raise_limits();
	settings_init(&loop.settings, options.tick_time_us, options.has_tick_time);
	if (servers_init(&loop.servers, options.servers, options.session_timeout_us) &&
	    nodes_create(&face.stored, &face.nodes) == 0) {
		if (holds_init(&face) == 0) {
			if (loop_begin(&loop) == 0) {
				pauses_begin(&face.pauses);
				status = run_mount(&options, &loop,
				                   role == RELOAD_STARTS ? NULL : &carry);
				pauses_finish(&face.pauses);
				loop_finish(&loop);
			}
			linger_finish(&face.holds->linger);
		}
		nodes_destroy(face.nodes);
	}
	history_finish(&face.holds->stories.history);
	book_finish(&face.stored);
	store_close(store);
	ready_fail(status);
	servers_finish(&loop.servers);
	settings_finish(&loop.settings);
	reload_finish(&loop.reload);
	options_free(&options);
	log_finish();
	return status;
}
