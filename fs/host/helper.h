/* SPDX-License-Identifier: MIT
 *
 * helper.h - children of the daemon that do what the loop must not wait for.
 */
#ifndef FS_HELPER_H
#define FS_HELPER_H

#include <stdbool.h>
#include <stddef.h>

/* In a process of its own, which answers by `fd`. `number`: the place of the word in its list. */
typedef void helper_work_fn(int fd, size_t number, char *word, const void *ctx);

/* Starts a process that has `work` done for each word of the list "a,b,c", each in a process of its
 * own, so that a slow one keeps back no other. All end with the daemon. They have no descriptor but
 * the one by which they answer: a copy of the mount's device, of a connection, or of the pipe of
 * whoever mounts would keep it open. `name`: of the processes; NULL: as the daemon. 0, and *ret_fd,
 * which is read without waiting; or -errno. The caller reaps. */
int helper_start(const char *name, const char *list, helper_work_fn *work, const void *ctx,
                 int *ret_fd);
/* Closes all descriptors from 3 on but `fd`, which becomes 3, close-on-exec. Returns it; -1:
 * errno. */
int helper_keep_only(int fd);
/* The next exec closes all descriptors from 3 on. 0; or -errno: some may stay. */
int helper_close_by_exec(void);
/* Standard input, output and error are /dev/null from now on. */
void helper_let_go(void);

#endif
