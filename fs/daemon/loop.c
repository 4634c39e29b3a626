/* SPDX-License-Identifier: MIT
 *
 * loop.c - see loop.h.
 *
 *   one turn:  poll ─► FUSE requests (a bounded number; none while the clock is in
 *              doubt, lc_doubted()) ─► signals
 *              ─► holds that have waited or lingered long enough ─► addresses
 *              ─► lc_process(): locks are handed over, ZooKeeper, timers, listings, questions
 *              ─► all changes are recorded (mount_records.h)
 *              ─► the turn's answers to the kernel leave (answers.h)
 *              ─► lc_send(): the turn's requests to ZooKeeper leave
 *
 * The poll array is made anew in every turn, since the ZooKeeper client may have opened a new
 * socket under the number of the old one.
 *
 *   [SERVES] ──told to leave──► [DRAINS] ──too long──► [FORFEITED] ──too long──► [OVER]
 *       └──the engine is unusable──┘▲
 *
 * Told to leave (SIGTERM, SIGINT, SIGHUP): new takers are refused, waiting ones get ESHUTDOWN, the
 * mount disappears from the tree, and holders are served until the last one has closed, or the time
 * to drain is over. Then they lose their locks, on_lost acts, and after a moment the daemon ends.
 * Told a second time: the daemon ends at once. The entries of holders that have not closed are not
 * deleted but left to the session timeout, since these programs may still be at work.
 *
 * When the engine has become unusable all locks are lost already. The mount ends in the same way,
 * at once, so that an administrator can mount anew.
 */
#include "daemon/loop.h"

#include "daemon/supervisor.h"
#include "guard/guardian.h"
#include "hold/hold.h"
#include "host/log.h"
#include "host/signals.h"
#include "host/subuid.h"
#include "host/watchdog.h"
#include "request/trace.h"
#include "setup/mountpoint.h"
#include "setup/ready.h"
#include "setup/servers.h"
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUESTS_PER_TURN 64
/* A turn serves requests for at most this long. The turn's requests to the ensemble leave at its
 * end, and on one processor callers that ask again at once would delay them by 64 requests. */
#define REQUESTS_US 20000
/* While the inbox has requests, a turn serves for this long: each answer wakes a process that
 * wants the processor at once, while takers wait for the end of the turn. */
#define CROWD_US 100
#define READS_PER_TURN 1024 /* into the inbox, beside the requests that the turn serves */

/* How long programs that have lost their locks have to close them: on_lost=term needs 2 s. */
#define GRACE_US 3000000

/* The frontend calls this when a user asks for other options. */
static int told_to_change(void *ctx, const char *args, size_t len)
{
	struct loop *loop = ctx;

	return loop->stage == LOOP_SERVES ? reload_change(&loop->reload, args, len) : -ESHUTDOWN;
}

bool loop_begin(struct loop *loop)
{
	signal(SIGPIPE, SIG_IGN);
	covers_init(&loop->covers);
	loop->front->change = told_to_change;
	loop->front->change_ctx = loop;
	loop->signals = signals_open();
	return loop->signals >= 0 || log_cannot_start("signalfd");
}

void loop_finish(struct loop *loop)
{
	covers_finish(&loop->covers);
	close(loop->signals);
}

static void enter_stage(struct loop *loop, enum loop_stage stage, int64_t stage_us)
{
	assert(stage == loop->stage + 1);
	loop->stage = stage;
	loop->stage_ends_us = loop->front->clock_us() + stage_us;
}

static void begin_leaving(struct loop *loop, int64_t stage_us)
{
	struct frontend *front = loop->front;

	reload_give_up(&loop->reload, "the mount leaves");
	front->draining = true;
	enter_stage(loop, LOOP_DRAINS, stage_us);
	supervisor_leaves();
	lc_drain(front->lc);
	holds_drop_all(front);
	loop->detacher = mountpoint_detach(loop->options->mountpoint, loop->mount_records.device);
	if (loop->detacher < 0)
		log_line(LC_ERROR, "cannot unmount %s: %s", loop->options->mountpoint,
		         strerror(errno));
}

static void told_to_leave(struct loop *loop)
{
	loop->terms++;
	/* Before there is a mount, start.c looks at `terms`. */
	if (loop->terms == 1 && loop->fuse && loop->stage == LOOP_SERVES) {
		contact_leaves(loop->front);
		begin_leaving(loop, loop->options->drain_us);
	}
}

static void told_to_reload(struct loop *loop)
{
	if (loop->fuse && loop->stage == LOOP_SERVES && loop->front->serving)
		reload_ask(&loop->reload);
	else
		log_line(LC_WARNING, "no reload: the mount does not serve");
}

static void give_up(struct loop *loop)
{
	int error = lc_why(loop->front->lc);

	if (error == 0 || loop->error != 0)
		return;
	loop->error = error;
	contact_log_error(loop->options, &loop->servers, error);
	if (loop->stage > LOOP_SERVES)
		loop->stage_ends_us = INT64_MIN;
	else
		begin_leaving(loop, 0);
}

static void end_stage(struct loop *loop)
{
	struct frontend *front = loop->front;
	struct lc_status status;

	if (loop->stage == LOOP_SERVES || front->clock_us() < loop->stage_ends_us)
		return;
	if (loop->stage == LOOP_FORFEITED) {
		enter_stage(loop, LOOP_OVER, 0);
		return;
	}
	lc_status(front->lc, &status);
	if (status.holders > 0)
		log_line(LC_WARNING,
		         "the time to drain is over: %u lock%s that %s still held %s lost",
		         status.holders, status.holders == 1 ? "" : "s",
		         status.holders == 1 ? "is" : "are", status.holders == 1 ? "is" : "are");
	enter_stage(loop, LOOP_FORFEITED, GRACE_US);
	front->holds->audit_log.leaves = true;
	lc_forfeit(front->lc);
}

static void detached(struct loop *loop, int status)
{
	const char *path = loop->options->mountpoint;

	loop->detacher = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) == DETACH_FAILED)
		log_line(LC_ERROR, "cannot unmount %s: unmount it by hand, by umount -l", path);
	else if (WEXITSTATUS(status) == DETACH_COVERED)
		log_line(
			LC_WARNING,
			"another filesystem is mounted over %s and stays: what is below it will be "
			"dead",
			path);
}

static void reap_children(struct loop *loop)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (log_reap(pid))
			continue;
		reload_reap(&loop->reload, pid, status);
		if (pid == loop->detacher)
			detached(loop, status);
		if (pid == loop->asked) {
			loop->asked = 0;
			loop->answer = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		}
	}
}

static void read_signals(struct loop *loop)
{
	struct signalfd_siginfo info;

	while (read(loop->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			reap_children(loop);
		} else if (supervisor_repeats(&info, loop->front->clock_us())) {
			continue;
		} else if (info.ssi_signo == SIGUSR2) {
			told_to_reload(loop);
		} else {
			told_to_leave(loop);
		}
	}
}

/* Asks lc_doubted(), and keeps the answer in loop->doubted. While it is true no request is
 * served, since a lock may be lost or not. */
static bool in_doubt(struct loop *loop)
{
	loop->doubted = loop->front->lc && lc_doubted(loop->front->lc);
	return loop->doubted;
}

_Static_assert((REQUESTS_PER_TURN + 3) * REQUEST_BYTES + READS_PER_TURN * 8 + INBOX_BYTES_MAX <=
                       STORE_REQUESTS_BYTES,
               "a turn may read more than the store has room for");

/* Reads a request into the store: after a crash the requests since the last commit are served
 * again. NULL: errno, as of read(2). Without memory no request is read, and the kernel keeps it. */
static struct request *receive_request(struct loop *loop)
{
	struct store *store = loop->front->records.store;
	void *bytes = loop->unrecorded ? NULL : store_request_room(store, REQUEST_BYTES);
	bool recorded = bytes;
	struct request *request;
	ssize_t n;

	if (!recorded)
		store_spoil(store);
	if (!loop->room)
		loop->room = request_alloc(REQUEST_BYTES);
	errno = EAGAIN;
	if (!loop->room)
		return NULL;
	if (!recorded)
		bytes = (char *)loop->room + offsetof(struct request, in);
	n = read(loop->front->answers.fd, bytes, REQUEST_BYTES);
	if (n <= 0)
		return NULL;
	if (recorded)
		store_request_add(store, (size_t)n);
	request = request_new(loop->front, bytes, (size_t)n, NULL);
	if (!request) {
		request = request_new(loop->front, bytes, (size_t)n, loop->room);
		loop->room = NULL;
	}
	return request;
}

/* Keeps a request that was read and cannot be served yet. The next commit gives its place in the
 * store to other requests. */
static void defer_request(struct loop *loop, struct request *request)
{
	request_keep(request);
	loop->deferred = request;
}

/* The next request that may be served; NULL: errno, as of read(2). The clock is read after the
 * request, since this reading decides the answer. */
static struct request *next_request(struct loop *loop)
{
	struct request *request = loop->deferred ? loop->deferred : receive_request(loop);

	loop->deferred = NULL;
	if (request && in_doubt(loop)) {
		defer_request(loop, request);
		errno = EAGAIN;
		return NULL;
	}
	return request;
}

/* Without records the mount is served, but no other process can take it over. */
static void record(struct loop *loop)
{
	int r;

	if (!loop->fuse || loop->unrecorded || !loop->front->pending.init)
		return;
	answers_record(loop->front);
	r = mount_records_write(&loop->mount_records, /* all = */ false);
	if (r >= 0)
		return;
	loop->unrecorded = true;
	log_line(LC_ERROR, "no program can take over from this one any more: %s", strerror(-r));
}

/* The request was answered, or waits. Its changes are recorded before the answer leaves. */
static void finish_request(struct loop *loop)
{
	if (loop->front->answers.len == 0)
		return;
	if (mount_records_is_behind(&loop->mount_records))
		record(loop);
	answers_emit(loop->front, /* closes = */ true);
}

/* The answers leave before the requests: on one host a lock passes without a request, and its next
 * holder does not wait until the kernel has sent one. */
static void finish_turn(struct loop *loop)
{
	struct frontend *front = loop->front;

	log_tend();
	record(loop);
	guardian_free_released(front->guardian);
	answers_emit(front, /* closes = */ true);
	/* A file is closed when the kernel does not take the answer to its open. */
	if (loop->fuse && mount_records_is_behind(&loop->mount_records))
		record(loop);
	if (front->lc)
		lc_send(front->lc);
}

/* Whether to read once more after a read that gave no request. `error`: its errno. */
static bool may_read_on(struct loop *loop, int error)
{
	/* ENOENT: the request was interrupted before it was read. */
	if (error == ENOENT || error == EINTR)
		return true;
	if (error == EAGAIN)
		return false;
	/* ENODEV: the mount is unmounted. ECONNABORTED: its connection was aborted. */
	if (error != ENODEV && error != ECONNABORTED)
		log_line(LC_ERROR, "/dev/fuse: %s", strerror(error));
	loop->gone = true;
	return false;
}

static void serve_request(struct loop *loop, struct request *request)
{
	const struct fuse_interrupt_in *in = (const void *)(&request->in + 1);
	struct request *other = NULL;

	if (request->in.opcode == FUSE_INTERRUPT)
		other = request_find(loop->front, in->unique);
	if (other)
		trace_interrupt(other);
	/* The interrupted request is served first. Once it is answered, the interrupt has
	 * nothing left to do. */
	if (other && inbox_serve_now(other))
		request_drop(request);
	else
		request_take(request);
}

/* Reads requests into the inbox (inbox.h), when the kernel has more than one turn serves. */
static void read_ahead(struct loop *loop)
{
	struct frontend *front = loop->front;
	int64_t until_us = front->clock_us() + REQUESTS_US;
	size_t bytes = 0; /* also of those that are served at once */

	for (int i = 0;
	     i < READS_PER_TURN && bytes < INBOX_BYTES_MAX && !inbox_is_full(&front->inbox); i++) {
		struct request *request = receive_request(loop);

		if (!request && may_read_on(loop, errno))
			continue;
		if (!request)
			return;
		bytes += request->len;
		if (inbox_takes(request) && inbox_add(request))
			continue;
		if (in_doubt(loop)) {
			defer_request(loop, request);
			return;
		}
		serve_request(loop, request);
		finish_request(loop);
		if (front->clock_us() >= until_us)
			return;
	}
}

/* 0; or -errno of read(2), -EAGAIN: nothing is served now. */
static int serve_next(struct loop *loop)
{
	struct request *request;

	if (!loop->deferred && !inbox_is_empty(&loop->front->inbox))
		return !in_doubt(loop) && inbox_serve(loop->front) ? 0 : -EAGAIN;
	request = next_request(loop);
	if (!request)
		return -errno;
	serve_request(loop, request);
	return 0;
}

/* Whether requests were read that are not served yet. */
static bool has_read(const struct loop *loop)
{
	return loop->deferred || !inbox_is_empty(&loop->front->inbox);
}

/* libfuse's own loop is not used: it prints messages about what is no error here. */
static void serve_requests(struct loop *loop)
{
	int64_t until_us;

	if (!loop->deferred && (loop->crowded || has_read(loop)))
		read_ahead(loop);
	loop->crowded = false;
	until_us = loop->front->clock_us() +
	           (inbox_is_empty(&loop->front->inbox) ? REQUESTS_US : CROWD_US);
	for (int i = 0; i < REQUESTS_PER_TURN && (i == 0 || loop->front->clock_us() < until_us);
	     i++) {
		int r = serve_next(loop);

		if (r < 0 && may_read_on(loop, -r))
			continue;
		if (r < 0)
			return;
		finish_request(loop);
		if (fuse_session_exited(loop->fuse))
			return;
	}
	loop->crowded = true;
}

static int64_t min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The descriptors that a turn polls. */
enum {
	POLL_KERNEL,
	POLL_SIGNALS,
	POLL_LINGER,
	POLL_GUARDIAN,
	POLL_ENSEMBLE,
	POLL_SERVERS,
	POLL_SERVERS_LAST = POLL_SERVERS + SERVERS_POLLED - 1,
	POLL_PROBER,
	POLL_PAUSES,
	POLL_SUPERVISOR,
	POLL_COVERS,
	POLL_COVERS_LAST = POLL_COVERS + COVERS_POLLED - 1,
	POLLED
};

/* ppoll() failed: nothing was heard. After any errno but EINTR nothing would be heard any more,
 * so the mount ends. */
static void hear_nothing(struct loop *loop, struct pollfd fds[POLLED])
{
	if (errno != EINTR && loop->error == 0) {
		loop->error = -errno;
		loop->terms = 2;
		log_line(LC_ERROR, "ppoll: %s: the mount ends", strerror(errno));
	}
	for (int i = 0; i < POLLED; i++)
		fds[i].revents = 0;
}

void loop_turn(struct loop *loop, int64_t until_us)
{
	struct frontend *front = loop->front;
	/* A doubt that begins during the poll is found after it. */
	bool serve = loop->fuse && !(loop->doubted && in_doubt(loop));
	struct pollfd fds[POLLED] = {
		[POLL_KERNEL] = {.fd = serve ? front->answers.fd : -1, .events = POLLIN},
		[POLL_SIGNALS] = {.fd = loop->signals, .events = POLLIN},
		[POLL_LINGER] = {.fd = front->holds->linger.fd, .events = POLLIN},
		[POLL_GUARDIAN] = {.fd = guardian_fd(front->guardian), .events = POLLIN},
		[POLL_ENSEMBLE] = {.fd = -1},
		[POLL_PAUSES] = {.fd = front->pauses.timer, .events = POLLIN},
		[POLL_SUPERVISOR] = {.fd = supervisor_fd(), .events = POLLIN},
		[POLL_COVERS] = {.fd = -1},
		[POLL_COVERS_LAST] = {.fd = -1},
	};
	int64_t now = front->clock_us();
	int64_t wait =
		min(servers_prepare(&loop->servers, now, &fds[POLL_SERVERS]), holds_wait(front));
	wait = min(wait, reload_wait(&loop->reload));
	wait = min(wait, settings_prepare(&loop->settings, now, &fds[POLL_PROBER]));
	struct timespec ts;

	if (front->serving)
		wait = min(wait, covers_prepare(&loop->covers, now, &fds[POLL_COVERS]));
	if (front->lc)
		wait = min(wait, lc_prepare(front->lc, &fds[POLL_ENSEMBLE]));
	if (until_us != INT64_MAX)
		wait = min(wait, until_us - now);
	if (wait < 0 || (serve && has_read(loop)) || front->answers.len > 0)
		wait = 0;
	ts = (struct timespec){.tv_sec = wait / 1000000, .tv_nsec = wait % 1000000 * 1000};
	if (ppoll(fds, POLLED, &ts, NULL) < 0)
		hear_nothing(loop, fds);
	watchdog_begin();
	subuid_look();
	if (fds[POLL_PAUSES].revents)
		pauses_wake(&front->pauses);
	if (fds[POLL_KERNEL].revents || (serve && has_read(loop)))
		serve_requests(loop);
	else
		(void)in_doubt(loop);
	if (fds[POLL_SIGNALS].revents)
		read_signals(loop);
	if (fds[POLL_SUPERVISOR].revents) {
		supervisor_listen();
		front->facts.supervisor_up = 0;
	}
	holds_process(front, fds[POLL_LINGER].revents != 0, fds[POLL_GUARDIAN].revents & POLLIN);
	servers_process(&loop->servers, front->lc, front->clock_us(), &fds[POLL_SERVERS]);
	if (front->lc) {
		lc_process(front->lc, fds[POLL_ENSEMBLE].revents);
		settings_process(&loop->settings, front->lc, loop->servers.addresses,
		                 front->clock_us(), fds[POLL_PROBER].revents, front->serving);
	}
	if (front->serving)
		covers_process(&loop->covers, loop->options->mountpoint, loop->mount_records.device,
		               front->clock_us(), &fds[POLL_COVERS]);
	finish_turn(loop);
	watchdog_end();
	if (loop->fuse && !loop->unrecorded)
		mount_records_check(&loop->mount_records);
}

/* Whether the end of the mount waits for a holder. While it drains, it does not wait for holds
 * that were lost before, except those whose processes on_lost is about to stop. */
static bool somebody_stays(const struct loop *loop)
{
	unsigned holds = loop->front->holds->count;
	const struct hold *first;
	struct lc_status status;

	if (holds == 0 || loop->stage != LOOP_DRAINS)
		return holds > 0;
	lc_status(loop->front->lc, &status);
	return holds > holds_lost(loop->front, &first) || status.losing > 0;
}

/* The mount serves, since INIT has come, from the kernel or from the records: tells whoever
 * waits for the start. */
static void say_serving(struct loop *loop)
{
	if (loop->adopts) {
		(void)supervisor_serves();
		reload_done(&loop->reload);
		return;
	}
	if (!ready_detach())
		log_to_child();
	if (!supervisor_serves())
		ready_tell();
}

bool loop_serve(struct loop *loop)
{
	struct frontend *front = loop->front;
	bool told = false;

	while (!loop->gone && !fuse_session_exited(loop->fuse) && loop->terms < 2 &&
	       loop->stage != LOOP_OVER &&
	       !(loop->stage > LOOP_SERVES && front->parked == 0 && loop->detacher <= 0 &&
	         !somebody_stays(loop))) {
		loop_turn(loop, loop->stage > LOOP_SERVES ? loop->stage_ends_us : INT64_MAX);
		give_up(loop);
		end_stage(loop);
		if (front->serving && !told) {
			told = true;
			say_serving(loop);
		}
		if (told)
			contact_tend(&loop->contact, front, loop->options);
		if (loop->reload.stage != RELOAD_NONE)
			reload_process(&loop->reload, !loop->deferred && !in_doubt(loop) &&
			                                      front->answers.len == 0);
	}
	finish_turn(loop);
	free(loop->room);
	loop->room = NULL;
	return told;
}

int loop_ask(struct loop *loop, int (*question)(void *ctx), void *ctx, int64_t limit_us)
{
	int64_t until = loop->front->clock_us() + limit_us;

	loop->fuse = NULL;
	loop->answer = -1;
	loop->asked = fork();
	if (loop->asked == 0) {
		/* A copy of the mount's device, or of a socket, would keep it open. */
		closefrom(STDERR_FILENO + 1);
		_exit(question(ctx));
	}
	while (loop->asked > 0 && loop->front->clock_us() < until && loop->terms < 2)
		loop_turn(loop, until);
	if (loop->asked > 0)
		kill(loop->asked, SIGKILL);
	return loop->answer;
}

void loop_delete_entries(struct loop *loop, int64_t timeout_us)
{
	int64_t until = loop->front->clock_us() + timeout_us;

	loop->fuse = NULL;
	while (!lc_idle(loop->front->lc) && loop->front->clock_us() < until && loop->terms < 2)
		loop_turn(loop, until);
}
