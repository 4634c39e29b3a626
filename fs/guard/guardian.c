/* SPDX-License-Identifier: MIT
 *
 * guardian.c - see guardian.h. The daemon's half, which never waits.
 */
#include "guard/guardian.h"

#include "guard/guard.h"
#include "guard/slots.h"
#include "guard/trial.h"
#include "host/helper.h"
#include "host/log.h"
#include "host/process.h"
#include "pure/per_user.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* How many slots a user has. */
struct owner {
	struct per_user user;
	int slots;
};

struct guardian {
	struct page *page;
	int page_fd;
	int fd; /* to the other half, -1: gone. A byte wakes it */
	int free_count;
	int free[GUARDIAN_SLOTS];
	int released_count; /* in this turn */
	int released[GUARDIAN_SLOTS];
	int open_count;
	struct per_user *owners;
	uid_t shares[GUARDIAN_SLOTS];
	bool has_owner[GUARDIAN_SLOTS]; /* while loading: a hold or a file has the slot */
};

static void wake(struct guardian *guardian)
{
	if (guardian->fd >= 0)
		(void)send(guardian->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool map_page(struct guardian *guardian)
{
	guardian->page = mmap(NULL, sizeof(*guardian->page), PROT_READ | PROT_WRITE, MAP_SHARED,
	                      guardian->page_fd, 0);
	if (guardian->page == MAP_FAILED)
		guardian->page = NULL;
	return guardian->page;
}

/* NULL, or the call that failed. */
static const char *share_page(struct guardian *guardian)
{
	guardian->page_fd = memfd_create("zklockfs-guardian", MFD_CLOEXEC);
	if (guardian->page_fd < 0)
		return "memfd_create";
	if (ftruncate(guardian->page_fd, sizeof(*guardian->page)) < 0)
		return "ftruncate";
	if (!map_page(guardian))
		return "mmap";
	atomic_store(&guardian->page->deadline_us, INT64_MIN);
	return NULL;
}

/* NULL, or the call that failed. */
static const char *fork_guard(struct guardian *guardian, enum on_lost on_lost)
{
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return "socketpair";
	guardian->fd = fds[0];
	pid = fork();
	if (pid == 0) {
		/* Nothing of the terminal, nor of the pipe that tells the exit status. ^Z stops a
		 * daemon in the foreground, and not who watches over its holders. */
		(void)setsid();
		helper_let_go();
		log_in_guardian();
		guard_run(guardian->page, fds[1], on_lost);
	}
	close(fds[1]);
	return pid > 0 ? NULL : "fork";
}

/* What it has until then. */
static void free_guardian(struct guardian *guardian)
{
	if (guardian->page)
		munmap(guardian->page, sizeof(*guardian->page));
	if (guardian->page_fd >= 0)
		close(guardian->page_fd);
	if (guardian->fd >= 0)
		close(guardian->fd);
	free(guardian);
}

bool guardian_start(enum on_lost on_lost, struct guardian **ret_guardian)
{
	struct guardian *guardian = calloc(1, sizeof(*guardian));
	const char *why = trial_stop(), *hidden = why ? NULL : trial_find_others();
	const char *failed = "malloc";

	if (guardian) {
		guardian->fd = -1;
		failed = share_page(guardian);
	} else {
		errno = ENOMEM;
	}
	if (!failed && !why)
		failed = fork_guard(guardian, on_lost);
	if (failed) {
		log_line(LC_ERROR, "cannot start the guardian: %s: %s", failed, strerror(errno));
		if (guardian)
			free_guardian(guardian);
		return false;
	}
	if (why)
		log_line(LC_ERROR, "on_lost could stop nobody here, so no locks are granted: %s",
		         why);
	if (hidden)
		log_line(LC_WARNING,
		         "on_lost cannot find other users' processes that inherited a lock's file: "
		         "%s",
		         hidden);
	for (int i = GUARDIAN_SLOTS - 1; i >= 0; i--)
		guardian->free[guardian->free_count++] = i;
	*ret_guardian = guardian;
	return true;
}

void guardian_end(struct guardian *guardian, bool clean)
{
	struct per_user *owner, *next;

	if (!guardian)
		return;
	guardian_free_released(guardian);
	if (clean) {
		atomic_store(&guardian->page->clean, 1);
		wake(guardian);
	}
	if (guardian->fd >= 0)
		close(guardian->fd);
	munmap(guardian->page, sizeof(*guardian->page));
	close(guardian->page_fd);
	HASH_ITER(hh, guardian->owners, owner, next)
		per_user_drop(&guardian->owners, owner);
	free(guardian);
}

void guardian_deadline(struct guardian *guardian, int64_t deadline_us)
{
	int64_t before;

	if (!guardian)
		return;
	before = atomic_exchange(&guardian->page->deadline_us, deadline_us);
	/* A deadline that moves on is found when the old one comes near. */
	if (before == INT64_MIN || deadline_us < before)
		wake(guardian);
}

bool guardian_leaves(const struct guardian *guardian)
{
	return guardian && atomic_load(&guardian->page->clean);
}

void guardian_mounted(struct guardian *guardian, int mount_id, const char *device)
{
	if (!guardian)
		return;
	guardian->page->mount_id = mount_id;
	snprintf(guardian->page->device, sizeof(guardian->page->device), "%s", device);
}

/* NULL: no memory. */
static struct owner *get_owner(struct guardian *guardian, uid_t uid)
{
	return per_user_get(&guardian->owners, uid, sizeof(struct owner));
}

/* Open files of `flock` may have half of the slots. One user may have a quarter of all, but for
 * root, for whom the last of each half are kept. NULL: there is a slot; otherwise whose there are
 * too many of, in words. */
static const char *lacks_slot(const struct guardian *guardian, enum slot_state state, uid_t uid)
{
	const struct owner *owner = per_user_find(guardian->owners, per_user_share(uid));
	int kept = uid == 0 ? 0 : GUARDIAN_ROOT_SLOTS;

	if (uid != 0 && owner && owner->slots >= GUARDIAN_SLOTS / 4)
		return "of this user";
	if (guardian->free_count <= kept ||
	    (state == SLOT_OPEN && guardian->open_count >= GUARDIAN_SLOTS / 2 - kept))
		return "of all users together";
	return NULL;
}

static void dismiss(struct guardian *guardian, uid_t share)
{
	struct owner *owner = per_user_find(guardian->owners, share);

	if (--owner->slots == 0)
		per_user_drop(&guardian->owners, &owner->user);
}

/* A number that tells the process from a later one with its pid. The process waits for its
 * answer, so it is there. */
static uint64_t number_of(pid_t pid)
{
	struct process process;
	uint64_t number;

	if (process_hold(pid, &process) < 0)
		return 0;
	number = process_number(&process);
	process_close(&process);
	return number;
}

static void limit_slot(struct guardian *guardian, int slot, int64_t until_us)
{
	if (until_us < INT64_MAX - GUARDIAN_GRACE_US)
		until_us += GUARDIAN_GRACE_US;
	atomic_store(&guardian->page->slots[slot].until_us, until_us);
}

static int fill_slot(struct guardian *guardian, enum slot_state state, const struct guarded *who)
{
	const char *lacks = lacks_slot(guardian, state, who->uid);
	struct page *page = guardian->page;
	struct owner *owner;
	struct slot *slot;
	unsigned filled;
	int i;

	if (guardian->fd < 0)
		return -ESHUTDOWN;
	owner = lacks ? NULL : get_owner(guardian, who->uid);
	if (!owner) {
		log_line_of(who->uid, LC_WARNING,
		            "requests of uid %u are refused: on_lost could not stop so many %s",
		            (unsigned)who->uid, lacks ? lacks : "without memory");
		return -ENOLCK;
	}
	owner->slots++;
	guardian->open_count += state == SLOT_OPEN;
	i = guardian->free[--guardian->free_count];
	guardian->shares[i] = owner->user.uid;
	slot = &page->slots[i];
	atomic_thread_fence(memory_order_seq_cst); /* it was free before this: slots_look() */
	slot->pid = who->process.pid;
	slot->uid = who->uid;
	slot->start = who->process.start;
	slot->number = who->number ? who->number : number_of(who->process.pid);
	slot->ino = who->ino;
	snprintf(page->locks[i], sizeof(page->locks[i]), "%s", who->lock);
	limit_slot(guardian, i, who->until_us);
	if (i >= atomic_load(&page->used))
		atomic_store(&page->used, i + 1);
	atomic_store(&slot->word, NEXT_GENERATION(atomic_load(&slot->word), state));
	filled = atomic_load(&page->filled);
	atomic_store(&page->recent[filled % GUARDIAN_SLOTS], i);
	atomic_store(&page->filled, filled + 1);
	if (who->until_us != INT64_MAX)
		wake(guardian);
	return i;
}

int guardian_hold(struct guardian *guardian, const struct guarded *who)
{
	return fill_slot(guardian, SLOT_HELD, who);
}

int guardian_see(struct guardian *guardian, const struct guarded *who)
{
	return fill_slot(guardian, SLOT_OPEN, who);
}

void guardian_limit(struct guardian *guardian, int slot, int64_t until_us)
{
	if (!guardian || slot < 0)
		return;
	limit_slot(guardian, slot, until_us);
	wake(guardian);
}

void guardian_release(struct guardian *guardian, int slot)
{
	if (guardian && slot >= 0)
		guardian->released[guardian->released_count++] = slot;
}

static void free_slot(struct guardian *guardian, int slot)
{
	unsigned word = atomic_load(&guardian->page->slots[slot].word);

	guardian->open_count -= STATE_OF(word) == SLOT_OPEN;
	atomic_store(&guardian->page->slots[slot].word, NEXT_GENERATION(word, SLOT_FREE));
	guardian->free[guardian->free_count++] = slot;
	dismiss(guardian, guardian->shares[slot]);
}

void guardian_free_released(struct guardian *guardian)
{
	if (!guardian)
		return;
	for (int i = 0; i < guardian->released_count; i++)
		free_slot(guardian, guardian->released[i]);
	guardian->released_count = 0;
}

void guardian_lose(struct guardian *guardian, int slot)
{
	struct slot *s;
	unsigned word;

	if (!guardian || slot < 0)
		return;
	s = &guardian->page->slots[slot];
	word = atomic_load(&s->word);
	if (STATE_OF(word) == SLOT_HELD &&
	    atomic_compare_exchange_strong(&s->word, &word, WITH_STATE(word, SLOT_LOST)))
		wake(guardian);
}

int guardian_fd(const struct guardian *guardian)
{
	return guardian ? guardian->fd : -1;
}

int guardian_page(const struct guardian *guardian)
{
	return guardian ? guardian->page_fd : -1;
}

bool guardian_lives(struct guardian *guardian)
{
	char byte;

	if (recv(guardian->fd, &byte, 1, MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	close(guardian->fd);
	guardian->fd = -1;
	return false;
}

/* ---- over a reload ---- */

/* The page says which slots are used. */
static void count_slots(struct codec *codec, struct guardian *guardian)
{
	for (int i = GUARDIAN_SLOTS - 1; i >= 0; i--) {
		const struct slot *slot = &guardian->page->slots[i];
		enum slot_state is = STATE_OF(atomic_load(&slot->word));
		struct owner *owner;

		if (is == SLOT_FREE) {
			guardian->free[guardian->free_count++] = i;
			continue;
		}
		owner = get_owner(guardian, slot->uid);
		if (!owner)
			codec->give_up(strerror(ENOMEM));
		owner->slots++;
		guardian->shares[i] = owner->user.uid;
		guardian->open_count += is == SLOT_OPEN;
	}
}

void guardian_save_load(struct codec *codec, struct guardian **guardian)
{
	struct guardian *own = *guardian;
	bool is = own;
	size_t size = sizeof(struct page);

	CODEC_BOOL(codec, is);
	CODEC_SIZE(codec, size, SIZE_MAX / 2);
	if (size != sizeof(struct page))
		codec->give_up("the guardian is of another version");
	if (!is)
		return;
	if (codec->loads)
		own = calloc(1, sizeof(*own));
	if (!own)
		codec->give_up(strerror(ENOMEM));
	CODEC_LASTING_FD(codec, own->page_fd);
	CODEC_LASTING_FD(codec, own->fd);
	if (codec->loads && !codec->checks) {
		if (!map_page(own))
			codec->give_up(strerror(errno));
		count_slots(codec, own);
	}
	*guardian = own;
}

static enum slot_state state_of(const struct guardian *guardian, int slot)
{
	return STATE_OF(atomic_load(&guardian->page->slots[slot].word));
}

int guardian_slot_save_load(struct codec *codec, struct guardian *guardian, int slot)
{
	CODEC_RANGE(codec, slot, -1, GUARDIAN_SLOTS - 1);
	if (!codec->loads || codec->checks || slot < 0)
		return slot;
	if (!guardian || guardian->has_owner[slot] || state_of(guardian, slot) == SLOT_FREE)
		codec->give_up("the state has a holder that the guardian does not know");
	guardian->has_owner[slot] = true;
	return slot;
}

void guardian_loaded(struct guardian *guardian)
{
	for (int i = 0; guardian && i < GUARDIAN_SLOTS; i++)
		if (!guardian->has_owner[i] && state_of(guardian, i) != SLOT_FREE)
			guardian_release(guardian, i);
	guardian_free_released(guardian);
}

bool guardian_has_lost(const struct guardian *guardian, int slot)
{
	return guardian && slot >= 0 && state_of(guardian, slot) == SLOT_LOST;
}

int guardian_stopped(const struct guardian *guardian, int slot)
{
	return guardian && slot >= 0 ? slots_stopped(guardian->page, slot) : 0;
}

/* Capabilities stay what they were at the start. */
bool guardian_reaches(const struct guardian *guardian, uid_t uid)
{
	return !guardian || uid == getuid() || process_may_signal_all();
}

struct guardian_counts guardian_counts(const struct guardian *guardian)
{
	const struct page *page = guardian ? guardian->page : NULL;

	if (!page)
		return (struct guardian_counts){0};
	return (struct guardian_counts){
		.terms = atomic_load(&page->terms),
		.kills = atomic_load(&page->kills),
		.spared = atomic_load(&page->spared),
		.looks_ended = atomic_load(&page->looks_ended),
	};
}
