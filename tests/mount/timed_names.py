#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""lock@TIME waits at most that long, then ETIMEDOUT; lock@0s is a try; a name
that is no time is EINVAL when it is opened."""

import errno
import os

from harness import Stopwatch, check_errno, run, until

MALFORMED = ('lock@', 'lock@30', 'lock@s', 'lock@x', 'lock@1.5s', 'lock@1h30m', 'lock@-1s', 'lock@+1s',
             'lock@ 1s', 'lock@1s ', 'lock@1S', 'lock@0x1s', 'lock@1d', 'lock@99999999999999999999s',
             'lock@9223372036854775807h', 'try@5s')


def test(case):
    server = case.server()
    mount = case.mount(server)
    mount.mkdir('build')

    for name in MALFORMED:
        check_errno(errno.EINVAL, os.open, mount.path('build', name), os.O_RDWR)
        check_errno(errno.EINVAL, os.open, mount.path('build', name), os.O_RDWR | os.O_CREAT)

    for name in ('lock@0s', 'lock@0ms', 'lock@300ms', 'lock@30s', 'lock@5m', 'lock@1h'):
        mount.take('build', name).held().release()

    holder = mount.take('build').held()
    watch = Stopwatch()
    check_errno(errno.ETIMEDOUT, os.open, mount.path('build', 'lock@400ms'), os.O_RDWR)
    watch.check(0.4, 3, 'lock@400ms')
    watch = Stopwatch()
    check_errno(errno.ETIMEDOUT, os.open, mount.path('build', 'lock@1s'), os.O_RDWR)
    watch.check(1, 4, 'lock@1s')
    watch = Stopwatch()
    check_errno(errno.EAGAIN, os.open, mount.path('build', 'lock@0s'), os.O_RDWR)
    watch.check(0, 2, 'lock@0s')
    until(lambda: len(server.entries('build')) == 1, 'who has given up stands in no queue')

    patient = mount.take('build', 'lock@30s')
    until(lambda: len(server.entries('build')) == 2, 'the patient one queues')
    holder.release()
    patient.held()


run(test)
