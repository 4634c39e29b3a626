#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A kernel that aborts mounts whose requests wait too long (fs.fuse.max_request_timeout): a
wait in flock(2) or fcntl(2) ends before that with ETIMEDOUT. Programs would not understand an
EINTR without a signal."""

import errno
import os
from fcntl import F_WRLCK, LOCK_EX, LOCK_UN

from harness import Stopwatch, check, check_equal, command, run, until
from locker import Locker


def test(case):
    server = case.server()
    # The daemon sees a limit, in this mount namespace only, whether the kernel has one or not.
    os.makedirs(case.directory + '/limits/fuse')
    with open(case.directory + '/limits/fuse/max_request_timeout', 'w', encoding='ascii') as file:
        file.write('15\n')
    check_equal(command(['mount', '--bind', case.directory + '/limits', '/proc/sys/fs'])[0], 0, 'a limit')
    mount = case.mount(server)
    mount.allow('max_request_timeout')
    mount.mkdir('build')
    holder, p, q = (Locker(mount, 'build') for _ in range(3))
    fds = [locker.do('open') for locker in (holder, p, q)]
    holder.do('flock', fds[0], LOCK_EX)
    watch = Stopwatch()
    p.ask('raw_flock', fds[1], LOCK_EX)
    q.ask('raw_setlkw', fds[2], F_WRLCK)
    lock_file = mount.take('build')
    until(lambda: len(server.entries('build')) == 4, 'all wait')
    p.fails(errno.ETIMEDOUT)
    q.fails(errno.ETIMEDOUT)
    lock_file.refused(errno.EINTR)
    watch.check(5, 14, 'the waits')
    # No place is kept after this error.
    holder.do('flock', fds[0], LOCK_UN)
    check_equal(command(['flock', '-w', '5', mount.path('build', 'flock'), 'true'])[0], 0, 'flock(1)')
    p.do('flock', fds[1], LOCK_EX)
    check(int(p.do('read', fds[1], 64)) > 0, 'held')


run(test)
