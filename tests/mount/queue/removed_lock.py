#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A lock is removed while takers wait for it: ENOENT (rule 8). A taker may hear that all
entries ahead are gone before it hears that its own entry is gone: then it has held and lost the lock
(rule 10)."""

import errno

from harness import check, run, until


def lost(taker):
    try:
        taker.token()
    except OSError as err:
        check(err.errno == errno.EIO, f'of a lock that is gone: {err}')
        return True
    return False


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
    for taker in waiters:
        code = taker.answer()
        check(code in (0, errno.ENOENT), f'a waiter of the lock that was removed: {code}')
        if code == 0:
            until(lambda taker=taker: lost(taker), 'it has lost the lock')
    mount.take('build').refused(errno.ENOENT)

    # Made again it is a lock like any other.
    mount.mkdir('build')
    mount.take('build').held()


run(test)
