#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A waiter can be killed at any place of the queue. Its process disappears at once, and its
entry too, and the waiters behind it get the lock in their turn."""

from harness import Stopwatch, check, run, until


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a', session='30s'), case.mount(server, 'b', session='30s')
    a.mkdir('build')
    holder = a.take('build').held()
    waiters = []
    for mount in (a, a, b, b, a):
        waiters.append(mount.take('build'))
        until(lambda: len(server.entries('build')) == 1 + len(waiters), 'the waiter queues')

    for place in (0, 1, 0):   # the next in line, one in the middle, the next one again
        victim = waiters.pop(place)
        watch = Stopwatch()
        victim.kill()
        victim.gone()
        until(lambda: len(server.entries('build')) == 1 + len(waiters), 'its entry goes')
        watch.check(0, 3, 'a killed waiter')

    check(not any(waiter.answered() for waiter in waiters), 'the lock went to two')
    holder.release()
    waiters[0].held().release()
    waiters[1].held()


run(test)
