/* SPDX-License-Identifier: MIT
 *
 * fexecve.c - for programs that the kernel executes by an emulation (binfmt_misc). It executes none
 * of these by a descriptor that is closed by the call: ENOENT. The supervisor does so to start a
 * daemon again; here the descriptor stays open. Linked with the program.
 */
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

int fexecve(int fd, char *const argv[], char *const envp[])
{
	(void)fcntl(fd, F_SETFD, 0);
	return (int)syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
}
