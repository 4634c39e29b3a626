/* SPDX-License-Identifier: MIT
 *
 * ledger.h - all that another process needs to go on with this mount: the kinds of records
 * (kept.h), in which order they are read, and what is known of the mount as a whole.
 *
 * They are written at the end of each turn, before anything that the turn has brought about
 * leaves the process (store.h). So whoever dies leaves a state that others have seen the
 * consequences of, or none of them.
 */
#ifndef FS_LEDGER_H
#define FS_LEDGER_H

#include "face.h"
#include "servers.h"

struct ledger {
	struct face *face;
	struct servers *servers;
	/* The mount: where it is, and what mountinfo(5) says of it. */
	const char *mountpoint;
	int mount_id;
	char device[32];
	unsigned long sessions, losses; /* as the log has told them */
	int64_t stopped_us;             /* when nothing was served any more, for a reload */
	char from[32];                  /* the version that has written what was read */
	/* For what is read: the engine goes on with that. */
	void (*adopt_engine)(void *ctx, const void *bytes, size_t len);
	void *ctx;
	/* ledger.c's own. */
	struct carry carry;
	int64_t looked_ns; /* when what changes seldom, or by itself, was last written */
};

/* The records of what has changed in the turn. `all`: also of what changes seldom, or by itself.
 * -ENOMEM, or another errno: nobody can go on with this mount. */
int ledger_write(struct ledger *ledger, bool all);
/* Something was changed since. */
bool ledger_is_behind(const struct ledger *ledger);
/* In test builds (-DZKLOCKFS_CHECK_LEDGER): aborts if an object was changed and not touched. For a
 * thousand objects not after every turn. */
#ifdef ZKLOCKFS_CHECK_LEDGER
void ledger_check(struct ledger *ledger);
#else
static inline void ledger_check(struct ledger *ledger)
{
	(void)ledger;
}
#endif
/* Every descriptor that the records name is passed on by an exec; or no longer. -errno. */
int ledger_pass(struct ledger *ledger, bool pass);
void ledger_finish(struct ledger *ledger);

/* What carry->loads and all that was said of it before; `*ret_mountpoint` is good as long as the
 * store. Then all the rest. */
void ledger_read_mount(struct carry *carry, struct store *store, const char **ret_mountpoint);
void ledger_read(struct ledger *ledger, struct carry *carry);

#endif
