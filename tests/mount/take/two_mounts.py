#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One lock, two mounts: one holder at a time, in the order of arrival."""

from harness import check, check_equal, run, until


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    a.mkdir('build')
    until(lambda: 'build' in b.locks(), 'b sees the lock that a made')

    takers = []
    for mount in (a, b, a, b):
        takers.append(mount.take('build'))
        until(lambda: len(server.entries('build')) == len(takers), 'the taker queues')

    for position, taker in enumerate(takers):
        taker.held()
        for later in takers[position + 1:]:
            check(not later.answered(), 'another taker got the lock while it was held')
        check_equal(len(server.entries('build')), len(takers) - position, 'entries')
        taker.release()
    until(lambda: not server.entries('build'), 'the last release empties the queue')


run(test)
