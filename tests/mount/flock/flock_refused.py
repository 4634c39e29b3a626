#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""flock(2) and fcntl(2) on a lock file other than `flock` would lock this host alone: EINVAL, also
for flock(1) on the wrong lock file."""

import errno
import fcntl
import os
import struct

from harness import check, check_errno, command, run


def test(case):
    mount = case.mount(case.server())
    mount.mkdir('build')
    lock_file = os.open(mount.path('build', 'lock'), os.O_RDWR)
    reader = os.open(mount.path('build', 'holder'), os.O_RDONLY)
    whole = struct.pack('hhqqi', fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    for nowait in (0, fcntl.LOCK_NB):
        for fd in (lock_file, reader):
            check_errno(errno.EINVAL, fcntl.flock, fd, fcntl.LOCK_EX | nowait)
            check_errno(errno.EINVAL, fcntl.flock, fd, fcntl.LOCK_SH | nowait)
            check_errno(errno.EINVAL, fcntl.lockf, fd, fcntl.LOCK_SH | nowait if fd == reader
                        else fcntl.LOCK_EX | nowait)
        # Unlocking succeeds: the file has no lock of that kind.
        for fd in (lock_file, reader):
            fcntl.flock(fd, fcntl.LOCK_UN | nowait)
            fcntl.lockf(fd, fcntl.LOCK_UN)
        ofd_setlk = 37 if nowait else 38
        check_errno(errno.EINVAL, fcntl.fcntl, lock_file, ofd_setlk, whole)
    status, _, err = command(['flock', '-n', mount.path('build', 'try'), 'true'])
    check(status != 0 and err, 'flock(1) on a lock file')


run(test)
