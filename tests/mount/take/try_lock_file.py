#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`try`, and any lock file with O_NONBLOCK (rule 14): the lock at once, or EAGAIN, on any mount. A try
that fails disturbs no other taker."""

import errno
import os

from harness import Stopwatch, check_equal, check_errno, run, until


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    a.mkdir('build')
    ways = (('try', os.O_RDWR), ('try', os.O_WRONLY), ('lock', os.O_RDWR | os.O_NONBLOCK),
            ('lock@30s', os.O_RDWR | os.O_NONBLOCK))

    for name, flags in ways:
        fd = os.open(a.path('build', name), flags)
        for mount in (a, b):
            for other, other_flags in ways:
                watch = Stopwatch()
                check_errno(errno.EAGAIN, os.open, mount.path('build', other), other_flags)
                watch.check(0, 2, f'{other} on {mount.host}')
        os.close(fd)
        until(lambda: not server.entries('build'), 'the lock is free')

    holder = a.take('build').held()
    waiter = b.take('build')
    until(lambda: len(server.entries('build')) == 2, 'the waiter queues')
    check_errno(errno.EAGAIN, os.open, a.path('build', 'try'), os.O_RDWR)
    holder.release()
    waiter.held()
    check_equal(len(server.entries('build')), 1, 'entries')


run(test)
