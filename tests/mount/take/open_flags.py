#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A lock file opened for reading only is EACCES and takes nothing, for root too. O_TRUNC, O_APPEND
and O_CREAT change nothing. A lock file has size 0."""

import errno
import os

from harness import check_equal, check_errno, run, until


def test(case):
    server = case.server()
    mount = case.mount(server)
    mount.mkdir('build')
    for name in ('lock', 'shared', 'try', 'reentrant', 'lock@5s', 'shared@5s', 'reentrant@5s'):
        check_errno(errno.EACCES, os.open, mount.path('build', name), os.O_RDONLY)
        check_errno(errno.EACCES, os.open, mount.path('build', name), os.O_RDONLY | os.O_NONBLOCK)
    check_equal(server.entries('build'), [], 'the queue')

    for access in (os.O_RDWR, os.O_WRONLY):
        for more in (0, os.O_TRUNC, os.O_APPEND, os.O_CREAT, os.O_CREAT | os.O_TRUNC | os.O_APPEND):
            fd = os.open(mount.path('build', 'lock'), access | more)
            check_equal(len(server.entries('build')), 1, 'the queue')
            check_equal(os.fstat(fd).st_size, 0, 'size')
            os.close(fd)
            until(lambda: not server.entries('build'), 'the lock is free')
    check_errno(errno.EEXIST, os.open, mount.path('build', 'lock'), os.O_RDWR | os.O_CREAT | os.O_EXCL)


run(test)
