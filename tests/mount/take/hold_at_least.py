#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A lock file with a least time: lock@least=3s. Nobody gets the lock before, whether the lock file was closed
or its process was killed. `holder` says why. An eviction or the end of the mount frees the lock."""

import errno
import fcntl
import functools
import os
import re
import signal

from harness import Stopwatch, check, check_equal, check_errno, command, run, until


LEAST = 8   # seconds; within them all that is to be seen of kept locks


def kept(mount, lock):
    return ' reason=kept until 20' in mount.read(lock, 'holder')


def check_kept(mount, count):
    """Check the number of kept locks in status and metrics."""
    check_equal(mount.status()['kept'], str(count), 'kept, in status')
    check(re.search(r'^zklockfs_kept{.*} %d$' % count, mount.read('.zklockfs', 'metrics'), re.M), 'kept, in metrics')
    check_equal(mount.status()['holders'], str(count), 'they count as holders')


def closed_or_killed(a, b):
    """The lock is kept for takers of the same mount and of another one, by any lock file."""
    waiters = []
    for end, lock_file in (('release', 'lock'), ('kill', 'try'), ('release', 'shared'), ('kill', 'reentrant')):
        lock = 'by-' + lock_file
        a.mkdir(lock)
        watch = Stopwatch()
        holder = a.take(lock, f'{lock_file}@least={LEAST}s').held()
        holder.do('write', b'nightly')
        waiter = b.take(lock)
        getattr(holder, end)()
        until(lambda lock=lock: kept(b, lock), 'it is kept')
        check(b.read(lock, 'holder').endswith(', released: nightly\n'), b.read(lock, 'holder'))
        check_errno(errno.EAGAIN, os.open, a.path(lock, 'try'), os.O_RDWR)
        check_errno(errno.EAGAIN, os.open, b.path(lock, 'try'), os.O_RDWR)
        check_errno(errno.EBUSY, os.rmdir, a.path(lock))
        waiters.append((f'{end}, {lock_file}', lock, waiter, watch))
    for what, lock, waiter, watch in waiters:
        waiter.held()
        check(waiter.when - watch.start >= LEAST, f'{what}: after {waiter.when - watch.start} s')
        watch.check(LEAST, LEAST + 3, what)
        waiter.release()
        rows = [line.split() for line in a.read('.zklockfs', 'history').splitlines()]
        row = next(row for row in reversed(rows) if row[1] == lock)
        check(row[5] in ('closed', 'exited') and LEAST - 0.1 <= float(row[4]) <= waiter.when - watch.start + 0.1,
              f'history: {row}')


def not_kept(a, b):
    """A lock is not kept that was held for longer, was never held, or is evicted."""
    holder = a.take('build', 'lock@least=300ms').held()
    waiter = b.take('build')
    check(not waiter.answered(0.5), 'it is held')
    watch = Stopwatch()
    holder.release()
    waiter.held()
    watch.check(0, 2, 'the next one after the least time')
    waiter.release()
    holder = a.take('build').held()
    waiter = a.take('build', 'lock@least=1h')
    until(lambda: len(a.queue('build')) == 2, 'it waits')
    waiter.kill()
    until(lambda: len(a.queue('build')) == 1, 'it is gone')
    holder.release()
    b.take('build').held().release()
    a.take('build', 'lock@least=1h').held().release()
    until(lambda: kept(b, 'build'), 'for an hour')
    check_kept(a, 1)
    waiter = b.take('build')
    until(lambda: len(b.queue('build')) == 2, 'it waits')
    check_kept(b, 0)
    os.setxattr(b.path('build', 'queue', b.queue('build')[0]), 'user.evict', b'')
    waiter.held().release()
    until(lambda: a.status()['kept'] == '0', 'evicted')


def joined(a, b):
    """A request that joins by `reentrant` with a least time gives it to the hold, and does not shorten one."""
    for first, then in (('lock', 'reentrant@least=1h'), ('lock@least=1h', 'reentrant@least=1ms'), ('flock', 'reentrant@least=1h')):
        held = os.open(a.path('build', first), os.O_RDWR)
        if first == 'flock':
            fcntl.flock(held, fcntl.LOCK_EX)
        os.close(os.open(a.path('build', then), os.O_RDWR | os.O_NONBLOCK))
        check(not kept(b, 'build'), 'it is held')
        os.close(held)
        until(lambda: kept(b, 'build'), 'for an hour')
        os.setxattr(b.path('build', 'queue', b.queue('build')[0]), 'user.evict', b'')
        until(lambda: a.read('build', 'holder') == '', 'evicted')


def by_flock(a, b):
    """One line in the crontab of each host."""
    for mount, status in ((a, 0), (b, 75), (a, 75)):
        path = mount.path('build', 'flock@most=6h,least=1h')
        check_equal(command(['flock', '-n', '-E', '75', path, 'true'])[0], status, f'flock(1) on {mount.host}')
    check(kept(a, 'build'), 'it is kept')
    os.setxattr(a.path('build', 'queue', a.queue('build')[0]), 'user.evict', b'')
    until(lambda: a.read('build', 'holder') == '', 'evicted')


def files(case, server):
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    a.allow('evicted')
    a.mkdir('build')
    closed_or_killed(a, b)
    not_kept(a, b)
    joined(a, b)
    by_flock(a, b)
    a.unmount()
    b.unmount()


def end_of_mount(case, server, how):
    """A mount keeps the lock until the mount leaves, or else until its session has ended."""
    lock = f'end-{how}'
    a = case.mount(server, lock, session='6s')
    b = case.mount(server, 'other-' + how)
    a.mkdir(lock)
    a.mkdir('late-' + how)
    a.take(lock, 'lock@least=1h').held().release()
    until(lambda: kept(b, lock), 'for an hour')
    waiter = b.take(lock)
    until(lambda: len(b.queue(lock)) == 2, 'it waits')
    watch = Stopwatch()
    late = None
    if how == 'umount':
        a.unmount()
    elif how == 'term':
        late = a.take('late-' + how, 'lock@least=1h').held()
        a.process.send_signal(signal.SIGTERM)
        waiter.held()
        late.release()   # a mount that leaves keeps nothing
        a.check_end()
    else:
        a.crash()
        command(['fusermount3', '-uz', a.directory])
    if not late:
        waiter.held()
    watch.check(2 if how == 'kill' else 0, 14 if how == 'kill' else 4, how)
    waiter.release()
    b.unmount()


def test(case):
    server = case.server(tick_ms=1000)
    case.at_once(functools.partial(files, server=server),
                 *(functools.partial(end_of_mount, server=server, how=how) for how in ('umount', 'term', 'kill')))


run(test)
