/* SPDX-License-Identifier: MIT */
#include "hold/advisory.h"

#include "guard/guardian.h"
#include "hold/flock_claim.h"
#include "hold/hold.h"
#include "host/process.h"
#include "request/parked.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <utlist.h>

static const struct lock_file_ops advisory_ops;

static struct advisory *advisory_of(struct open_file *file)
{
	return (struct advisory *)file;
}

/* ---- opening and closing ---- */

/* The guardian must tell the opener from a process that has lost the lock. `number`: as of struct
 * guarded. 0 or -errno. */
static int see_opener(struct advisory *file, uid_t uid, uint64_t number)
{
	struct guardian *guardian = file->lock_file.base.front->guardian;
	const struct node *node = file->lock_file.base.node;
	const struct guarded guarded = {
		.uid = uid,
		.process = file->opener,
		.number = number,
		.lock = node->lock,
		.ino = node->ino,
		.until_us = INT64_MAX,
	};

	file->slot = guardian ? guardian_see(guardian, &guarded) : -1;
	return guardian && file->slot < 0 ? file->slot : 0;
}

void advisory_guard(struct open_file *base)
{
	struct advisory *file = advisory_of(base);

	(void)see_opener(file, budget_uid(base), process_number(&file->opener));
	record_touch(&base->record);
}

static int begin_advisory(struct advisory *file, struct request *req)
{
	int r;

	process_identify((pid_t)req->in.pid, &file->opener);
	r = see_opener(file, req->in.uid, 0);
	if (r < 0)
		return r;
	file->opener.fd = process_watch(file->opener.pid);
	return 0;
}

void advisory_open(struct frontend *front, struct request *req, struct node *node)
{
	struct open_file *file = open_file_new(front, &advisory_ops.file, node, req->in.uid);

	reply_open(req, file, file ? begin_advisory(advisory_of(file), req) : -errno);
}

/* Whether the claim was made through this file. */
static bool is_by(const struct flock_claim *claim, const struct advisory *file)
{
	return claim->base.file == &file->lock_file.base;
}

/* Drops the claims by fcntl of that owner; or if that is NULL, all claims made through the file. */
static void drop_claims(struct advisory *file, const uint64_t *owner)
{
	struct flock_claim *claim, *next;

	DL_FOREACH_SAFE(file->lock_file.base.node->claims, claim, next)
		if (owner ? claim->id.kind != CLAIM_FLOCK && claim->id.owner == *owner
		          : is_by(claim, file))
			flock_claim_drop(claim);
	holds_drop_where(file->lock_file.base.front, file, owner);
}

/* The process may have given the file to a child: from now on the child's lock is not shared
 * with the parent's locks by fcntl. Nor is it shared with a later process that gets the number of
 * the parent. */
static void part_from(struct advisory *file, pid_t thread)
{
	struct flock_claim *claim;
	pid_t process = 0;

	DL_FOREACH(file->lock_file.base.node->claims, claim) {
		if (!is_by(claim, file) || claim->id.kind != CLAIM_FLOCK)
			continue;
		if (!process)
			process = process_of(thread);
		if (claim->process.pid == process)
			flock_claim_disown(claim);
	}
}

/* Threads that still wait by this owner are answered EBADF. Were one that waits through the closed
 * descriptor granted the lock, the kernel would answer it EBADF all the same and not unlock (since
 * the fix of CVE-2024-41012). If another process has the file open, no RELEASE comes either: nobody
 * would have the lock, for ever. What a thread waits for through another descriptor is taken from
 * it by a close anyway. */
static void advisory_flush(struct open_file *base, struct request *req, uint64_t owner)
{
	struct advisory *file = advisory_of(base);

	flock_claim_refuse(file, base->node, owner, EBADF);
	drop_claims(file, &owner);
	part_from(file, (pid_t)req->in.pid);
	reply_err(req, 0);
}

static void advisory_close(struct open_file *base)
{
	struct advisory *file = advisory_of(base);

	drop_claims(file, NULL);
	guardian_release(base->front->guardian, file->slot);
	if (file->opener.fd >= 0)
		close(file->opener.fd);
}

/* ---- locking ---- */

static void take_claim(struct advisory *file, struct request *req, enum claim_kind kind,
                       uint64_t owner, enum lc_mode mode, bool wait)
{
	struct claim_request request = {
		.file = file,
		.node = file->lock_file.base.node,
		.kind = kind,
		.owner = owner,
		.mode = mode,
		.wait_us = wait ? LC_FOREVER : 0,
		.uid = req->in.uid,
	};

	if (file->lock_file.base.front->read_only) {
		reply_err(req, EROFS);
		return;
	}
	if (request_is_interrupted(req)) {
		reply_err(req, EINTR);
		return;
	}
	process_identify((pid_t)req->in.pid, &request.asker);
	flock_claim_take(file->lock_file.base.front, req, &request);
}

static void drop_own_claim(struct advisory *file, struct request *req, enum claim_kind kind,
                           uint64_t owner)
{
	struct flock_claim *claim = flock_claim_find(file->lock_file.base.node, kind, owner);

	if (claim)
		flock_claim_drop(claim);
	holds_drop_where(file->lock_file.base.front, file, &owner);
	reply_err(req, 0);
}

static void advisory_flock(struct open_file *base, struct request *req, uint64_t owner, int op)
{
	struct advisory *file = advisory_of(base);

	if (op & LOCK_UN)
		drop_own_claim(file, req, CLAIM_FLOCK, owner);
	else
		take_claim(file, req, CLAIM_FLOCK, owner, op & LOCK_SH ? LC_SHARED : LC_EXCLUSIVE,
		           !(op & LOCK_NB));
}

/* False: the range stands for no lock. Programs that use a file for nothing else lock its first
 * byte. */
static bool kind_of_range(const struct flock *lock, enum claim_kind *ret_kind)
{
	*ret_kind = lock->l_len == 0 ? CLAIM_FCNTL : CLAIM_BYTE;
	return lock->l_start == 0 && (lock->l_len == 0 || lock->l_len == 1);
}

#define OTHER_RANGE(kind) ((kind) == CLAIM_BYTE ? CLAIM_FCNTL : CLAIM_BYTE)

static void advisory_setlk(struct open_file *base, struct request *req, uint64_t owner,
                           const struct flock *lock, bool wait)
{
	struct advisory *file = advisory_of(base);
	enum claim_kind kind;
	bool unlocks = lock->l_type == F_UNLCK, is = kind_of_range(lock, &kind);
	/* The owner has a lock of the other range: no part of a lock can be unlocked or changed. */
	bool other = is && flock_claim_find(base->node, OTHER_RANGE(kind), owner);

	if (!is || (other && !(unlocks && kind == CLAIM_FCNTL)))
		reply_err(req, EINVAL);
	else if (unlocks)
		drop_own_claim(file, req, other ? CLAIM_BYTE : kind, owner);
	else
		take_claim(file, req, kind, owner,
		           lock->l_type == F_RDLCK ? LC_SHARED : LC_EXCLUSIVE, wait);
}

/* ---- asking who is in the way ---- */

static const struct flock_claim *find_by_fcntl(const struct node *node, uint64_t owner)
{
	const struct flock_claim *whole = flock_claim_find(node, CLAIM_FCNTL, owner);

	return whole ? whole : flock_claim_find(node, CLAIM_BYTE, owner);
}

static bool is_entry_of(const char *znode, const struct lc_entry *entry)
{
	return znode && strcmp(znode, entry->znode) == 0;
}

static const char *znode_of(const struct hold *hold)
{
	return hold ? lc_znode(hold->taker) : NULL;
}

/* The claim that has this entry of the queue; NULL: it is another mount's or another lock file's.
 */
static const struct flock_claim *claim_of_entry(const struct node *node,
                                                const struct lc_entry *entry)
{
	const struct flock_claim *claim;

	DL_FOREACH(node->claims, claim)
		if (is_entry_of(znode_of(claim->base.hold), entry))
			return claim;
	return NULL;
}

/* The first entry, except those two, that a taker of that mode would have to wait for. */
static const struct lc_entry *in_the_way(const struct lc_listing *listing, enum lc_mode mode,
                                         unsigned slots, const char *own, const char *companion)
{
	const struct lc_entry *first = NULL;
	unsigned alike = 0;

	for (size_t i = 0; i < listing->entry_count; i++) {
		const struct lc_entry *entry = &listing->entries[i];

		if (mode == LC_SHARED && entry->mode == LC_SHARED && !entry->incompatible)
			continue;
		if (is_entry_of(own, entry) || is_entry_of(companion, entry))
			continue;
		if (!first)
			first = entry;
		/* The lock may have several slots, and one of them may be left. */
		if (mode == LC_SHARED || entry->mode == LC_SHARED || !entry->of_mount ||
		    ++alike >= slots)
			return first;
	}
	return NULL;
}

static void describe_lock(const struct frontend *front, const struct node *node,
                          const struct lc_entry *entry, enum lc_mode wanted, struct flock *ret_lock)
{
	const struct flock_claim *claim = claim_of_entry(node, entry);
	bool shared = entry->mode == LC_SHARED;
	/* The name of a host is cut: at that length it may be another one's. */
	bool whole = strlen(entry->host) < LC_HOST_MAX;
	bool here = claim || (entry->of_mount && entry->pid > 0 && whole &&
	                      strcmp(entry->host, lc_host(front->lc)) == 0);

	/* After exclusive fcntl locks are made shared, the entry still says exclusive. */
	if (claim && claim->id.kind != CLAIM_FLOCK && wanted == LC_EXCLUSIVE)
		shared = claim->mode == LC_SHARED;
	ret_lock->l_type = shared ? F_RDLCK : F_WRLCK;
	/* The kernel knows no process of that number, and says 0. */
	ret_lock->l_pid = here ? entry->pid : -1;
}

struct getlk {
	struct parked parked;
	struct process process;
	uint64_t owner;
	enum lc_mode mode;
	unsigned slots;
};

static void conflicts_listed(void *ctx, int err, const struct lc_listing *listing)
{
	const struct getlk *getlk = ctx;
	struct parked *parked = ctx;
	struct frontend *front = parked->front;
	struct node *node = parked->node;
	struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
	enum lc_mode mode = getlk->mode;
	const struct lc_entry *first;
	const struct hold *companion;
	const struct flock_claim *own;

	if (!unpark_succeeded(parked, err))
		return;
	own = find_by_fcntl(node, getlk->owner);
	companion = flock_claim_companion(node, CLAIM_FCNTL, &getlk->process);
	first = in_the_way(listing, mode, getlk->slots, znode_of(own ? own->base.hold : NULL),
	                   znode_of(companion));
	if (first)
		describe_lock(front, node, first, mode, &lock);
	reply_lock(parked->req, &lock);
	parked_free(parked);
}

/* The engine has told how many slots the lock has: goes on with the answer. */
static void slots_counted(void *ctx, int err, const struct lc_lock_info *info)
{
	struct getlk *getlk = ctx;
	struct parked *parked = ctx;

	if (!unpark_succeeded(parked, err))
		return;
	getlk->slots = info->slots;
	park_call(parked, lc_list(parked->front->lc, parked->node->lock, parked_uid(parked),
	                          conflicts_listed, parked, &parked->call));
}

/* The owner, or its process, has such a lock already. */
static bool has_already(const struct advisory *file, uint64_t owner, enum lc_mode mode,
                        const struct process *asker)
{
	const struct flock_claim *own = find_by_fcntl(file->lock_file.base.node, owner);
	const struct hold *hold =
		own ? own->base.hold
		    : flock_claim_companion(file->lock_file.base.node, CLAIM_FCNTL, asker);

	return hold && (hold->audit.mode == LC_EXCLUSIVE || mode == LC_SHARED) &&
	       lc_holds(hold->taker);
}

static void advisory_getlk(struct open_file *base, struct request *req, uint64_t owner,
                           const struct flock *lock)
{
	struct advisory *file = advisory_of(base);
	enum lc_mode mode = lock->l_type == F_RDLCK ? LC_SHARED : LC_EXCLUSIVE;
	struct flock free_lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
	struct parked *parked;
	enum claim_kind kind;
	struct process asker;
	struct getlk *getlk;

	if (!kind_of_range(lock, &kind)) {
		reply_err(req, EINVAL);
		return;
	}
	process_identify((pid_t)req->in.pid, &asker);
	if (has_already(file, owner, mode, &asker)) {
		reply_lock(req, &free_lock);
		return;
	}
	getlk = park(base->front, req, base->node, sizeof(*getlk));
	if (!getlk)
		return;
	parked = &getlk->parked;
	getlk->process = asker;
	getlk->owner = owner;
	getlk->mode = mode;
	if (mode == LC_SHARED) /* for a shared lock the number of slots does not count */
		park_call(parked, lc_list(base->front->lc, base->node->lock, parked_uid(parked),
		                          conflicts_listed, parked, &parked->call));
	else
		park_call(parked, lc_stat(base->front->lc, base->node->lock, parked_uid(parked),
		                          slots_counted, parked, &parked->call));
}

/* ---- the descriptor ---- */

/* The claim by which the asking process has the lock with this file; NULL. A lock by fcntl
 * belongs to the process with every open file of the lock file. */
static struct flock_claim *find_claim(const struct advisory *file, pid_t thread)
{
	struct flock_claim *claim, *found = NULL;
	pid_t process = 0;

	DL_FOREACH(file->lock_file.base.node->claims, claim) {
		if (is_by(claim, file) && claim->id.kind == CLAIM_FLOCK)
			return claim;
		if (claim->id.kind == CLAIM_FLOCK)
			continue;
		if (!process)
			process = process_of(thread);
		if (claim->process.pid == process && process > 0)
			found = claim;
		else if (is_by(claim, file) && !found)
			found = claim;
	}
	return found;
}

static struct claim *find_base(struct open_file *file, struct request *req)
{
	struct flock_claim *claim = find_claim(advisory_of(file), (pid_t)req->in.pid);

	return claim ? &claim->base : NULL;
}

static int keep_reason(struct open_file *base, const char *data, size_t size)
{
	struct advisory *file = advisory_of(base);

	if (size > ADVISORY_REASON_MAX)
		return -EFBIG;
	memcpy(file->reason, data, size);
	file->reason[size] = '\0';
	return 0;
}

/* ---- the kind ---- */

static void advisory_save_load(struct codec *codec, struct open_file *base)
{
	struct advisory *file = advisory_of(base);

	process_save_load(codec, &file->opener);
	file->opener.fd =
		process_life_save_load(codec, file->opener.pid, budget_uid(file), file->opener.fd);
	file->slot = guardian_slot_save_load(codec, base->front->guardian, file->slot);
	open_lock_file_save_load(codec, base);
	codec_copy(codec, file->reason, sizeof(file->reason));
}

static const struct lock_file_ops advisory_ops = {
	.file =
		{
			.size = sizeof(struct advisory),
			.kind_of_record = RECORD_ADVISORY,
			.described = true,
			.read = lock_file_read,
			.write = lock_file_write,
			.fsync = lock_file_fsync,
			.poll = lock_file_poll,
			.flush = advisory_flush,
			.flock = advisory_flock,
			.getlk = advisory_getlk,
			.setlk = advisory_setlk,
			.close = advisory_close,
			.save_load = advisory_save_load,
		},
	.claim = find_base,
	.keep_reason = keep_reason,
};

void advisory_record_save_load(struct codec *codec, void *front, struct record *record)
{
	open_file_record_save_load(codec, front, &advisory_ops.file, record);
}
