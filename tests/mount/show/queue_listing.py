#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two mounts list the same queue in the same order, and `ls queue` costs the ensemble one
request, however long the queue is."""

from harness import check, check_equal, run, until


def test(case):
    server = case.server()
    # Long sessions: heartbeats and pings are rare between the requests that are counted.
    a, b = case.mount(server, 'a', session='120s'), case.mount(server, 'b', session='120s')
    a.mkdir('build')

    def queue_up(length):
        for number in range(len(server.entries('build')) + 1, length + 1):
            (a, b)[number % 2].take('build')
            until(lambda: len(server.entries('build')) == number, 'the taker queues')

    def cost():
        """The requests for one listing: the fewest of five, as a heartbeat may come between."""
        def requests():
            return int(server.connections()[b.session()]['recved'])
        found = []
        for _ in range(5):
            before = requests()
            b.queue('build')
            found.append(requests() - before)
        return min(found)

    queue_up(3)
    short = cost()
    queue_up(40)
    check_equal(a.queue('build'), b.queue('build'), 'the queues of two mounts')
    check_equal([int(name[:10]) for name in a.queue('build')],
                [int(name[-10:]) for name in server.entries('build')], 'the order')
    check_equal(cost(), short, 'requests for a long queue as for a short one')
    check(short <= 1, f'{short} requests for one listing')


run(test)
