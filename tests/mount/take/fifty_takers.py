#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fifty processes on two mounts get the lock one after another, in the order
of the numbers that ZooKeeper gave them, and their tokens rise in that order."""

from harness import check, check_equal, run, until

TAKERS = 50


def test(case):
    server = case.server()
    mounts = case.mount(server, 'a'), case.mount(server, 'b')
    mounts[0].mkdir('build')
    first = mounts[0].take('build').held()
    # All come at once, so that ZooKeeper decides on the order, and not the test.
    waiting = {}
    for number in range(TAKERS - 1):
        taker = mounts[number % 2].take('build')
        waiting[taker.pid] = taker
    entries = until(lambda: len(server.entries('build')) == TAKERS and server.entries('build'),
                    'all of them queue')
    pids = [int(name.split('-lock-')[0].rsplit('.', 1)[1]) for name in entries]
    check_equal(pids[0], first.pid, 'the first in the queue')

    token = first.token()
    first.release()
    for pid in pids[1:]:
        taker = waiting.pop(pid).held()
        check(not any(other.answered() for other in waiting.values()), 'two holders')
        check(taker.token() > token, 'the token does not rise')
        token = taker.token()
        taker.release()


run(test)
