#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A lock file with a longest time: lock@most=2s. Then the lock is lost as by an eviction: EIO, poll,
on_lost, also while the daemon is stopped. The next taker holds when the loser is gone."""

import errno
import fcntl
import functools
import os
import select
import signal

from harness import SLOWNESS, Stopwatch, check, check_equal, check_errno, run, spawn, until

SESSION = f'{int(15 * SLOWNESS)}s'
MOST = int(2 * SLOWNESS)    # seconds; within them a daemon has to be stopped
STUBBORN = 'trap "" TERM; exec 9<>"$1" || exit 75; : >"$2"; sleep 1000'
SLEEPY = 'exec 9<>"$1" || exit 75; : >"$2"; exec sleep 1000'


def ended(mount, lock):
    """END and BY of the last hold of that lock in the history."""
    rows = [line.split() for line in mount.read('.zklockfs', 'history').splitlines()]
    return next((row[5], row[11]) for row in reversed(rows) if row[1] == lock)


def each_lock_file(a, b):
    """Lock files of every kind. The time begins when the taker holds."""
    for lock_file in ('lock@30s,most=1s', 'try@most=1s', 'shared@most=1s', 'reentrant@most=1s'):
        watch = Stopwatch()
        holder = a.take('doors', lock_file).held()
        waiter = b.take('doors', 'lock@30s,most=1h').held()
        check(waiter.when - watch.start >= 1, f'{lock_file}: held for {waiter.when - watch.start} s')
        watch.check(1, 4 * SLOWNESS, lock_file)
        until(lambda: ended(a, 'doors') == ('lost', 'held\\040too\\040long'), 'the history')
        for call in (('pread', 64, 0), ('write', b'x'), ('fsync',)):
            check_errno(errno.EIO, holder.do, *call)
        check_errno(errno.ETIMEDOUT, os.open, a.path('doors', 'lock@300ms,most=100ms'), os.O_RDWR)
        check(waiter.token() > 0, 'an hour is not over')
        waiter.release()
        holder.release()
    a.said(': held too long; reason', 4)
    check('held for 0.' not in a.log(), 'the log')
    check('zklockfs_overdue_total{' in a.read('.zklockfs', 'metrics'), 'the metric')


def polled(a):
    fd = os.open(a.path('polled', 'lock@most=1s'), os.O_RDWR)
    poll = select.poll()
    poll.register(fd, 0)
    watch = Stopwatch()
    check(poll.poll(20000)[0][1] & select.POLLERR, 'poll')
    watch.check(0.8, 4 * SLOWNESS, 'poll')
    check_errno(errno.EIO, os.read, fd, 64)
    # A lock that was given back before the time is over is not lost.
    os.close(fd)
    os.close(os.open(a.path('polled', 'lock@most=1h'), os.O_RDWR))
    until(lambda: ended(a, 'polled') == ('closed', '-'), 'closed in time')


def advisory(a):
    fd = os.open(a.path('advisory', 'flock@most=1s'), os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    until(lambda: ended_flock(fd), 'flock is over')
    check_errno(errno.EIO, fcntl.flock, fd, fcntl.LOCK_EX)
    fcntl.flock(fd, fcntl.LOCK_UN)
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.close(fd)


UPGRADE = '''
import errno, fcntl, os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR)
fcntl.lockf(fd, fcntl.LOCK_SH)
time.sleep(float(sys.argv[2]))
fcntl.lockf(fd, fcntl.LOCK_EX)
time.sleep(float(sys.argv[2]))
os.read(fd, 64)
'''


def ended_flock(fd):
    try:
        return not os.pread(fd, 64, 0)
    except OSError as err:
        return err.errno == errno.EIO


def none(case, server):
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    a.allow('held too long')
    for lock in ('doors', 'polled', 'advisory'):
        a.mkdir(lock)
    each_lock_file(a, b)
    polled(a)
    advisory(a)
    a.unmount()
    b.unmount()


def lose(case, server, mode, fault):
    """The loser is stopped at the end of its time and not before, long before the lease is over."""
    a = case.mount(server, f'a{mode}', session=SESSION, options=[f'on_lost={mode}'])
    b = case.mount(server, f'b{mode}')
    a.allow('held too long|watchdog')
    lock, note = f'{mode}-{fault}', os.path.join(case.directory, f'{mode}-{fault}')
    b.mkdir(lock)
    # Its time begins when all queue.
    first = b.take(lock).held()
    script = STUBBORN if fault == 'stubborn' else SLEEPY
    loser = spawn(['bash', '-c', script, 'holder', a.path(lock, f'lock@most={MOST}s'), note], prompt=10)
    until(lambda: len(server.entries(lock)) == 2, 'the loser queues')
    waiter = b.take(lock)
    until(lambda: len(server.entries(lock)) == 3, 'the waiter queues')
    watch = Stopwatch()
    first.release()
    until(lambda: os.path.exists(note), 'it holds')
    if fault == 'stopped':
        a.send(signal.SIGSTOP)
    until(lambda: loser.poll() is not None, 'it is stopped')
    wanted = signal.SIGKILL if mode == 'kill' or fault == 'stubborn' else signal.SIGTERM
    check_equal(loser.returncode, -wanted, f'{lock}: by which signal')
    least = MOST + 1.9 if fault == 'stubborn' else MOST
    # SIGKILL may be late on a busy machine, but the other losers do not live until the lease ends.
    watch.check(least, (30 if fault == 'stubborn' else 10) * SLOWNESS, lock)
    if fault == 'stopped':
        check(not waiter.answered(), 'nobody gives it on')
        a.send(signal.SIGCONT)
    waiter.held()
    check(waiter.when - watch.start >= least, f'{lock}: the next one held after {waiter.when - watch.start} s')
    waiter.release()
    a.ready()
    a.unmount()
    b.unmount()


def extended(case, server):
    """With a guardian, a process with a new lock is not stopped at the end of its former lock."""
    a = case.mount(server, 'extended', options=['on_lost=kill'])
    a.mkdir('extended')
    most = int(3 * SLOWNESS)
    holder = spawn(['python3', '-c', UPGRADE, a.path('extended', f'flock@most={most}s'), str(most * 2 / 3)], prompt=10)
    check_equal(holder.wait(60 * SLOWNESS), 0, 'the shared lock had its end, the exclusive one has another')
    a.unmount()


def test(case):
    server = case.server()
    case.at_once(functools.partial(none, server=server), functools.partial(extended, server=server),
                 *(functools.partial(lose, server=server, mode=mode, fault=fault)
                   for mode, fault in (('term', 'running'), ('kill', 'running'), ('term', 'stubborn'),
                                       ('term', 'stopped'), ('kill', 'stopped'))))


run(test)
