/* SPDX-License-Identifier: MIT
 *
 * place.h - which mounts of zklockfs there are, and in which of them a path lies.
 *
 * A user may mount a filesystem of their own over a directory of a mount (fusermount3), give it the
 * type fuse.zklockfs, and put symbolic links into it. So no path is followed by the kernel beyond
 * the first directory that is a mount of zklockfs.
 */
#ifndef ZKLOCK_PLACE_H
#define ZKLOCK_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct place {
	char *path;
	dev_t device;
	bool whole;   /* not bound from a directory of the mount */
	bool trusted; /* mounted by root or by this user: to be found without being named */
};

struct places {
	struct place *list;
	size_t count;
};

/* All of them, without those that another user has mounted over a part of another one. Ends the
 * program with 69 if they cannot be read. */
void places_read(struct places *ret_places);
void places_free(struct places *places);
/* The one that is trusted. Ends the program with 69 if there is none, or if another one has
 * settings and is not mounted; with 64 if there are several. */
const struct place *places_only(const struct places *places);
/* The absolute path, without symbolic links as far as into the first place; to be freed. */
char *places_resolve(const struct places *places, const char *path);
/* The innermost in which a resolved path lies; NULL: it lies in none. */
const struct place *places_around(const struct places *places, const char *path);
/* Writes what ends a line that says that nothing is mounted around a resolved path, or anywhere
 * (NULL): how the unit that has settings for it is started. Returns `text`; "": none has, or
 * several. */
#define PLACE_UNIT_MAX 400
const char *place_unit(const char *path, char text[PLACE_UNIT_MAX]);
/* What of a path is behind that directory; NULL: it does not lie there. */
const char *place_skip(const char *path, const char *directory);

#define PLACE_COVER_MAX 600 /* bytes of text */
/* Whose filesystem is mounted below `top` and hides `path`, or a part of it, and what to do: for
 * people. Both are resolved. Returns `text`. */
const char *place_cover(const char *top, const char *path, char text[PLACE_COVER_MAX]);

#endif
