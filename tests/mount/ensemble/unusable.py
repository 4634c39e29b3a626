#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A mount meets servers that it cannot work with. It says why, removes its mount point and ends
with status 32, so that systemd can start it again: at once when no lock file is open, otherwise
after a moment in which holders can see that they have lost."""

import errno

from harness import Stopwatch, check, check_errno, errno_of, libc, mounted, run, until

SHORT = 'grants a session of|connection lost|the lock is lost'


def test(case):
    server = case.server()
    idle, busy = case.mount(server, 'idle'), case.mount(server, 'busy', '6s', options=['on_lost=none'])
    stopped = case.mount(server, 'stopped', '6s', options=['on_lost=kill'])
    for lock in ('one', 'two'):
        idle.mkdir(lock)
    staying, killed = busy.take('one').held(), stopped.take('two').held()
    waiter = busy.take('two')
    until(lambda: len(server.entries('two')) == 2, 'it queues')
    for mount in (idle, busy, stopped):
        mount.allow(SHORT)

    server.stop()
    server.session_ms = 4000   # the lease needs 5 s at least
    server.start()
    watch = Stopwatch()
    idle.check_end(status=32)
    idle.said('4000 ms')
    watch.check(0, 5, 'the idle one ends')
    waiter.refused(errno.ESHUTDOWN)
    killed.gone()
    stopped.check_end(status=32)

    check_errno(errno.EIO, staying.do, 'pread', 64, 0)
    until(lambda: mounted(busy.directory) is None, 'the mount point is free')
    busy.check_end(status=32)
    # A process that asks servers for the daemon may have the connection for a moment longer.
    check(errno_of(staying.do, 'pread', 64, 0) in (errno.ENOTCONN, errno.ECONNABORTED), 'the descriptor is good for nothing')

    # A new start, as systemd would make it, when the servers have been repaired.
    server.stop()
    server.session_ms = 60000
    server.start()
    again = case.mount(server, 'again')
    again.take('one').held()
    check(libc.umount2(busy.directory.encode(), 0) == -1, 'something was left mounted')


run(test)
