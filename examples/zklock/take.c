/* SPDX-License-Identifier: MIT
 *
 * take.c - see take.h.
 *
 * The lock file is `flock`: it takes a reason before it is locked, which others see while this
 * process waits, and flock(2) with LOCK_UN gives the lock back whoever has the descriptor.
 * Only `reentrant` is a lock file of its own. Both may say behind how many to wait.
 *
 * For --at-least the mount keeps the lock, as the lock file's name says. Of several locks it keeps
 * none before all are held: a name with a least time would keep the first where the second is
 * refused. So each is joined then once more, by a name with the time.
 */
#include "take.h"

#include "clean.h"
#include "entry.h"
#include "health.h"
#include "span.h"
#include "tell.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#define EARLY_REASON_MAX 255 /* of what is written before the lock is held */
#define LOCK_FILE_MAX 64
#define MAKE_TRIES 100
#define AGAIN_NS 100000000 /* a signal that comes just before the wait does not end it */

static volatile sig_atomic_t time_is_over;

static void note_timeout(int number)
{
	(void)number;
	time_is_over = 1;
}

/* ---- what went wrong ---- */

static const char *explain_errno(int error)
{
	static const struct {
		int error;
		const char *text;
	} texts[] = {
		{EAGAIN, "not free"},
		{ETIMEDOUT, "not free in time"},
		{ECANCELED, "evicted while it waited"},
		{ENOENT, "no such lock"},
		{EACCES, "you may not take it: its lock files are not writable for you"},
		{EROFS, "the mount is read-only"},
		{EHOSTUNREACH, "the ensemble does not answer"},
		{ESHUTDOWN, "the mount is shutting down, or unusable"},
		{ENOLCK, "a limit is reached, or the ensemble refuses it; the log says more"},
		{EPROTO, "the queue has an entry of a client that would not wait for zklockfs"},
		{EBUSY, "you send the mount too many requests at a time"},
		{ENFILE, "too many files are open on the mount"},
		{EIO, "lost before the command began"},
		{ENOTSUP, "the mount does not know this process, and cannot keep several locks "
	                  "for it (--at-least)"},
		{ENOTCONN, "the daemon of the mount is dead"},
		{ECONNABORTED, "the daemon of the mount is dead"},
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].error == error)
			return texts[i].text;
	return strerror(error);
}

/* The lock can be taken, but somebody else has it, or has taken away the place in the queue. This
 * alone is what -E and -q are for: a host that cannot lock at all must not look like one whose
 * turn it is not. */
static bool is_not_to_be_had(int error)
{
	return error == EAGAIN || error == ETIMEDOUT || error == ECANCELED;
}

static int failure_status(const struct take *take, int error)
{
	if (is_not_to_be_had(error))
		return take->failure;
	switch (error) {
	case ENOENT:
	case ENOTDIR:
		return EX_NOINPUT;
	case EACCES:
	case EPERM:
	case EROFS:
		return EX_NOPERM;
	case ENOTCONN:
	case ECONNABORTED:
	case EHOSTUNREACH:
	case ESHUTDOWN:
	case EPROTO:
	case EXDEV:
		return EX_UNAVAILABLE;
	case EINVAL:
	case ENAMETOOLONG:
	case EDOM:
		return EX_USAGE;
	case EIO:
		return STATUS_LOST;
	default: /* limits */
		return EX_OSERR;
	}
}

/* Says so where the command would wait for its own hold. */
static void tell_own(const struct take *take, const struct entry *entry)
{
	struct health health;

	health_read(take->mount, &health);
	if (entry_is_own(entry, &health))
		warnx("  this is your own hold: use -R");
	health_free(&health);
}

/* Prints the first holder for the user; nothing if there is none. */
static void tell_holder(const struct take *take, const struct lock *lock)
{
	char who[ENTRY_WHO_MAX], age[SPAN_MAX], reason[CLEAN_MAX];
	struct entry *entries = NULL, *entry;
	size_t count = 0;

	if (!entries_list(take->mount, lock->name, &entries, &count))
		return;
	for (entry = entries; entry < entries + count && !entry->held; entry++)
		continue;
	if (entry < entries + count) {
		int64_t ms;

		entry_read(take->mount, lock->name, entry);
		ms = entry_age(entry, NULL);
		warnx("  held by %s for %s%s", entry_who(entry, who),
		      ms < 0 ? "a moment" : span_format(age, ms), entry_why(entry, reason));
		tell_own(take, entry);
	}
	entries_free(entries, count);
}

/* Nothing has come from the ensemble for so long that the queue cannot be read. The mount itself
 * may notice later that contact is lost. */
static bool is_unanswered(const struct take *take, const struct lock *lock)
{
	struct entry *entries;
	size_t count;

	if (!entries_list(take->mount, lock->name, &entries, &count))
		return errno == EHOSTUNREACH;
	entries_free(entries, count);
	return false;
}

/* Nobody can get the lock at the moment. */
static bool is_away(const struct take *take, char why[HEALTH_MAX])
{
	struct health health;
	bool away;

	health_read(take->mount, &health);
	away = health.text && !health_is_good(&health, why);
	health_free(&health);
	return away;
}

static const char *tell_how_to_make(const struct take *take, const struct lock *lock,
                                    char line[CLEAN_MAX])
{
	char word[CLEAN_WORDS_MAX];

	snprintf(line, CLEAN_MAX, "no such lock; this creates it: mkdir -p %s, or zklock --make",
	         mount_word(take->mount, lock->name, word));
	return line;
}

static const char *tell_slots(const struct take *take, const struct lock *lock,
                              char line[CLEAN_MAX])
{
	char *text = mount_read(take->mount, lock->name, "slots");
	char file[LOCK_NAME_MAX + sizeof("/slots")], word[CLEAN_WORDS_MAX];
	unsigned long slots = text ? strtoul(text, NULL, 10) : 0;

	snprintf(file, sizeof(file), "%s/slots", lock->name);
	snprintf(line, CLEAN_MAX,
	         "the lock has %lu slot%s, and --slots says %u; its owner can change the lock: "
	         "echo %u >%s",
	         slots, slots == 1 ? "" : "s", take->make.slots, take->make.slots,
	         mount_word(take->mount, file, word));
	free(text);
	return line;
}

/* Gives back what is held. Returns the status to end with. */
static int fail(struct take *take, const struct lock *lock, int error)
{
	char shown[CLEAN_MAX], why[HEALTH_MAX], cover[PLACE_COVER_MAX], line[CLEAN_MAX];
	const char *text = NULL;

	take_release(take);
	if (error == ETIMEDOUT && is_unanswered(take, lock))
		error = EHOSTUNREACH;
	if ((error == ETIMEDOUT || error == EHOSTUNREACH) && is_away(take, why)) {
		error = EHOSTUNREACH;
		text = why;
	}
	if (lock->unmade && make_explain(error))
		text = make_explain(error);
	if (error == ENOENT)
		text = tell_how_to_make(take, lock, line);
	if (error == EDOM)
		text = tell_slots(take, lock, line);
	if (error == EXDEV)
		text = mount_covered(take->mount, lock->name, cover);
	if (!take->quiet || !is_not_to_be_had(error))
		warnx("%s: %s", clean(shown, sizeof(shown), lock->name),
		      text                             ? text
		      : error == EAGAIN && take->ahead ? "not free, and too many wait for it"
		                                       : explain_errno(error));
	if (!take->quiet && (error == EAGAIN || error == ETIMEDOUT))
		tell_holder(take, lock);
	return failure_status(take, error);
}

/* ---- opening ---- */

static int compare_names(const void *a, const void *b)
{
	const struct lock *left = a, *right = b;
	int order = strcmp(left->name, right->name);

	return order ? order : left->place - right->place;
}

void take_sort(struct take *take)
{
	size_t kept = 0;

	qsort(take->locks, take->count, sizeof(*take->locks), compare_names);
	for (size_t i = 0; i < take->count; i++) {
		if (kept && strcmp(take->locks[kept - 1].name, take->locks[i].name) == 0)
			free(take->locks[i].name);
		else
			take->locks[kept++] = take->locks[i];
	}
	take->count = kept;
}

/* The mount shows the opener's name. It is that of COMMAND for this moment only: a process that
 * waits must not look like one that runs. */
static int open_named(const struct take *take, const struct lock *lock, const char *lock_file,
                      int flags)
{
	char own[16];
	int fd, error;

	prctl(PR_GET_NAME, own);
	prctl(PR_SET_NAME, take->command);
	fd = mount_open(take->mount, lock->name, lock_file, O_RDWR | flags);
	error = errno;
	prctl(PR_SET_NAME, own);
	errno = error;
	return fd;
}

static int open_to_take(const struct take *take, struct lock *lock, int flags)
{
	char lock_file[LOCK_FILE_MAX], ahead[20] = "", least[40] = "";
	bool keeps = take->least_ms && take->count == 1;

	if (take->ahead)
		snprintf(ahead, sizeof(ahead), "@ahead=%u", take->ahead);
	if (keeps)
		snprintf(least, sizeof(least), "%sleast=%" PRId64 "ms", take->ahead ? "," : "@",
		         take->least_ms);
	snprintf(lock_file, sizeof(lock_file), "%s%s%s", take->reentrant ? "reentrant" : "flock",
	         ahead, least);
	lock->fd = open_named(take, lock, lock_file, flags);
	return lock->fd < 0 ? -errno : 0;
}

/* Opening `flock` takes nothing; `reentrant` is only looked at so far. */
static int open_there(const struct take *take, struct lock *lock)
{
	if (!take->reentrant)
		return open_to_take(take, lock, 0);
	return mount_may_write(take->mount, lock->name, "reentrant") < 0 ? -errno : 0;
}

/* Others may remove the lock as soon as it is there. A user who has looked for many names may see
 * it a second late. */
static int open_lock_file(const struct take *take, struct lock *lock)
{
	int error = open_there(take, lock);

	if (!take->make.wanted)
		return error;
	for (unsigned tries = 0; error == -ENOENT && tries < MAKE_TRIES && !time_is_over; tries++) {
		error = make_lock(take->mount, lock->name, &take->make);
		lock->unmade = error && error != -ENOENT;
		if (tries > 0)
			take_pause();
		if (!error)
			error = open_there(take, lock);
	}
	if (!error && take->make.slots)
		error = make_await_slots(take->mount, lock->name, &take->make);
	return error;
}

/* Somebody has removed it between the look at it and the request. */
static int open_again(const struct take *take, struct lock *lock)
{
	if (lock->fd >= 0)
		close(lock->fd);
	lock->fd = -1;
	return open_lock_file(take, lock);
}

/* ---- taking ---- */

/* By a limit of file sizes, for example. The lock is worth more than the reason. Written at 0: the
 * limit is one for positions, too. */
static void tell_refused_reason(const struct take *take, const struct lock *lock, ssize_t result)
{
	static bool told;
	char shown[CLEAN_MAX];

	if (result < 0 && errno != EIO && !told)
		tell(take, "%s: others do not see the reason: %s",
		     clean(shown, sizeof(shown), lock->name), strerror(errno));
	told |= result < 0;
}

/* The reason that others see while this process waits, cut between two characters. */
static void write_early_reason(const struct take *take, const struct lock *lock)
{
	size_t n = strlen(take->reason);

	if (n > EARLY_REASON_MAX)
		for (n = EARLY_REASON_MAX; n > 0 && (take->reason[n] & 0xc0) == 0x80; n--)
			;
	tell_refused_reason(take, lock, pwrite(lock->fd, take->reason, n, 0));
}

static int ask(const struct take *take, struct lock *lock)
{
	int mode = take->shared ? LOCK_SH : LOCK_EX;
	bool wait = take->limit_ms != 0;

	if (take->reentrant)
		return open_to_take(take, lock, wait ? 0 : O_NONBLOCK);
	if (take->reason)
		write_early_reason(take, lock);
	return flock(lock->fd, mode | (wait ? 0 : LOCK_NB)) < 0 ? -errno : 0;
}

/* This user has too much under way, or the daemon no memory: that passes. */
static bool passes(int error)
{
	return error == -EBUSY || error == -ENFILE || error == -ENOMEM;
}

/* Until there is an answer that waiting does not change. The place in the queue is kept for a
 * process that asks again after a signal. ETIMEDOUT comes where the kernel lets no request wait for
 * so long. */
static int ask_on(const struct take *take, struct lock *lock,
                  int (*question)(const struct take *, struct lock *))
{
	int error;

	do {
		error = question(take, lock);
		if (error == -EINTR || (error == -ETIMEDOUT && take->limit_ms))
			error = -ETIMEDOUT;
		else if (passes(error) && take->limit_ms)
			take_pause();
		else
			return error;
	} while (!time_is_over);
	return error;
}

static int take_one(const struct take *take, struct lock *lock)
{
	int error = time_is_over ? -ETIMEDOUT : ask_on(take, lock, ask);

	while (error == -ENOENT && take->make.wanted) {
		error = ask_on(take, lock, open_again);
		if (!error)
			error = ask_on(take, lock, ask);
	}
	lock->held = error == 0;
	return error;
}

bool take_is_no_answer(int error)
{
	return error == EINTR || error == EBUSY || error == ENFILE || error == ENOMEM ||
	       error == EHOSTUNREACH;
}

void take_pause(void)
{
	static const struct timespec moment = {.tv_nsec = AGAIN_NS};

	(void)nanosleep(&moment, NULL);
}

static int read_token(struct lock *lock)
{
	int64_t until = span_now_ms() + TAKE_ASK_MS;
	ssize_t n;

	while ((n = pread(lock->fd, lock->token, TOKEN_MAX - 1, 0)) < 0 &&
	       take_is_no_answer(errno) && span_now_ms() < until)
		take_pause();
	if (n < 0)
		return -errno;
	lock->token[n] = '\0';
	lock->token[strcspn(lock->token, "\n")] = '\0';
	if (!*lock->token || strspn(lock->token, "0123456789") != strlen(lock->token))
		return -EPROTO;
	return 0;
}

/* A long reason, which is now taken whole; and for `reentrant` any. */
static int write_reason(const struct take *take, const struct lock *lock)
{
	if (!take->reason || (!take->reentrant && strlen(take->reason) <= EARLY_REASON_MAX))
		return 0;
	if (pwrite(lock->fd, take->reason, strlen(take->reason), 0) >= 0)
		return 0;
	if (errno == EIO)
		return -EIO;
	tell_refused_reason(take, lock, -1);
	return 0;
}

void take_release(struct take *take)
{
	for (size_t i = take->count; i-- > 0;) {
		struct lock *lock = &take->locks[i];

		if (lock->held && !take->reentrant)
			flock(lock->fd, LOCK_UN);
		if (lock->held && take->reentrant)
			close(lock->fd);
		lock->held = false;
	}
}

/* This process has the lock already, so the open joins its own hold, and lengthens it. */
static int keep_one(const struct take *take, struct lock *lock)
{
	char lock_file[LOCK_FILE_MAX];
	int fd;

	snprintf(lock_file, sizeof(lock_file), "reentrant@least=%" PRId64 "ms", take->least_ms);
	fd = open_named(take, lock, lock_file, O_NONBLOCK);
	if (fd < 0)
		return errno == EAGAIN ? -ENOTSUP : -errno;
	close(fd);
	return 0;
}

static int keep_all(struct take *take, struct lock **ret_failed)
{
	int error = 0;

	for (size_t i = 0; i < take->count && !error; i++) {
		*ret_failed = &take->locks[i];
		error = ask_on(take, &take->locks[i], keep_one);
	}
	return error;
}

/* One round: all of them, each good still when the last has come. Locks taken first may have been
 * lost while this process waited for the others. */
static int take_round(struct take *take, struct lock **ret_failed)
{
	char shown[CLEAN_MAX];
	int error;

	for (size_t i = 0; i < take->count; i++) {
		*ret_failed = &take->locks[i];
		error = take_one(take, &take->locks[i]);
		if (error)
			return error;
		if (take->verbose)
			tell(take, "%s: taken", clean(shown, sizeof(shown), take->locks[i].name));
	}
	for (size_t i = 0; i < take->count; i++) {
		*ret_failed = &take->locks[i];
		error = read_token(&take->locks[i]);
		if (!error)
			error = write_reason(take, &take->locks[i]);
		if (error)
			return error;
	}
	return take->least_ms && take->count > 1 ? keep_all(take, ret_failed) : 0;
}

static bool start_timer(const struct take *take, timer_t *ret_timer)
{
	struct itimerspec when = {
		.it_value = {take->limit_ms / 1000, take->limit_ms % 1000 * 1000000},
		.it_interval = {0, AGAIN_NS},
	};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};

	return timer_create(CLOCK_BOOTTIME, &event, ret_timer) == 0 &&
	       timer_settime(*ret_timer, 0, &when, NULL) == 0;
}

static int open_lock_files(struct take *take, struct lock **ret_failed)
{
	for (size_t i = 0; i < take->count; i++) {
		int error = ask_on(take, &take->locks[i], open_lock_file);

		*ret_failed = &take->locks[i];
		if (error)
			return error;
	}
	return 0;
}

bool take_all(struct take *take, int *ret_status)
{
	struct sigaction action = {.sa_handler = note_timeout}, old_action;
	bool timed = take->limit_ms > 0;
	struct lock *failed = NULL;
	sigset_t set, old_set;
	timer_t timer;
	int error;

	if (timed) {
		sigemptyset(&set);
		sigaddset(&set, SIGALRM);
		sigaction(SIGALRM, &action, &old_action);
		sigprocmask(SIG_UNBLOCK, &set, &old_set);
		if (!start_timer(take, &timer))
			err(EX_OSERR, "timer_create");
	}
	error = open_lock_files(take, &failed);
	while (!error && (error = take_round(take, &failed)) == -EIO && failed->held &&
	       take->limit_ms) {
		take_release(take);
		error = 0;
	}
	if (timed) {
		timer_delete(timer);
		sigprocmask(SIG_SETMASK, &old_set, NULL);
		sigaction(SIGALRM, &old_action, NULL);
	}
	if (error)
		*ret_status = fail(take, failed, -error);
	return !error;
}
