#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A server that stops, or hangs, and comes back within the lease disturbs nobody: the holder
keeps its lock and token, waiters keep their places."""

import os

from harness import check, check_equal, run, until


def test(case):
    server = case.server()
    mount = case.mount(server, session='30s')
    mount.allow('.')   # a server goes away: the daemon may log anything
    mount.mkdir('build')
    holder = mount.take('build').held()
    token = holder.token()
    waiters = []
    for _ in range(2):
        waiters.append(mount.take('build'))
        until(lambda: len(server.entries('build')) == 1 + len(waiters), 'the waiter queues')
    entries = server.entries('build')

    for leave, come in ((server.stop, server.start), (server.freeze, server.thaw)):
        leave()
        until(lambda: mount.status()['state'] != 'ready', 'the mount notices')
        check_equal(holder.token(), token, 'token while the server is away')
        holder.do('write', b'still here\n')
        come()
        mount.ready()
        check_equal(holder.token(), token, 'token after the server is back')
        holder.do('fsync')
        check_equal(server.entries('build'), entries, 'the queue')
        check(not any(waiter.answered() for waiter in waiters), 'a waiter was answered')
    until(lambda: mount.read('build', 'holder').endswith('still here\n'), 'what was written meanwhile')

    holder.release()
    waiters[0].held().release()
    waiters[1].held()
    os.stat(mount.path('build'))


run(test)
