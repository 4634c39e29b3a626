/* SPDX-License-Identifier: MIT
 *
 * ledger.h - all that another process needs to go on with this mount: the kinds of records
 * (pure/book.h), the order in which they are read, and the records of the mount as a whole.
 *
 * Records are written at the end of each turn, before any request or answer of the turn leaves the
 * process (store.h). So a process that dies has told others of nothing that is not in its records.
 */
#ifndef FS_LEDGER_H
#define FS_LEDGER_H

#include "request/frontend.h"
#include "setup/servers.h"

struct store;

struct ledger {
	struct frontend *front;
	struct servers *servers;
	/* The mount as mountinfo(5) has it. */
	const char *mountpoint;
	int mount_id;
	char device[32];
	struct contact *contact;
	int64_t stopped_us; /* a reload: when the old program stopped serving */
	char from[32];      /* the version that has written these records */
	/* Used in ledger.c alone. */
	int64_t looked_ns; /* when all parts were last written, also those that seldom change */
};

/* The book of a mount, whose records are in that store. */
void ledger_begin(struct frontend *front, struct store *store);
/* Writes records of the changes of this turn. Some parts of the mount change seldom, or with time:
 * they are written once a second, or if `all`. -ENOMEM, or another errno: no process can go on
 * with this mount. */
int ledger_write(struct ledger *ledger, bool all);
/* Something has changed since. */
bool ledger_is_behind(const struct ledger *ledger);
/* In test builds (-DZKLOCKFS_CHECK_LEDGER): aborts if an object has changed and was not touched. If
 * there are many objects, not in every turn. */
#ifdef ZKLOCKFS_CHECK_LEDGER
void ledger_check(struct ledger *ledger);
#else
static inline void ledger_check(struct ledger *ledger)
{
	(void)ledger;
}
#endif
/* Whether an exec passes on every descriptor that the records name. -errno. */
int ledger_pass(struct ledger *ledger, bool pass);

/* Why records are refused, with the record that was read, and its version. Good until the next
 * call. */
const char *ledger_explain(const struct carry *carry, const char *why);
/* First the mount point, which is good as long as the store; then what else is of the mount as a
 * whole; and when the engine has read its records, all objects. `carry->loads` and its other fields
 * were set by the caller. */
void ledger_read_mount(struct carry *carry, struct store *store, const char **ret_mountpoint);
void ledger_read_parts(struct ledger *ledger, struct carry *carry);
void ledger_read_objects(struct ledger *ledger, struct carry *carry);

#endif
