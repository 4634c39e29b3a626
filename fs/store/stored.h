/* SPDX-License-Identifier: MIT
 *
 * stored.h - the kinds of records in the book of a mount: pure/book.h says how objects use it.
 */
#ifndef FS_STORED_H
#define FS_STORED_H

#include "lockcore.h"
#include "pure/book.h"

/* In the order in which they are read: each needs only those before it. The engine's are read
 * behind the mount's. The numbers stand in records, so they stay. */
enum stored_kind {
	STORED_NOT, /* it has no record */
	STORED_MOUNT = 1,
	STORED_NODE = LC_KINDS_END,
	STORED_CONTENT,
	STORED_REQUEST,
	STORED_ADVISORY,
	STORED_TEXT,
	STORED_LOCKS,
	STORED_DIR,
	STORED_HOLD,
	STORED_HISTORY,
	STORED_KINDS,
};

#endif
