#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Watches are few (rule 9): a mount has a handful for a lock, however many wait there,
and a release wakes the next taker and not all of them."""

from harness import check, run, until

WAITERS = 20


def test(case):
    server = case.server()
    mounts = [case.mount(server, host) for host in 'abcd']
    mounts[0].mkdir('build')
    holder = mounts[0].take('build').held()
    first = []
    for mount in mounts[1:]:
        first.append(mount.take('build'))
        until(lambda: len(server.entries('build')) == 1 + len(first), 'the taker queues')
    crowd = [mounts[1].take('build') for _ in range(WAITERS)]
    until(lambda: len(server.entries('build')) == 1 + len(first) + len(crowd), 'the crowd queues')

    def watched(mount):
        return [path for path in server.watches(mount.session()) if path.startswith('/locks/build')]

    # A waiting mount watches two entries of other mounts, its own first entry, and the lock.
    for mount in mounts[1:]:
        until(lambda: watched(mount), 'a waiting mount watches')
        check(len(watched(mount)) <= 4, f'{mount.host} watches {watched(mount)}')
        check('/locks/build' not in watched(mount) or len(watched(mount)) > 1, 'only the herd watch')

    events = 'zk_sum_node_deleted_watch_count', 'zk_sum_node_children_watch_count'
    deleted, children = [server.metric(name) for name in events]
    holder.release()
    first[0].held()
    until(lambda: len(server.entries('build')) == len(first) + len(crowd), 'the entry goes')
    deleted, children = server.metric(events[0]) - deleted, server.metric(events[1]) - children
    # The next two in line, and the releasing mount's own watch of its entry.
    check(deleted <= 3, f'{deleted} mounts were told of one release')
    check(children == 0, f'{children} mounts were told that the queue has changed')
    check(not any(taker.answered() for taker in first[1:] + crowd), 'two holders')
    given_up(case)


def given_up(case):
    """An entry that is not waited for any more is not watched any more, at the server either. A watch that another waiter
    needs stays."""
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    a.mkdir('build')
    holder = a.take('build').held()
    entry, = server.entries('build')

    def is_watched():
        return f'/locks/build/{entry}' in server.watches(b.session())

    for _ in range(3):
        waiter = b.take('build')
        until(is_watched, 'the entry of the holder is watched')
        waiter.kill()
        until(lambda: not is_watched(), 'the watch is taken back')
    waiter = b.take('build')
    until(is_watched, 'it is watched again')
    holder.release()
    waiter.held().release()


run(test)
