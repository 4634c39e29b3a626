#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A killed holder passes the lock on at once: nobody waits for the session timeout, on the same
mount or on another one."""

from harness import Stopwatch, run, until


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a', session='30s'), case.mount(server, 'b', session='30s')
    a.mkdir('build')
    holder = a.take('build').held()
    neighbour = a.take('build')
    until(lambda: len(server.entries('build')) == 2, 'the neighbour queues')
    remote = b.take('build')
    until(lambda: len(server.entries('build')) == 3, 'the remote one queues')

    watch = Stopwatch()
    holder.kill()
    neighbour.held()
    watch.check(0, 3, 'to the same mount')

    watch = Stopwatch()
    neighbour.kill()
    remote.held()
    watch.check(0, 3, 'to the other mount')


run(test)
