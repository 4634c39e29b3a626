#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Inside a lock nothing can be made, removed, renamed or linked: EPERM, and ENOENT for a lock file
that does not exist. Locks cannot be renamed either. Times cannot be set, so lock libraries that
rely on a directory's mtime fail, and do not believe that they have the lock."""

import errno
import os
import time

from harness import ALICE, check, check_equal, check_errno, check_user, command, run


def keep_times(mount, entry):
    os.chmod(mount.path('other'), 0o777)
    for name in ('', 'other', 'build/lock', 'build/flock', 'build/value', 'build/slots', 'build/holder', 'build/queue',
                 'build/queue/' + entry, '.zklockfs/status'):
        path = mount.path(name)
        before = os.stat(path)
        for times in (None, (1, 1), (2_000_000_000, 1)):
            check_errno(errno.EPERM, os.utime, path, times)
        after = os.stat(path)
        if name.startswith('.'):   # it is always of now
            check(before.st_mtime <= after.st_mtime <= time.time(), name)
        else:
            check_equal((after.st_mtime_ns, after.st_atime_ns), (before.st_mtime_ns, before.st_atime_ns), name)
    check_user(errno.EPERM, ALICE, os.utime, mount.path('other'))
    for name in ('build', 'build/slots'):
        fd = os.open(mount.path(name), os.O_RDONLY | os.O_DIRECTORY * (name == 'build'))
        check_errno(errno.EPERM, os.utime, fd)
        os.close(fd)
    check(command(['touch', mount.path('other')])[0] != 0, 'touch says that it has set the time')
    # Calls that set a time as a side effect succeed.
    os.truncate(mount.path('build', 'slots'), 0)
    with open(mount.path('build', 'slots'), 'w', encoding='ascii') as file:
        file.write('1')


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
    for name in ('build/lock', 'build/try', 'build/holder', '.zklockfs/status'):
        check_errno(errno.EPERM, os.unlink, path(name))
    for name in ('build/queue', '.zklockfs'):
        check_errno(errno.EPERM, os.rmdir, path(name))
    check_errno(errno.EPERM, os.rename, path('build', 'sub'), path('other', 'sub'))
    check_errno(errno.EPERM, os.rename, path('build', 'lock'), path('build', 'holder'))

    keep_times(mount, entry)

    check_equal(mount.queue('build'), [entry], 'the queue')
    check_equal(sorted(mount.locks()), ['build', 'other'], 'the locks')
    check(holder.token() > 0, 'the holder was disturbed')


run(test)
