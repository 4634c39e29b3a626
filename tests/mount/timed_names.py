#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""lock@TIME waits at most that long, then ETIMEDOUT; lock@0s is a try; shared@TIME
and reentrant@TIME likewise; a name that is no time is EINVAL when it is opened."""

import errno
import os

from harness import Stopwatch, check_errno, run, until

MALFORMED = ('lock@', 'lock@30', 'lock@s', 'lock@x', 'lock@1.5s', 'lock@1h30m', 'lock@-1s', 'lock@+1s',
             'lock@ 1s', 'lock@1s ', 'lock@1S', 'lock@0x1s', 'lock@1d', 'lock@99999999999999999999s',
             'lock@9223372036854775807h', 'try@5s')
TIMED = ('lock', 'shared', 'reentrant')


def test(case):
    server = case.server()
    mount = case.mount(server)
    mount.mkdir('build')

    for name in MALFORMED + tuple(door + name[4:] for door in TIMED[1:] for name in MALFORMED[:-1]):
        check_errno(errno.EINVAL, os.open, mount.path('build', name), os.O_RDWR)
        check_errno(errno.EINVAL, os.open, mount.path('build', name), os.O_RDWR | os.O_CREAT)

    for door in TIMED:
        for time in ('0s', '0ms', '300ms', '30s', '5m', '1h'):
            mount.take('build', f'{door}@{time}').held().release()

    holder = mount.take('build').held()
    for door in TIMED:
        watch = Stopwatch()
        check_errno(errno.ETIMEDOUT, os.open, mount.path('build', door + '@400ms'), os.O_RDWR)
        watch.check(0.4, 3, door + '@400ms')
        watch = Stopwatch()
        check_errno(errno.ETIMEDOUT, os.open, mount.path('build', door + '@1s'), os.O_RDWR)
        watch.check(1, 4, door + '@1s')
        watch = Stopwatch()
        check_errno(errno.EAGAIN, os.open, mount.path('build', door + '@0s'), os.O_RDWR)
        watch.check(0, 2, door + '@0s')
    until(lambda: len(server.entries('build')) == 1, 'who has given up stands in no queue')

    patient = mount.take('build', 'lock@30s')
    until(lambda: len(server.entries('build')) == 2, 'the patient one queues')
    holder.release()
    patient.held()


run(test)
