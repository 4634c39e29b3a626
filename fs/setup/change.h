/* SPDX-License-Identifier: MIT
 *
 * change.h - `zklockfs --reload`: a mount goes on with the program of today and with other options.
 * The daemon tells its options in .zklockfs/options, and there it is told new ones: as arguments
 * (host/args.h), in one write(2). The text says how that went.
 */
#ifndef FS_CHANGE_H
#define FS_CHANGE_H

#include "setup/options.h"

/* Asks the mount to go on with these options, and waits. Returns the status to exit with. */
int change_ask(const struct options *options);

#endif
