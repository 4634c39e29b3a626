/* SPDX-License-Identifier: MIT
 *
 * why.c - `zklock why`: the obstacles of a taker that does not wait, see look.h. It only looks: to
 * try would be to take the lock, and to make others fail.
 */
#include "look.h"

#include "chain.h"
#include "clean.h"
#include "entry.h"
#include "health.h"
#include "opener.h"
#include "span.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sysexits.h>
#include <unistd.h>

#define TOLD_MAX 5     /* holders that are named */
#define OPENERS_MAX 10 /* processes that are named for a holder that is gone */
#define SILENT_MS 5000

/* The queue of the lock that is asked about. */
struct queue {
	const struct mount *mount;
	const char *lock;
	const struct health *health;
	struct entry *entries;
	size_t count, slots;
	struct chain *chain; /* NULL: nothing is known of other locks */
};

/* ---- the mount and the lock ---- */

/* EX_OK, or what zklock -n would end with. */
static int check_mount(const struct mount *mount, const struct health *health)
{
	char why[HEALTH_MAX];

	if (!health->text && health->error != ENOENT) {
		puts(health_explain(mount, health->error, why));
		return EX_UNAVAILABLE;
	}
	if (health_is_good(health, why))
		return EX_OK;
	puts(why);
	return EX_UNAVAILABLE;
}

static int check_lock_file(const struct mount *mount, const char *lock)
{
	char why[HEALTH_MAX], cover[PLACE_COVER_MAX], word[CLEAN_WORDS_MAX];
	struct stat stat = {0};
	struct statvfs statvfs;

	if (mount_stat(mount, lock, "lock", &stat) < 0) {
		int error = errno;

		if (errno == ENOENT || errno == ENOTDIR) {
			printf("there is no such lock; this creates it: mkdir -p %s\n",
			       mount_word(mount, lock, word));
			return EX_NOINPUT;
		}
		printf("cannot look at its lock files: %s\n",
		       error == EXDEV ? mount_covered(mount, lock, cover)
		                      : health_explain(mount, error, why));
		return health_exit_status(error);
	}
	if (fstatvfs(mount->dir, &statvfs) == 0 && statvfs.f_flag & ST_RDONLY) {
		puts("the mount is read-only: no lock can be taken");
		return EX_NOPERM;
	}
	if (mount_may_write(mount, lock, "lock") < 0) {
		printf("you (user %u) may not write to its lock files: they have mode %04o, "
		       "owner %u and group %u\n",
		       (unsigned)geteuid(), (unsigned)stat.st_mode & 0777, (unsigned)stat.st_uid,
		       (unsigned)stat.st_gid);
		return EX_NOPERM;
	}
	return EX_OK;
}

/* ---- the queue ---- */

/* Whether the process is shown by an entry of its own. */
static bool is_taker(const struct queue *queue, pid_t pid)
{
	char owner[32];
	int n = snprintf(owner, sizeof(owner), "%d-", (int)pid);

	for (size_t i = 0; i < queue->count; i++)
		if (strncmp(entry_owner(&queue->entries[i]), owner, (size_t)n) == 0)
			return true;
	return false;
}

/* The process that took it has ended, or closed the file, and another one has it. */
static void tell_openers(const struct queue *queue, const struct entry *holder, bool gone)
{
	struct opener openers[OPENERS_MAX];
	bool all, found = false;
	size_t n = openers_find(queue->mount, queue->lock, openers, OPENERS_MAX, &all);
	char shown[CLEAN_MAX];

	for (size_t i = 0; i < n; i++) {
		if (is_taker(queue, openers[i].pid))
			continue;
		if (!found)
			printf("  process %s %s;", holder->pid,
			       gone ? "is gone" : "has closed the file");
		printf("%s %d (%s)", found ? "," : "", (int)openers[i].pid,
		       clean(shown, sizeof(shown), openers[i].command));
		found = true;
	}
	if (found)
		puts(" has the file open");
	else if (gone)
		printf("  process %s is gone; %s\n", holder->pid,
		       all ? "no process shows that it has the file open"
		           : "root can see who has the file open");
}

/* What only this host knows of its processes. */
static void tell_process(const struct queue *queue, const struct entry *entry)
{
	pid_t pid = atoi(entry->pid);
	bool gone;

	if (pid <= 0 || !health_sees_pids(queue->health, entry->session))
		return;
	if (entry_is_own(entry, queue->health))
		puts("  this is your own hold: you would wait for yourself; use -R");
	gone = opener_is_gone(pid);
	if (!entry->kept && (gone || opener_has_closed(queue->mount, queue->lock, pid)))
		tell_openers(queue, entry, gone);
}

/* Its process may have ended long ago. */
static void tell_kept(const struct queue *queue)
{
	char word[CLEAN_WORDS_MAX];

	printf("  it was released, and its least time (--at-least) keeps it until then; this frees "
	       "it now: zklock evict %s holder\n",
	       mount_word(queue->mount, queue->lock, word));
}

/* A mount with a holder renews its session every second or two. */
static void tell_silence(const struct entry *entry)
{
	long long ms = strtoll(entry->renewed_ago, NULL, 10); /* 0 if it is not known */
	char age[SPAN_MAX];

	if (ms > SILENT_MS)
		printf("  its host has not renewed its session for %s: it is dead, cut off or "
		       "stopped; the lock is free when the session has ended\n",
		       span_format(age, ms));
}

static void tell_entry(struct queue *queue, struct entry *entry)
{
	char who[ENTRY_WHO_MAX], reason[CLEAN_MAX], age[SPAN_MAX];
	int64_t ms;

	entry_read(queue->mount, queue->lock, entry);
	if (!entry->text)
		return;
	ms = entry_age(entry, queue->health);
	printf("%s by %s for %s%s\n", entry->shared ? "shared" : "held", entry_who(entry, who),
	       ms < 0 ? "a moment" : span_format(age, ms), entry_why(entry, reason));
	if (entry->kept)
		tell_kept(queue);
	tell_process(queue, entry);
	tell_silence(entry);
	if (queue->chain)
		chain_follow(queue->chain, queue->lock, entry);
}

/* Whether an entry behind all of these would hold at once. */
static bool is_free(const struct entry *entries, size_t count, size_t slots, bool shared)
{
	for (size_t i = 0; i < count; i++)
		if (entries[i].foreign || entries[i].shared != shared)
			return false;
	return shared || count < slots;
}

static void tell_covered(const struct queue *queue, const struct entry *entry)
{
	char file[LOCK_NAME_MAX + 320], cover[PLACE_COVER_MAX];

	snprintf(file, sizeof(file), "%s/queue/%s", queue->lock, entry->name);
	printf("an entry cannot be seen: %s\n", mount_covered(queue->mount, file, cover));
}

/* Holders, and how many wait. */
static void tell_queue(struct queue *queue)
{
	size_t told = 0, waiting = 0;

	queue->chain = queue->count ? chain_begin(queue->mount, queue->health) : NULL;
	for (size_t i = 0; i < queue->count; i++) {
		waiting += !queue->entries[i].held && !queue->entries[i].covered;
		if (queue->entries[i].covered)
			tell_covered(queue, &queue->entries[i]);
		if (queue->entries[i].held && told++ < TOLD_MAX)
			tell_entry(queue, &queue->entries[i]);
	}
	if (told > TOLD_MAX)
		printf("and by %zu more\n", told - TOLD_MAX);
	if (waiting)
		printf("%s%zu %s for it already\n",
		       told ? "" : "nobody holds it at this moment, ask again; ", waiting,
		       waiting == 1 ? "waits" : "wait");
	if (queue->slots > 1)
		printf("it has %zu slots, %zu %s held\n", queue->slots, told,
		       told == 1 ? "is" : "are");
	if (queue->chain)
		chain_end(queue->chain);
}

static int check_queue(struct queue *queue, bool shared)
{
	char *text = mount_read(queue->mount, queue->lock, "slots"), why[HEALTH_MAX];
	bool free_now;

	queue->slots = text ? strtoul(text, NULL, 10) : 1;
	free(text);
	if (!entries_list(queue->mount, queue->lock, &queue->entries, &queue->count)) {
		int error = errno;

		printf("its queue cannot be read: %s\n", health_explain(queue->mount, error, why));
		return health_exit_status(error);
	}
	free_now = is_free(queue->entries, queue->count, queue->slots, shared);
	if (!free_now)
		tell_queue(queue);
	entries_free(queue->entries, queue->count);
	return free_now ? EX_OK : EX_TEMPFAIL;
}

int look_why(const struct mount *mount, const char *lock, bool shared)
{
	struct health health;
	struct queue queue = {.mount = mount, .lock = lock, .health = &health};
	int status;

	health_read(mount, &health);
	status = check_mount(mount, &health);
	if (status == EX_OK)
		status = check_lock_file(mount, lock);
	if (status == EX_OK)
		status = check_queue(&queue, shared);
	if (status == EX_OK)
		puts("nothing is in the way: it could be taken now");
	health_free(&health);
	return status;
}
