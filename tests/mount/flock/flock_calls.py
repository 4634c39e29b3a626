#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""flock(2) on the lock file `flock`: opening takes nothing; exclusive and shared locks in one queue
with the other lock files, on two mounts; conversions, unlocking, closing. While it holds, the
descriptor reads as that of a held lock file."""

import errno
import os
import select
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN

from harness import Stopwatch, check, check_equal, check_errno, run, until
from locker import Locker


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    a.mkdir('build')
    until(lambda: 'build' in b.locks(), 'b sees the lock')

    def queued(count):
        until(lambda: len(server.entries('build')) == count, f'{count} in the queue')

    def modes():
        return [name.split('-')[1] for name in a.queue('build')]

    # Opening, with whatever flags, takes nothing.
    p, q, r = Locker(a, 'build'), Locker(a, 'build'), Locker(b, 'build')
    for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_TRUNC | os.O_APPEND,
                  os.O_RDWR | os.O_CREAT | os.O_NONBLOCK):
        p.do('close', p.do('open', flags))
    fd, qfd, rfd = p.do('open'), q.do('open'), r.do('open', os.O_RDONLY)
    check_equal(server.entries('build'), [], 'entries of an open file')
    check_equal(os.stat(a.path('build', 'flock')).st_size, 0, 'size')
    check('flock' in os.listdir(a.path('build')), 'flock is listed')
    check_errno(errno.EINVAL, os.stat, a.path('build', 'flock@1s'))

    # A descriptor without a lock.
    check_equal(p.do('read', fd, 64), b'', 'a token without a lock')
    p.fails(errno.EACCES, 'fsync', fd)
    p.do('flock', fd, LOCK_UN)

    # Exclusive, against flock and against the other lock files, on both mounts.
    p.do('flock', fd, LOCK_EX)
    check_equal(modes(), ['exclusive'], 'the queue')
    check_equal(a.queue('build')[0].split('-')[2], str(p.pid), 'the pid')
    p.do('flock', fd, LOCK_EX)
    p.do('flock', fd, LOCK_EX | LOCK_NB)
    queued(1)
    for other, other_fd in ((q, qfd), (r, rfd)):
        other.fails(errno.EAGAIN, 'flock', other_fd, LOCK_EX | LOCK_NB)
        other.fails(errno.EAGAIN, 'flock', other_fd, LOCK_SH | LOCK_NB)
    for mount in (a, b):
        check_errno(errno.EAGAIN, os.open, mount.path('build', 'try'), os.O_RDWR)
    second = p.do('open')
    p.fails(errno.EAGAIN, 'flock', second, LOCK_SH | LOCK_NB)   # another open file
    p.do('close', second)

    # The descriptor.
    token = int(p.do('pread', fd, 64, 0))
    check_equal(a.fields('build', 'queue', a.queue('build')[0])['token'], str(token), 'the token')
    p.do('write', fd, b'deploying v42\n')
    check_equal(int(p.do('read', fd, 64)), token, 'the token after a write')
    until(lambda: 'deploying v42' in b.read('build', 'holder'), 'the reason')
    p.do('fsync', fd)

    # One queue: an open, a shared flock, an exclusive one, in the order in which they came.
    lock_file = b.take('build')
    queued(2)
    q.ask('flock', qfd, LOCK_SH)
    queued(3)
    r.ask('flock', rfd, LOCK_EX)
    queued(4)
    check_equal(modes(), ['exclusive', 'exclusive', 'shared', 'exclusive'], 'the queue')
    p.do('flock', fd, LOCK_UN)
    check_equal(p.do('pread', fd, 64, 0), b'', 'a token after the unlock')
    lock_file.held()
    check(lock_file.token() > token, 'the token rises')
    check(not q.answered() and not r.answered(), 'the others wait')
    lock_file.release()
    q.got()
    check(not r.answered(), 'the exclusive one waits')
    p.fails(errno.EAGAIN, 'flock', fd, LOCK_SH | LOCK_NB)   # behind the exclusive one
    q.do('flock', qfd, LOCK_UN)
    q.do('flock', qfd, LOCK_UN)
    r.got()
    r.do('flock', rfd, LOCK_UN)
    queued(0)

    # Shared on both mounts.
    q.do('flock', qfd, LOCK_SH)
    r.do('flock', rfd, LOCK_SH | LOCK_NB)
    p.fails(errno.EAGAIN, 'flock', fd, LOCK_EX | LOCK_NB)
    check(q.do('pread', qfd, 64, 0) != r.do('pread', rfd, 64, 0), 'two tokens')

    # A conversion gives back and takes again, behind the waiters.
    p.ask('flock', fd, LOCK_EX)
    queued(3)
    q.ask('flock', qfd, LOCK_EX)
    until(lambda: modes() == ['shared', 'exclusive', 'exclusive'], 'a conversion queues at the end')
    check(not q.answered() and not p.answered(), 'both wait')
    r.do('close', rfd)
    p.got()
    check(not q.answered(), 'the conversion waits')
    p.ask('flock', fd, LOCK_SH)
    q.got()
    check(not p.answered(), 'the other conversion waits')
    q.do('flock', qfd, LOCK_SH)
    p.got()
    check_equal(modes(), ['shared', 'shared'], 'both are shared now')
    # As Linux documents it, a conversion with LOCK_NB may lose the old lock.
    q.fails(errno.EAGAIN, 'flock', qfd, LOCK_EX | LOCK_NB)
    queued(1)
    q.do('flock', qfd, LOCK_SH)
    p.do('flock', fd, LOCK_UN)
    q.do('flock', qfd, LOCK_EX | LOCK_NB)
    check_equal(modes(), ['exclusive'], 'converted at once')

    # A copy keeps the lock; the last close gives it back, and so does the end of the process.
    copy = q.do('dup', qfd)
    q.do('close', qfd)
    p.fails(errno.EAGAIN, 'flock', fd, LOCK_EX | LOCK_NB)
    q.do('flock', copy, LOCK_EX | LOCK_NB)
    p.ask('flock', fd, LOCK_EX)
    queued(2)
    q.do('close', copy)
    p.got()
    q.ask('open')
    qfd = q.got()
    q.ask('flock', qfd, LOCK_EX)
    queued(2)
    watch = Stopwatch()
    p.kill()
    q.got()
    watch.check(0, 2, 'the next one after a kill')
    q.do('flock', qfd, LOCK_UN)

    # Close, and lock again at once: the process's own former entry is never in the way.
    for _ in range(50):
        own = q.do('open')
        q.do('flock', own, LOCK_EX | LOCK_NB)
        q.do('close', own)
    queued(0)

    # poll: ready while nothing is lost.
    mine = os.open(a.path('build', 'flock'), os.O_RDWR)
    poll = select.poll()
    poll.register(mine, select.POLLIN | select.POLLOUT | select.POLLPRI)
    check_equal(poll.poll(0), [(mine, select.POLLIN | select.POLLOUT)], 'poll')
    os.close(mine)

    # POLLPRI while a taker waits behind the lock.
    q.do('flock', qfd, LOCK_EX)
    q.ask('poll', qfd, select.POLLPRI, 60)
    check(not q.answered(0.1), 'nobody waits')
    r = Locker(b, 'build')
    r.ask('flock', r.do('open'), LOCK_SH)
    check_equal(q.got(), select.POLLPRI, 'a taker waits')
    q.do('flock', qfd, LOCK_UN)
    r.got()
    check_equal(q.do('poll', qfd, select.POLLPRI), 0, 'poll of one that holds nothing')
    r.kill()

    # Taking without write permission, and a lock that does not exist.
    a.mkdir('private', 0o755)
    outsider = Locker(a, 'private', uid=65534)
    for flags in (os.O_RDONLY, os.O_RDWR):
        outsider.fails(errno.EACCES, 'open', flags)
    own = Locker(a, 'private')
    ownfd = own.do('open')
    os.rmdir(a.path('private'))
    own.fails(errno.ENOENT, 'flock', ownfd, LOCK_EX)


run(test)
