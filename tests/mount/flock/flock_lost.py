#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A lost lock by flock(2) or fcntl(2): EIO and poll events on the descriptor, and EIO for a
process that locks again before it has unlocked or closed. Waiters are not lost. A draining
mount and a read-only mount take nothing."""

import errno
import os
import select
from fcntl import F_RDLCK, F_SETLKW, F_UNLCK, F_WRLCK, LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN

from harness import check, check_equal, check_errno, errno_of, run, until
from locker import Locker

LOST = select.POLLERR | select.POLLHUP | select.POLLPRI


def test(case):
    server = case.server(tick_ms=500)
    relay = case.relay(server)
    a = case.mount(relay, 'a', session='6s')
    b = case.mount(server, 'b', session='6s')
    a.allow('lost')
    for name in ('build', 'both', 'up', 'wait'):
        b.mkdir(name)

    def queued(count, lock='build'):
        return until(lambda: len(server.entries(lock)) == count and server.entries(lock),
                     f'{count} in the queue of {lock}')

    # An entry is deleted: its process has lost the lock, the other process still shares it.
    p, q = Locker(a, 'build'), Locker(a, 'build')
    fd, qfd = p.do('open'), q.do('open')
    ready = select.POLLIN | select.POLLOUT
    check_equal(p.do('poll', fd, ready | select.POLLPRI), ready, 'poll without a lock')
    for locker, own in ((p, fd), (q, qfd)):
        locker.do('flock', own, LOCK_SH)
        locker.do('fsync', own)
    check_equal(p.do('poll', fd, ready | select.POLLPRI), ready, 'poll with a lock')
    p.ask('poll', fd, 0, 60)
    # Holders watch their own entry after a short while.
    until(lambda: len(server.watches(a.session())) >= 2, 'both watch their entries')
    server.zk.delete('/locks/build/' + next(name for name in server.entries('build')
                                            if f'.{p.pid}-' in name))
    check_equal(p.got(), select.POLLERR | select.POLLHUP, 'poll wakes')
    check_equal(p.do('poll', fd, select.POLLPRI), LOST, 'poll afterwards')
    for name, args in (('read', (64,)), ('write', (b'x',)), ('fsync', ())):
        p.fails(errno.EIO, name, fd, *args)
        p.fails(errno.EIO, name, fd, *args)
    for operation in (LOCK_SH, LOCK_EX, LOCK_SH | LOCK_NB, LOCK_EX | LOCK_NB):
        p.fails(errno.EIO, 'flock', fd, operation)
    q.do('fsync', qfd)
    copy = p.do('dup', fd)
    p.fails(errno.EIO, 'flock', copy, LOCK_SH)
    p.do('close', copy)
    p.fails(errno.EIO, 'flock', fd, LOCK_SH)
    another = p.do('open')
    p.do('flock', another, LOCK_SH)       # a descriptor that has lost nothing
    p.do('close', another)
    p.do('flock', fd, LOCK_UN)
    check_equal(p.do('read', fd, 64), b'', 'after the unlock nothing is held')
    p.do('flock', fd, LOCK_SH | LOCK_NB)
    check(int(p.do('pread', fd, 64, 0)) > 0, 'held again')

    # An upgrade that waits to replace the lost lock is lost, too.
    u, v = Locker(a, 'up'), Locker(b, 'up')
    ufd, vfd = u.do('open'), v.do('open')
    u.do('setlk', ufd, F_RDLCK)
    v.do('setlk', vfd, F_RDLCK)
    u.do('fsync', ufd)
    u.ask('setlk', ufd, F_WRLCK, F_SETLKW)
    queued(3, 'up')
    until(lambda: any('/up/' in path and f'.{u.pid}-rlock' in path
                      for path in server.watches(a.session())), 'the shared one is watched')
    server.zk.delete('/locks/up/' + next(name for name in server.entries('up')
                                         if f'.{u.pid}-rlock' in name))
    u.fails(errno.EIO)
    u.fails(errno.EIO, 'setlk', ufd, F_RDLCK)
    queued(1, 'up')
    u.do('setlk', ufd, F_UNLCK)
    u.do('setlk', ufd, F_RDLCK)

    # The server is silent: all locks are lost at once; waiters go on waiting.
    m, w = Locker(a, 'both'), Locker(a, 'wait')
    mfd, wfd = m.do('open'), w.do('open')
    m.do('flock', mfd, LOCK_EX)
    m.do('setlk', mfd, F_WRLCK)
    first = b.take('wait').held()
    w.ask('flock', wfd, LOCK_EX)
    queued(2, 'wait')
    relay.freeze()
    until(lambda: errno_of(q.do, 'write', qfd, b'x') == errno.EIO, 'the lease is over')
    q.fails(errno.EIO, 'flock', qfd, LOCK_SH)
    q.fails(errno.EIO, 'read', qfd, 64)
    m.fails(errno.EIO, 'flock', mfd, LOCK_EX)
    m.fails(errno.EIO, 'setlk', mfd, F_WRLCK)
    m.do('flock', mfd, LOCK_UN)
    m.fails(errno.EIO, 'setlk', mfd, F_WRLCK)
    m.fails(errno.EIO, 'read', mfd, 64)
    spare = m.do('open')
    m.do('close', spare)                  # the process's close ends its fcntl lock
    m.fails(errno.EACCES, 'fsync', mfd)
    check(not w.answered(), 'the waiter waits')
    relay.thaw()
    a.ready()
    m.do('setlk', mfd, F_WRLCK, F_SETLKW)
    check(int(m.do('pread', mfd, 64, 0)) > 0, 'held in the new session')
    check(not w.answered(), 'the waiter waits in the new session')
    first.release()
    w.got()
    q.fails(errno.EIO, 'flock', qfd, LOCK_EX)
    q.do('close', qfd)
    qfd = q.do('open')
    q.do('flock', qfd, LOCK_EX)

    # -o ro: the kernel checks opens only.
    c = case.mount(server, 'c', session='6s', options=['ro'])
    reader = os.open(c.path('both', 'flock'), os.O_RDONLY)
    check_errno(errno.EROFS, os.open, c.path('both', 'flock'), os.O_RDWR)
    own = Locker(c, 'both')
    ownfd = own.do('open', os.O_RDONLY)
    own.fails(errno.EROFS, 'flock', ownfd, LOCK_EX)
    own.fails(errno.EROFS, 'flock', ownfd, LOCK_SH | LOCK_NB)
    own.fails(errno.EROFS, 'setlk', ownfd, F_RDLCK)
    own.do('flock', ownfd, LOCK_UN)
    os.close(reader)

    # A mount that leaves takes no locks any more, and serves its holders to the end.
    w.do('flock', wfd, LOCK_UN)
    first = b.take('wait').held()
    w.ask('flock', wfd, LOCK_EX)
    queued(2, 'wait')
    a.process.terminate()
    w.fails(errno.ESHUTDOWN)
    w.fails(errno.ESHUTDOWN, 'flock', wfd, LOCK_EX)
    w.do('flock', wfd, LOCK_UN)
    check(int(m.do('pread', mfd, 64, 0)) > 0, 'a holder is served')
    check(a.process.poll() is None, 'the daemon stays')
    for locker in (p, q, u, m, w):
        locker.kill()
    a.check_end()


run(test)
