/* SPDX-License-Identifier: MIT */
#include "daemon/reload.h"

#include "daemon/supervisor_run.h"
#include "guard/trial.h"
#include "hold/hold_record.h"
#include "host/args.h"
#include "host/helper.h"
#include "host/log.h"
#include "host/safe.h"
#include "host/memory.h"
#include "host/signals.h"
#include "setup/mountpoint.h"
#include "setup/options.h"
#include "store/store.h"

#include <argz.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPTION "--check-state="
/* The other program's words begin so if it can take over. */
#define YES "zklockfs "

/* Time for the other program to start from a slow disk; and to start again right after. */
#define CHECK_US 10000000
#define CHECK_AGAIN_MS 1000
/* Time for writes under way to end: longer than any question takes. */
#define SETTLE_US 2500000
/* The time between two looks whether the writes have ended. */
#define SETTLE_LOOK_US 1000

/* ---- the program that comes ---- */

/* The codec of the records that are read; NULL: none is open. */
static const struct codec *adopted;

static const char *explain(const char *why)
{
	return adopted ? mount_records_explain(adopted, why) : why;
}

static __attribute__((noreturn)) void refuse_to_check(const char *why)
{
	printf("%s\n", explain(why));
	(void)fflush(stdout);
	_exit(1);
}

/* The supervisor starts the program before. Without a supervisor there is no way back: the locks go
 * with the session, and on_lost acts. systemd starts another mount then, as it does not for 1. */
static __attribute__((noreturn)) void refuse_to_adopt(const char *why)
{
	why = explain(why);
	if (supervisor_fd() >= 0)
		log_line(LC_ERROR, "cannot take over: %s", why);
	else
		log_line(LC_ERROR, "cannot take over: %s; the mount is lost", why);
	log_finish();
	_exit(supervisor_fd() >= 0 ? 1 : 32);
}

bool reload_adopts(struct reload *reload, struct mount_records *mount_records, int *argc,
                   char ***argv, struct store **ret_store, struct codec *ret_codec,
                   char ***ret_argv)
{
	bool crashed = reload->crash.signal != 0;
	const char *text = getenv(SUPERVISOR_ENVIRONMENT_STORE), *why = NULL;
	bool checks = *argc > 1 && strncmp((*argv)[1], OPTION, strlen(OPTION)) == 0;
	int r;

	if (!text && !checks)
		return false;
	if (checks) {
		text = (*argv)[1] + strlen(OPTION);
		(*argv)[1] = (*argv)[0];
		(*argc)--;
		(*argv)++;
	}
	*ret_codec = (struct codec){
		.loads = true,
		.checks = checks,
		.crashed = crashed,
		.give_up = checks ? refuse_to_check : refuse_to_adopt,
	};
	r = checks ? store_read(atoi(text), ret_store, &why)
	           : store_open(atoi(text), ret_store, &why);
	unsetenv(SUPERVISOR_ENVIRONMENT_STORE);
	if (r < 0)
		ret_codec->give_up(why ? why : strerror(-r));
	if (checks)
		memory_end_first(); /* the OOM killer shall end this check before the daemon */
	adopted = ret_codec;
	mount_records_read_mount(ret_codec, *ret_store, mount_records);
	if (!crashed || mount_records->args_len == 0)
		return true;
	*ret_argv = args_split((*argv)[0], mount_records->args, mount_records->args_len);
	if (!*ret_argv)
		ret_codec->give_up(strerror(ENOMEM));
	*argv = *ret_argv;
	*argc = args_count(*ret_argv);
	return true;
}

/* Why the mount cannot go on with the options; NULL: it can. */
static const char *compare_options(struct reload *reload, const struct mount_records *mount_records,
                                   const struct options *options)
{
	char **argv = args_split("zklockfs", mount_records->args, mount_records->args_len);
	struct options was;
	const char *why;
	int status;

	if (!argv ||
	    !options_parse(args_count(argv), argv, mount_records->mountpoint, &was, &status)) {
		free(argv);
		return "the options that the mount has cannot be read";
	}
	why = options_forbid(&was, options);
	reload->was = was.on_lost;
	options_changes(&was, options, reload->changes, sizeof(reload->changes));
	options_free(&was);
	free(argv);
	return why;
}

void reload_compare(struct reload *reload, struct mount_records *mount_records, struct codec *codec,
                    const struct options *options)
{
	const char *why = options->check || options->change ? "these are no options of a mount"
	                  : codec->crashed || mount_records->args_len == 0
	                          ? NULL
	                          : compare_options(reload, mount_records, options);

	/* The kernel tells of no mount whether it has that limit. The former program can still go
	 * on while this one only looks whether it can take over. */
	if (!why && codec->checks)
		why = mountpoint_aborted(/* is_mounted = */ true);
	if (why)
		codec->give_up(why);
	/* mount_records->args stands in the record, which is written anew: so `former` is a
	 * copy. */
	reload->former = mount_records->args_len ? malloc(mount_records->args_len) : NULL;
	if (mount_records->args_len && !reload->former)
		codec->give_up(strerror(ENOMEM));
	if (reload->former)
		mount_records->args =
			memcpy(reload->former, mount_records->args, mount_records->args_len);
	if (options->on_lost == ON_LOST_NONE || reload->was == options->on_lost)
		return;
	why = trial_stop(); /* before credentials_confine() */
	if (why && codec->checks && reload->was == ON_LOST_NONE) {
		printf("on_lost could stop nobody here: %s\n", why);
		(void)fflush(stdout);
		_exit(1);
	}
}

void reload_read(struct reload *reload, struct codec *codec)
{
	mount_records_read_objects(reload->mount_records, codec);
	if (!codec->checks)
		return;
	printf(YES "%s can take over from %s\n", ZKLOCKFS_VERSION, reload->mount_records->from);
	_exit(fflush(stdout) == 0 ? 0 : 1);
}

/* ---- another guardian ---- */

/* After a crash right before its end was recorded, the guardian that was read leaves. */
static bool has_the_right_guardian(const struct reload *reload)
{
	const struct guardian *guardian = reload->front->guardian;

	if (reload->on_lost == ON_LOST_NONE)
		return !guardian;
	return guardian && reload->was == reload->on_lost && !guardian_leaves(guardian);
}

/* A step at a time, and a record after each: whichever of them was the last, the next process finds
 * a guardian that it knows, or none. Holders that are there stay, and each gets a new slot. Until
 * they are recorded the new guardian has no deadline, and takes nobody for a loser. */
static void change_guardian(struct reload *reload)
{
	struct frontend *front = reload->front;
	struct guardian *former = front->guardian;
	const struct mount_records *mount_records = reload->mount_records;

	if (former) {
		guardian_end(former, /* clean = */ true);
		front->guardian = NULL;
		holds_guard(front);
		(void)mount_records_write(reload->mount_records, /* all = */ true);
	}
	if (reload->on_lost == ON_LOST_NONE)
		return;
	if (!guardian_start(reload->on_lost, &front->guardian))
		return;
	guardian_mounted(front->guardian, mount_records->mount_id, mount_records->device);
	holds_guard(front);
	supervisor_give(SUPERVISOR_GUARDIAN, guardian_fd(front->guardian));
	supervisor_give(SUPERVISOR_GUARDIAN_PAGE, guardian_page(front->guardian));
}

/* From now on a process after a crash has these options, too. */
static void take_options(struct reload *reload)
{
	if (!has_the_right_guardian(reload))
		change_guardian(reload);
	reload->mount_records->args = reload->args;
	reload->mount_records->args_len = reload->args_len;
	(void)mount_records_write(reload->mount_records, /* all = */ true);
	guardian_deadline(reload->front->guardian,
	                  store_head(reload->front->records.store)->deadline_us);
}

void reload_done(struct reload *reload)
{
	struct frontend *front = reload->front;
	struct lc_status status;
	int64_t stopped_us = reload->mount_records->stopped_us;
	char after[64] = "";

	if (reload->crash.signal) {
		counted.adoptions++;
		stopped_us = reload->crash.at_us;
		snprintf(after, sizeof(after), " after a crash (signal %d)", reload->crash.signal);
	} else {
		counted.reloads++;
	}
	take_options(reload);
	reload->mount_records->looked_ns = 0; /* the next record has that count */
	answers_wake_all(front);
	lc_status(front->lc, &status);
	log_line(LC_NOTICE,
	         "zklockfs %s has taken over from %s%s in %" PRId64
	         " ms: %u lock%s held, %u waited for",
	         ZKLOCKFS_VERSION, reload->mount_records->from, after,
	         (front->clock_us() - stopped_us + 999) / 1000, status.holders,
	         status.holders == 1 ? " is" : "s are", status.waiters);
	if (*reload->changes)
		log_line(LC_NOTICE, "options: %s", reload->changes);
}

/* ---- the program that goes ---- */

/* The path that this program was started by; another file may have it now. NULL: not known. */
static char *find_program(void)
{
	static const char deleted[] = " (deleted)";
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	size_t tail = strlen(deleted);

	if (len <= 0)
		return NULL;
	path[len] = '\0';
	if ((size_t)len > tail && strcmp(path + (size_t)len - tail, deleted) == 0)
		path[(size_t)len - tail] = '\0';
	return strdup(path);
}

void reload_init(struct reload *reload, char **argv)
{
	reload->argv = argv;
	if (argz_create(argv + 1, &reload->args, &reload->args_len) != 0 ||
	    reload->args_len > ARGS_BYTES_MAX)
		reload->args_len = 0; /* the supervisor's arguments count */
	reload->program = find_program();
	reload->output = -1;
}

void reload_finish(struct reload *reload)
{
	free(reload->program);
	free(reload->args);
	free(reload->former);
	free(reload->next);
}

static void forget_child(struct reload *reload)
{
	if (reload->child > 0)
		kill(reload->child, SIGKILL);
	reload->child = 0;
	if (reload->output >= 0)
		close(reload->output);
	reload->output = -1;
}

static void reload_step(struct reload *reload, enum reload_stage stage, int64_t limit_us)
{
	forget_child(reload);
	reload->stage = stage;
	reload->until_us = reload->front->clock_us() + limit_us;
	lc_settle(reload->front->lc, stage == RELOAD_SETTLING);
}

void reload_give_up(struct reload *reload, const char *why)
{
	if (reload->stage == RELOAD_NONE)
		return;
	reload_step(reload, RELOAD_NONE, 0);
	free(reload->next);
	reload->next = NULL;
	reload->front->facts.refused++;
	reload->front->facts.why_refused =
		safe_text(reload->why, sizeof(reload->why), why, SAFE_LINE);
	log_line(LC_ERROR, "no reload, this program goes on: %s: %s",
	         reload->program ? reload->program : "zklockfs", why);
}

void reload_ask(struct reload *reload)
{
	if (reload->stage != RELOAD_NONE)
		return;
	reload_step(reload, RELOAD_ASKED, SETTLE_US);
	if (!reload->program)
		reload_give_up(reload, "the path of this program is not known");
}

int reload_change(struct reload *reload, const char *args, size_t len)
{
	if (reload->stage != RELOAD_NONE)
		return -EBUSY;
	reload->next = args_split(reload->argv[0], args, len);
	if (!reload->next)
		return -EINVAL;
	reload_ask(reload);
	return 0;
}

static char **next_argv(const struct reload *reload)
{
	return reload->next ? reload->next : reload->argv;
}

/* ---- the other program checks the records ---- */

static _Noreturn void be_the_checker(const struct reload *reload, int state, int output)
{
	int null = open("/dev/null", O_RDWR);
	char *const *next = next_argv(reload);
	size_t count = (size_t)args_count(next);
	char **argv = calloc(count + 2, sizeof(*argv));

	if (!argv || null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
	    dup2(output, STDERR_FILENO) < 0)
		_exit(1);
	state = helper_keep_only(state);
	if (state < 0 || fcntl(state, F_SETFD, 0) < 0)
		_exit(1);
	signals_unblock_all();
	argv[0] = next[0];
	argv[1] = (char[]){OPTION "3"};
	memcpy(argv + 2, next + 1, (count - 1) * sizeof(*argv));
	execv(reload->program, argv);
	printf("%s\n", strerror(errno));
	(void)fflush(stdout);
	_exit(1);
}

static int start_checker(struct reload *reload, int state)
{
	int fds[2], error;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	reload->child = fork();
	error = errno;
	if (reload->child == 0)
		be_the_checker(reload, state, fds[1]);
	close(fds[1]);
	reload->output = fds[0];
	if (reload->child > 0)
		return 0;
	reload->child = 0;
	return -error;
}

/* The first line that the child has said so far; "": nothing. */
static const char *read_child(const struct reload *reload)
{
	static char said[256];
	ssize_t n = read(reload->output, said, sizeof(said) - 1);

	said[n > 0 ? n : 0] = '\0';
	said[strcspn(said, "\n")] = '\0';
	return said;
}

/* Why the other program refuses; NULL: it accepts. */
static const char *why_not(const char *said)
{
	if (strncmp(said, YES, strlen(YES)) == 0)
		return NULL;
	return *said ? said : "it printed no answer";
}

/* The child has ended: NULL if it has said yes; otherwise why not. */
static const char *read_verdict(struct reload *reload, int status)
{
	static char ended[64];
	const char *said = read_child(reload), *why;

	reload->child = 0;
	if (WIFSIGNALED(status)) {
		snprintf(ended, sizeof(ended), "it was ended by signal %d", WTERMSIG(status));
		return ended;
	}
	why = why_not(said);
	return why || WEXITSTATUS(status) == 0 ? why : said;
}

void reload_reap(struct reload *reload, pid_t pid, int status)
{
	const char *why;

	if (pid != reload->child || reload->stage != RELOAD_CHECKING)
		return;
	why = read_verdict(reload, status);
	if (why)
		reload_give_up(reload, why);
	else
		reload_step(reload, RELOAD_SETTLING, SETTLE_US);
}

/* ---- the last steps ---- */

/* A mount without a supervisor asks here. The loop stands still meanwhile, so it awaits the child's
 * answer, and not the child's end, which comes right after. NULL, or why not. */
static const char *check_again(struct reload *reload, int state)
{
	struct pollfd answer = {.events = POLLIN};
	int r = start_checker(reload, state);

	if (r < 0)
		return strerror(-r);
	answer.fd = reload->output;
	if (poll(&answer, 1, CHECK_AGAIN_MS) != 1)
		return "it is too slow";
	return why_not(read_child(reload));
}

/* Returns only if the exec fails, and says why. */
static const char *exec_program(const struct reload *reload)
{
	int fd = store_fd(reload->front->records.store), error;
	char number[16];

	snprintf(number, sizeof(number), "%d", fd);
	if (setenv(SUPERVISOR_ENVIRONMENT_STORE, number, 1) < 0)
		return strerror(errno);
	error = -helper_close_by_exec();
	if (error == 0)
		error = -mount_records_pass(reload->mount_records, /* pass = */ true);
	if (error == 0) {
		supervisor_pass(/* pass = */ true);
		(void)fcntl(fd, F_SETFD, 0);
		execv(reload->program, next_argv(reload));
		error = errno;
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
		supervisor_pass(/* pass = */ false);
		(void)mount_records_pass(reload->mount_records, /* pass = */ false);
	}
	unsetenv(SUPERVISOR_ENVIRONMENT_STORE);
	return strerror(error);
}

static void begin_check(struct reload *reload)
{
	int r = mount_records_write(reload->mount_records, /* all = */ true);

	reload_step(reload, RELOAD_CHECKING, CHECK_US);
	if (r == 0)
		r = start_checker(reload, store_fd(reload->front->records.store));
	if (r < 0)
		reload_give_up(reload, strerror(-r));
}

static void make_way(struct reload *reload)
{
	const char *why;
	int r;

	reload->mount_records->stopped_us = reload->front->clock_us();
	r = mount_records_write(reload->mount_records, /* all = */ true);
	why = r < 0 ? strerror(-r) : NULL;
	if (!why && !supervisor_makes_way())
		why = check_again(reload, store_fd(reload->front->records.store));
	if (!why)
		why = exec_program(reload);
	(void)supervisor_serves();
	reload_give_up(reload, why);
}

int64_t reload_wait(const struct reload *reload)
{
	switch (reload->stage) {
	case RELOAD_NONE:
		break;
	case RELOAD_CHECKING:
		return reload->until_us - reload->front->clock_us();
	case RELOAD_ASKED:
	case RELOAD_SETTLING:
		return SETTLE_LOOK_US;
	}
	return INT64_MAX;
}

void reload_process(struct reload *reload, bool settled)
{
	const struct frontend *front = reload->front;

	if (reload->stage == RELOAD_ASKED) {
		begin_check(reload);
		return;
	}
	if (reload->stage == RELOAD_SETTLING && settled && lc_settled(front->lc)) {
		make_way(reload);
		return;
	}
	if (front->clock_us() > reload->until_us)
		reload_give_up(reload, reload->stage == RELOAD_CHECKING
		                               ? "it is too slow"
		                               : "writes to the ensemble take too long");
}
