/* SPDX-License-Identifier: MIT
 *
 * silent_libfuse.c - preloaded into a daemon, it is a libfuse that writes its answers in a way that
 * the daemon does not know: none of them comes.
 */
struct fuse_session;
struct fuse_buf;

void fuse_session_process_buf(struct fuse_session *session, const struct fuse_buf *buffer);

void fuse_session_process_buf(struct fuse_session *session, const struct fuse_buf *buffer)
{
	(void)session;
	(void)buffer;
}
