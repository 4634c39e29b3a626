#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Inside a lock nothing is made, removed, renamed or linked: EPERM, and ENOENT
for a door that is not there; locks themselves are not renamed either."""

import errno
import os

from harness import check, check_equal, check_errno, run


def test(case):
    mount = case.mount(case.server())
    for name in ('build', 'build/sub', 'other'):
        mount.mkdir(name)
    holder = mount.take('build').held()
    entry = mount.queue('build')[0]
    path = mount.path

    for directory in ('build', 'build/queue', '.zklockfs', ''):
        new = path(directory, 'new')
        for flags in (os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_RDONLY):
            check_errno(errno.EPERM, os.open, new, flags | os.O_CREAT)
        check_errno(errno.ENOENT, os.open, new, os.O_RDWR)
        check_errno(errno.EPERM, os.mknod, new)
        check_errno(errno.EPERM, os.mkfifo, new)
        check_errno(errno.EPERM, os.symlink, 'lock', new)
        check_errno(errno.EPERM, os.link, path('build', 'lock'), new)
        check_errno(errno.EPERM, os.rename, path('build', 'lock'), new)
        check_errno(errno.EPERM, os.rename, path('other'), new)
    for directory in ('build/queue', '.zklockfs'):
        check_errno(errno.EPERM, os.mkdir, path(directory, 'new'))
    for name in ('build/lock', 'build/try', 'build/holder', 'build/queue/' + entry, '.zklockfs/status'):
        check_errno(errno.EPERM, os.unlink, path(name))
    for name in ('build/queue', '.zklockfs'):
        check_errno(errno.EPERM, os.rmdir, path(name))
    check_errno(errno.EPERM, os.rename, path('build', 'sub'), path('other', 'sub'))
    check_errno(errno.EPERM, os.rename, path('build', 'lock'), path('build', 'holder'))

    check_equal(mount.queue('build'), [entry], 'the queue')
    check_equal(sorted(mount.locks()), ['build', 'other'], 'the locks')
    check(holder.token() > 0, 'the holder was disturbed')


run(test)
