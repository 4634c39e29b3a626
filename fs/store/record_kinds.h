/* SPDX-License-Identifier: MIT
 *
 * record_kinds.h - the kinds of records of a mount: pure/records.h says how objects use them.
 */
#ifndef FS_RECORD_KINDS_H
#define FS_RECORD_KINDS_H

#include "lockcore.h"
#include "pure/records.h"

/* In the order in which they are read: each needs only those before it. The engine's are read
 * behind the mount's. The numbers stand in records, so they stay. */
enum record_kind {
	RECORD_NONE, /* it has no record */
	RECORD_MOUNT = 1,
	RECORD_NODE = LC_KINDS_END,
	RECORD_CONTENT,
	RECORD_REQUEST,
	RECORD_ADVISORY,
	RECORD_TEXT,
	RECORD_LOCKS,
	RECORD_DIR,
	RECORD_HOLD,
	RECORD_HISTORY,
	RECORD_KINDS,
};

#endif
