#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A server is away for longer than the lease (rule 6): holders have lost their locks, EIO for
ever. Waiters go on waiting and get the lock in their old order when the server is back."""

import errno

from harness import check, check_errno, run, until


def lost(taker):
    for call in (('read', 64), ('pread', 64, 0), ('write', b'x'), ('fsync',)):
        check_errno(errno.EIO, taker.do, *call)


def test(case):
    server = case.server(tick_ms=500)
    mount = case.mount(server, session='6s')
    mount.allow('.')
    mount.mkdir('build')
    holder = mount.take('build').held()
    first = mount.take('build')
    until(lambda: len(server.entries('build')) == 2, 'the first waiter queues')
    second = mount.take('build')
    until(lambda: len(server.entries('build')) == 3, 'the second waiter queues')
    token = holder.token()

    def read_fails():
        try:
            holder.token()
        except OSError as err:
            return err.errno == errno.EIO
        return False

    def away(leave, come, holder, waiters):
        leave()
        until(read_fails, 'the lock is lost')
        lost(holder)
        check(not any(waiter.answered() for waiter in waiters), 'granted without a server')
        come()
        waiters[0].held()
        lost(holder)
        check(waiters[0].token() > token, 'the token does not rise')
        check(not any(waiter.answered() for waiter in waiters[1:]), 'two holders')

    # A server that comes back with its old sessions, and a server that finds them expired.
    away(server.stop, server.start, holder, [first, second])
    holder.release()
    holder = first
    away(server.freeze, server.thaw, holder, [second])
    mount.ready()
    holder.release()
    second.release()
    mount.take('build').held()


run(test)
