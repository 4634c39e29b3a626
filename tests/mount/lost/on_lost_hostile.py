#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""on_lost is in time when other processes make /proc slow (rule 29): processes that stand still in
exec on a filesystem that hangs, as bystander and as the loser's child; very many descriptors of
a file named like a lock file; descriptors that take long to read; bind mounts in a namespace of
their own."""

import os
import signal

from harness import ALICE, Stopwatch, check, run, until
from hostile import dear, dear_by_locks, many, mounts, stand_in_exec
from hungfs import HungFs
from openers import process, runs

DESCRIPTORS, MOUNTS, DEAR = 3000, 500, 1000


def test(case):
    server = case.server(tick_ms=500)
    relay = case.relay(server)
    a = case.mount(relay, 'a', session='6s', options=['on_lost=kill'])
    b = case.mount(server, 'b', session='6s')
    a.allow('.')
    os.umask(0)
    for lock in ('build', 'parent'):
        b.mkdir(lock)
    hung = HungFs(case)
    own = os.path.join(case.directory, 'own')
    os.mkdir(own)
    with open(own + '/lock', 'wb'):
        pass
    os.chmod(own, 0o755)
    hostile = [process(many, own + '/lock', DESCRIPTORS), process(mounts, own, own + '/lock', MOUNTS),
               process(dear, own + '/lock', DEAR), process(dear_by_locks, own + '/lock', DEAR)]
    stuck = [stand_in_exec(hung) for _ in range(5)]

    taker = a.take('build', uid=ALICE).held()

    # A holder whose child stands still in exec.
    def hold_with_child():
        fd = os.open(a.path('parent', 'lock'), os.O_RDWR)
        return fd, stand_in_exec(hung)
    parent = process(hold_with_child)
    waiters = [b.take(lock) for lock in ('build', 'parent')]
    until(lambda: all(len(server.entries(lock)) == 2 for lock in ('build', 'parent')), 'both queue')

    relay.freeze()
    taker.gone()
    watch = Stopwatch()
    until(lambda: not runs(parent), 'the one with the child is stopped')
    check(not any(waiter.answered() for waiter in waiters), 'the next ones held before they were gone')
    for waiter in waiters:
        waiter.held()
        waiter.release()
    # The lead is 0.8 s, and the lease ends before the session.
    watch.check(0.4, 10, 'before the next one holds')
    for pid in hostile + stuck:
        check(runs(pid), 'a bystander was stopped')
        os.kill(pid, signal.SIGKILL)
    hung.end()
    for pid in hostile + stuck:
        os.waitpid(pid, 0)
    relay.thaw()
    a.ready()


run(test)
