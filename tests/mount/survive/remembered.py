#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A lock that was seen keeps its inode number. It is remembered while the ensemble is away,
also when the kernel has forgotten it: its lock files can be opened and wait. A lock that is known to
be gone is not remembered."""

import ctypes
import errno
import os

from harness import check, check_equal, check_errno, libc, run, until

MS_REMOUNT, MS_NOSUID, MS_NODEV, MS_NOEXEC = 32, 2, 4, 8


def forget(mount):
    """Have the kernel drop every name that nobody uses."""
    flags = MS_REMOUNT | MS_NOSUID | MS_NODEV | MS_NOEXEC
    check_equal(libc.mount(b'none', mount.directory.encode(), None, flags, None), 0,
                f'remount: {os.strerror(ctypes.get_errno())}')


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    a.allow('.')
    b.allow('.')
    for lock in ('team', 'team/build', 'removed', 'vanished'):
        a.mkdir(lock)
    numbers = [os.stat(a.path(lock)).st_ino for lock in ('team', 'team/build')]
    os.rmdir(a.path('removed'))
    os.rmdir(b.path('vanished'))
    until(lambda: not os.path.exists(a.path('vanished')), 'a sees that it is gone')
    forget(a)
    check_equal([os.stat(a.path(lock)).st_ino for lock in ('team', 'team/build')], numbers, 'inode numbers')

    forget(a)
    server.freeze()
    for lock in ('removed', 'vanished', 'never'):
        check_errno(errno.EHOSTUNREACH, os.open, a.path(lock, 'lock'), os.O_RDWR)
    waiter = a.take('team/build')
    check(not waiter.answered(3), 'it does not wait')
    server.thaw()
    waiter.held()


run(test)
