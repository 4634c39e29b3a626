/* SPDX-License-Identifier: MIT
 *
 * mount.h - where the locks are mounted, and what their names are below that.
 *
 * A mount or lock that cannot be found ends the program, with a line that says why and a status of
 * sysexits.h: 64 wrong use, 66 no such lock, 69 nothing is mounted, or its daemon is dead.
 */
#ifndef ZKLOCK_MOUNT_H
#define ZKLOCK_MOUNT_H

#include "clean.h"
#include "place.h"

#include <sys/stat.h>

#define LOCK_NAME_MAX 1023

struct mount {
	char *path;                /* as it was named */
	char *real;                /* as places_resolve() says it */
	const struct place *place; /* in which that lies */
	struct places places;
	int dir; /* O_PATH */
};

/* `given` is what -m says, or NULL: then $ZKLOCKFS, or the mount in which the absolute path
 * `lock` lies, or the only one there is. `lock` may be NULL. */
void mount_find(struct mount *mount, const char *given, const char *lock);
/* The same for those who look. With 69 if the daemon does not answer, as one that was stopped. */
void mount_find_answering(struct mount *mount, const char *given, const char *lock);
/* A lock as the user names it, as a path below the mount; to be freed. */
char *mount_lock_name(const struct mount *mount, const char *word);
/* The whole path of a lock, or of what is in it, as a word for a shell: clean_add_word(). Returns
 * `word`. */
const char *mount_word(const struct mount *mount, const char *name, char word[CLEAN_WORDS_MAX]);
/* Opens a file of the mount as openat(2) does, close-on-exec. -1 and errno: EXDEV where another
 * filesystem is mounted over the file, or over a directory on the way, see mount_covered(). */
int mount_open(const struct mount *mount, const char *lock, const char *file, int flags);
/* What of the lock, or, with "", of the mount, is hidden by which filesystem, and what to do: for
 * people. Returns `text`. */
const char *mount_covered(const struct mount *mount, const char *lock, char text[PLACE_COVER_MAX]);
/* Like stat(2), and like access(2) with W_OK for the effective user, of what mount_open() opens. */
int mount_stat(const struct mount *mount, const char *lock, const char *file,
               struct stat *ret_stat);
int mount_may_write(const struct mount *mount, const char *lock, const char *file);
/* Takes an entry of the queue away from its taker. By setxattr(2): an open would wait for a lease
 * that the taker may have on its file (F_SETLEASE). -1 and errno. */
int mount_evict(const struct mount *mount, const char *lock, const char *entry);
/* All of a file, 16 MiB at most, with a NUL behind it; to be freed. NULL and errno. */
char *mount_read(const struct mount *mount, const char *lock, const char *file);

#endif
