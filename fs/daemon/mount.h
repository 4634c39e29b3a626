/* SPDX-License-Identifier: MIT
 *
 * mount.h - the mounted filesystem, from the ready session until it is unmounted.
 */
#ifndef FS_MOUNT_H
#define FS_MOUNT_H

#include "daemon/loop.h"

/* Mounts. False: it is said why not. */
bool mount_begin(struct options *options, struct loop *loop);
/* Instead of mount_begin(): goes on with the kernel's connection and all requests that wait. If
 * that fails, codec->give_up() ends this process and leaves all as it was. */
void mount_adopt(struct options *options, struct loop *loop, const struct codec *codec);
/* Serves until it is unmounted. Returns the exit status. */
int mount_serve(struct loop *loop);

#endif
