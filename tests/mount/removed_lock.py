#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A lock is removed while a taker waits for it: ENOENT (rule 8)."""

import errno

from harness import run, until


def test(case):
    server = case.server()
    mount = case.mount(server)
    mount.allow('build')
    mount.mkdir('build')
    server.zk.create('/locks/build/x-', ephemeral=True, sequence=True)
    waiters = []
    for _ in range(2):
        waiters.append(mount.take('build'))
        until(lambda: len(server.entries('build')) == 1 + len(waiters), 'the waiter queues')
    server.zk.delete(*['/locks/build/' + name for name in server.entries('build')], '/locks/build')
    for waiter in waiters:
        waiter.refused(errno.ENOENT)
    mount.take('build').refused(errno.ENOENT)

    # Made again it is a lock like any other.
    mount.mkdir('build')
    mount.take('build').held()


run(test)
