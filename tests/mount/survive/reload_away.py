#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A reload while no server answers: holders hold as long as their lease lasts, as they would
without a reload, and go on if a server comes back in time. If none does, they have lost, and
waiters queue again in their old order."""

import errno
import os

from harness import Stopwatch, check, check_equal, check_errno, patiently, run, until


def back_in_time(case, server):
    relay = case.relay(server)
    mount = case.mount(relay, 'a', session='20s', servers=f'127.0.0.1:{relay.port}')
    mount.allow('.')
    mount.mkdir('build')
    holder = mount.take('build').held()
    token = holder.token()
    waiters = [mount.take('build')]
    until(lambda: len(server.entries('build')) == 2, 'the first waits')
    waiters.append(mount.take('build'))
    until(lambda: len(server.entries('build')) == 3, 'the second waits')
    relay.freeze()
    mount.reload()
    check_equal(holder.token(), token, 'the token while nobody answers')
    left = mount.take('build')      # the ensemble does not know of it yet
    mount.reload()
    left.kill()
    left.gone()
    check_equal(holder.token(), token, 'the token while nobody answers')
    relay.thaw()
    mount.ready()
    patiently(holder.do, 'fsync')
    check_equal(holder.token(), token, 'the token when a server is back')
    holder.release()
    for waiter in waiters:
        check(waiter.held().token() > token, 'the token does not rise')
        waiter.release()


def over(case, server):
    relay = case.relay(server)
    mount = case.mount(relay, 'b', session='4s', servers=f'127.0.0.1:{relay.port}')
    mount.allow('.')
    mount.mkdir('deep')
    holder = mount.take('deep').held()
    first = mount.take('deep')
    until(lambda: len(server.entries('deep')) == 2, 'the first waits')
    second = mount.take('deep')
    until(lambda: len(server.entries('deep')) == 3, 'the second waits')
    watch = Stopwatch()
    relay.freeze()
    mount.reload()

    def lost():
        try:
            return not holder.token()
        except OSError as err:
            return err.errno == errno.EIO
    until(lost, 'the lock is lost')
    watch.check(0, 4.5, 'the lease')
    mount.reload()
    check_errno(errno.EIO, holder.do, 'pread', 64, 0)
    until(lambda: not server.entries('deep'), 'the session has ended')
    relay.thaw()
    first.held()
    check(not second.answered(), 'two hold')
    check_errno(errno.EIO, holder.do, 'fsync')
    first.release()
    second.held()
    holder.release()
    second.release()
    os.rmdir(mount.path('deep'))


def test(case):
    server = case.server(tick_ms=500)
    case.at_once(lambda part: back_in_time(part, server), lambda part: over(part, server))


run(test)
