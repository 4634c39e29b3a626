/* SPDX-License-Identifier: MIT
 *
 * mount_records.h - all that another process needs to go on with this mount: the kinds of records
 * (pure/records.h), the order in which they are read, and the records of the mount as a whole.
 *
 * Records are written at the end of each turn, before any request or answer of the turn leaves the
 * process (store.h). So a process that dies has told others of nothing that is not in its records.
 */
#ifndef FS_MOUNT_RECORDS_H
#define FS_MOUNT_RECORDS_H

#include "request/frontend.h"
#include "setup/servers.h"

struct store;

struct mount_records {
	struct frontend *front;
	struct servers *servers;
	/* The mount as mountinfo(5) has it. */
	const char *mountpoint;
	int mount_id;
	char device[32];
	struct contact *contact;
	/* The arguments that the mount runs with: host/args.h. */
	const char *args;
	size_t args_len;
	int64_t stopped_us; /* a reload: when the old program stopped serving */
	char from[32];      /* the version that has written these records */
	/* Used in mount_records.c alone. */
	int64_t looked_ns; /* when all parts were last written, also those that seldom change */
};

/* Begins the records of a mount in this store. */
void mount_records_begin(struct frontend *front, struct store *store);
/* Writes records of the changes of this turn. Some parts of the mount change seldom, or with time:
 * they are written once a second, or if `all`. -ENOMEM, or another errno: no process can go on
 * with this mount. */
int mount_records_write(struct mount_records *mount_records, bool all);
/* Whether something has changed since the last write. */
bool mount_records_is_behind(const struct mount_records *mount_records);
/* In test builds (-DZKLOCKFS_CHECK_RECORDS): aborts if an object has changed and was not touched.
 * If there are many objects, not in every turn. */
#ifdef ZKLOCKFS_CHECK_RECORDS
void mount_records_check(struct mount_records *mount_records);
#else
static inline void mount_records_check(struct mount_records *mount_records)
{
	(void)mount_records;
}
#endif
/* Sets whether an exec passes on every descriptor that the records name. 0 or -errno. */
int mount_records_pass(struct mount_records *mount_records, bool pass);

/* Why records are refused, with the record that was read, and its version. Good until the next
 * call. */
const char *mount_records_explain(const struct codec *codec, const char *why);
/* First the mount point, and the arguments that the mount runs with (without any: they are not
 * known), which are good as long as the store; then what else is of the mount as a whole; and when
 * the engine has read its records, all objects. `codec->loads` and its other fields were set by the
 * caller. */
void mount_records_read_mount(struct codec *codec, struct store *store,
                              struct mount_records *mount_records);
void mount_records_read_parts(struct mount_records *mount_records, struct codec *codec);
void mount_records_read_objects(struct mount_records *mount_records, struct codec *codec);

#endif
