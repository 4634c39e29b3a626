/* SPDX-License-Identifier: MIT
 *
 * silent_libfuse.c - preloaded into a daemon, it is a libfuse whose answers do not get out, because
 * a later version may write them in another way.
 */
#include <sys/uio.h>

ssize_t writev(int fd, const struct iovec *iov, int count)
{
	ssize_t len = 0;

	(void)fd;
	for (int i = 0; i < count; i++)
		len += (ssize_t)iov[i].iov_len;
	return len;
}
