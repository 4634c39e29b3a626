#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""lock@ahead=N: EAGAIN at once where N wait already, on any mount (rule 14). Of many that come at
the same moment N wait or more. A request that is not answered keeps its N over a reload and a crash of its daemon."""

import errno
import fcntl
import os
import subprocess

from harness import CRASHES, Stopwatch, check, check_equal, check_errno, run, until
from locker import Locker


def entries(server, lock, count):
    until(lambda: len(server.entries(lock)) == count, f'{lock} has {count} entries')


def one_waits(server, mounts):
    """Each kind of lock file, on each mount; a holder does not count."""
    holder = mounts[0].take('build', 'lock@ahead=1').held()
    for mount in mounts:
        waiter = mount.take('build', 'lock@1h,most=1h,ahead=1')
        entries(server, 'build', 2)
        for other in mounts:
            watch = Stopwatch()
            for lock_file in ('lock@ahead=1', 'shared@5s,ahead=1', 'reentrant@ahead=1', 'lock@most=1m,ahead=1'):
                check_errno(errno.EAGAIN, os.open, other.path('build', lock_file), os.O_RDWR)
            watch.check(0, 2, f'refused on {other.host}')
            check_errno(errno.ETIMEDOUT, os.open, other.path('build', 'lock@300ms,ahead=2'), os.O_RDWR)
        entries(server, 'build', 2)
        holder.release()
        holder = waiter.held()
    holder.release()
    entries(server, 'build', 0)
    for mount in mounts:
        check_equal(mount.metric('crowded_total'), 4 * len(mounts), 'counted')


def advisory(server, a, b):
    """flock(2), fcntl(2) and flock(1) fail as by LOCK_NB; an upgrade waits as ever."""
    holder, sharer = b.take('file').held(), Locker(a, 'file', lock_file='flock@ahead=1')
    waiter = a.take('file')
    entries(server, 'file', 2)
    fd = sharer.do('open')
    for mode in (fcntl.LOCK_EX, fcntl.LOCK_SH):
        sharer.fails(errno.EAGAIN, 'raw_flock', fd, mode)
    sharer.fails(errno.EAGAIN, 'raw_setlkw', fd, fcntl.F_WRLCK)
    flock = subprocess.run(['flock', '-E', '75', a.path('file', 'flock@ahead=1'), 'true'], check=False)
    check_equal(flock.returncode, 75, 'flock(1)')
    holder.release()
    waiter.held().release()
    entries(server, 'file', 0)

    sharer.do('raw_setlkw', fd, fcntl.F_RDLCK)
    other = b.take('file', 'shared').held()
    waiting = [mount.take('file', 'shared@1h').held() for mount in (a, b)]
    sharer.ask('raw_setlkw', fd, fcntl.F_WRLCK)
    entries(server, 'file', 5)
    for taker in (other, *waiting):
        taker.release()
    sharer.got()
    sharer.do('close', fd)
    entries(server, 'file', 0)


def crowd(server, mounts):
    """At one moment two come or more, and wait; all others are refused. Each waiter gets the lock."""
    holder = mounts[0].take('crowd').held()
    takers = [mounts[i % len(mounts)].take('crowd', 'lock@ahead=2') for i in range(12)]
    until(lambda: sum(taker.answered() for taker in takers) + len(server.entries('crowd')) == 13, 'all wait, or are refused')
    waiting = [taker for taker in takers if not taker.answered()]
    for taker in takers:
        if taker not in waiting:
            taker.refused(errno.EAGAIN)
    check(len(waiting) >= 2, 'two may wait')
    before = mounts[0].metric('crowded_total')
    mounts[0].reload()
    if not CRASHES:
        check_equal(mounts[0].metric('crowded_total'), before, 'over the reload')
    check_errno(errno.EAGAIN, os.open, mounts[0].path('crowd', 'lock@ahead=2'), os.O_RDWR)
    while waiting:
        holder.release()
        holder = until(lambda: next((taker for taker in waiting if taker.answered()), None), 'the next one').held()
        waiting.remove(holder)
    holder.release()


def parked(server, a):
    """A request that the ensemble has not answered yet keeps its number, too."""
    holder = a.take('parked').held()
    first = a.take('parked')
    entries(server, 'parked', 2)
    server.freeze()
    late = a.take('parked', 'lock@ahead=1')
    until(lambda: a.metric('waiters') == 2, 'it waits for an answer')
    a.reload()
    check(not late.answered(), 'it was answered')
    server.thaw()
    late.refused(errno.EAGAIN)
    check(not first.answered(), 'the first one waits on')
    holder.release()
    first.held().release()


def slots(server, a, b):
    """Free slots are no crowd, and full ones are none either."""
    with open(a.path('pool', 'slots'), 'w', encoding='ascii') as file:
        file.write('2')
    holders = [mount.take('pool', 'lock@ahead=1').held() for mount in (a, b)]
    waiter = b.take('pool', 'lock@ahead=1')
    entries(server, 'pool', 3)
    for mount in (a, b):
        check_errno(errno.EAGAIN, os.open, mount.path('pool', 'lock@ahead=1'), os.O_RDWR)
    holders.pop().release()
    holders.append(waiter.held())
    for holder in holders:
        holder.release()


def test(case):
    server = case.server()
    mounts = [case.mount(server, host) for host in ('a', 'b', 'c')]
    for lock in ('build', 'file', 'crowd', 'parked', 'pool'):
        mounts[0].mkdir(lock)
    one_waits(server, mounts)
    advisory(server, *mounts[:2])
    crowd(server, mounts)
    slots(server, *mounts[:2])
    parked(server, mounts[0])
    for lock_file in ('lock@ahead=-1', 'lock@ahead=x', 'lock@ahead=0', 'lock@ahead=1048576', 'lock@ahead=1,ahead=2',
                 'try@ahead=1', 'flock@ahead='):
        mounts[0].allow('not understood after the @')
        check_errno(errno.EINVAL, os.open, mounts[0].path('build', lock_file), os.O_RDWR)


run(test)
