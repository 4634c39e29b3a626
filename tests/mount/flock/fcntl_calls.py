#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""fcntl(2) and lockf(3) on the lock file `flock`: owners, upgrade and downgrade, OFD locks, partial
ranges, F_GETLK, the effect of a close, and one process that locks by both calls (rule 16)."""

import errno
import os
import signal
from fcntl import (F_RDLCK, F_SETLK, F_SETLKW, F_UNLCK, F_WRLCK, LOCK_EX, LOCK_NB, LOCK_SH,
                   LOCK_UN, flock)

from harness import check, check_equal, check_errno, run, until
from locker import F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW, Locker


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    a.mkdir('build')
    until(lambda: 'build' in b.locks(), 'b sees the lock')

    def queued(count):
        until(lambda: len(server.entries('build')) == count, f'{count} in the queue')

    def modes():
        return [name.split('-')[1] for name in a.queue('build')]

    def free(*lockers):
        for locker in lockers:
            locker.do('setlk', fds[locker], F_UNLCK)
        queued(0)

    p, q, r = Locker(a, 'build'), Locker(a, 'build'), Locker(b, 'build')
    fds = {locker: locker.do('open') for locker in (p, q, r)}
    fd, qfd, rfd = fds.values()

    # Exclusive and shared.
    p.do('lockf', fd, LOCK_EX)
    p.do('setlk', fd, F_WRLCK)
    check_equal(modes(), ['exclusive'], 'the queue')
    check_equal(int(p.do('read', fd, 64)), int(a.fields('build', 'queue', a.queue('build')[0])['token']),
                'the token')
    for other in (q, r):
        other.fails(errno.EAGAIN, 'lockf', fds[other], LOCK_EX | LOCK_NB)
        other.fails(errno.EAGAIN, 'setlk', fds[other], F_RDLCK)
    check_errno(errno.EAGAIN, os.open, b.path('build', 'try'), os.O_RDWR)
    q.ask('setlk', qfd, F_RDLCK, F_SETLKW)
    queued(2)
    r.ask('lockf', rfd, LOCK_SH)
    queued(3)
    p.do('lockf', fd, LOCK_UN)
    q.got()
    r.got()
    check_equal(modes(), ['shared', 'shared'], 'the queue')
    free(q, r)

    # The whole file, or nothing.
    for place in ((0, 2), (1, 1), (1, 0), (0, 0, os.SEEK_CUR), (5, 10)):
        p.do('lseek', fd, 3, os.SEEK_SET)
        for kind in (F_RDLCK, F_WRLCK, F_UNLCK):
            p.fails(errno.EINVAL, 'setlk', fd, kind, F_SETLKW, *place)
    p.do('lseek', fd, 0, os.SEEK_SET)
    p.do('setlk', fd, F_WRLCK, F_SETLKW, 0, 0, os.SEEK_CUR)
    p.fails(errno.EINVAL, 'setlk', fd, F_UNLCK, F_SETLKW, 0, 1)
    q.fails(errno.EAGAIN, 'setlk', qfd, F_RDLCK)

    free(p)

    # The first byte stands for the whole file; but a part of a lock is not locked or unlocked.
    for locked, asked in ((0, 1), (0, 0)), ((0, 0), (0, 1)), ((0, 1), (0, 1)):
        p.do('setlk', fd, F_WRLCK, F_SETLKW, *locked)
        check_equal(modes(), ['exclusive'], f'the queue, {locked}')
        for other in (q, r):
            other.fails(errno.EAGAIN, 'setlk', fds[other], F_RDLCK, F_SETLK, *asked)
        check_equal(q.do('getlk', qfd, F_WRLCK), (F_WRLCK, p.pid), 'F_GETLK')
        check_equal(p.do('getlk', fd, F_WRLCK), None, 'the own lock')
        p.fails(errno.EINVAL, 'setlk', fd, F_WRLCK, F_SETLKW, 1, 1)
        if locked != asked:
            for kind in (F_RDLCK, F_WRLCK):
                p.fails(errno.EINVAL, 'setlk', fd, kind, F_SETLKW, *asked)
        q.ask('setlk', qfd, F_WRLCK, F_SETLKW, *asked)
        queued(2)
        if locked == (0, 0) and asked == (0, 1):
            p.fails(errno.EINVAL, 'setlk', fd, F_UNLCK, F_SETLKW, *asked)
            asked = locked
        check(not q.answered(), 'the other waits')
        p.do('setlk', fd, F_UNLCK, F_SETLKW, *asked)
        q.got()
        check(int(q.do('pread', qfd, 64, 0)) > 0, 'the token')
        p.ask('setlk', fd, F_WRLCK, F_SETLKW, 0, 1)
        queued(2)
        q.do('close', qfd)
        p.got()
        p.do('setlk', fd, F_RDLCK, F_SETLKW, 0, 1)
        p.do('setlk', fd, F_WRLCK, F_SETLKW, 0, 1)
        p.do('setlk', fd, F_UNLCK, F_SETLKW, 0, 1)
        queued(0)
        qfd = fds[q] = q.do('open')
    p.do('setlk', fd, F_WRLCK, F_SETLKW, 0, 1)
    a.reload()
    q.fails(errno.EAGAIN, 'setlk', qfd, F_RDLCK, F_SETLK, 0, 1)
    p.fails(errno.EINVAL, 'setlk', fd, F_WRLCK)
    p.do('setlk', fd, F_UNLCK, F_SETLKW, 0, 1)
    p.do('flock', fd, LOCK_EX)
    p.do('setlk', fd, F_WRLCK, F_SETLKW, 0, 1)
    check_equal(modes(), ['exclusive'], 'one entry for both calls')
    p.do('flock', fd, LOCK_UN)
    p.do('setlk', fd, F_UNLCK)
    queued(0)
    p.do('setlk', fd, F_WRLCK)

    # Down and up again: the entry stays exclusive, and no other taker comes in between.
    token = p.do('pread', fd, 64, 0)
    q.ask('setlk', qfd, F_WRLCK, F_SETLKW)
    queued(2)
    p.do('setlk', fd, F_RDLCK)
    check_equal(modes(), ['exclusive', 'exclusive'], 'the queue after a downgrade')
    r.fails(errno.EAGAIN, 'setlk', rfd, F_RDLCK)
    p.do('setlk', fd, F_WRLCK)
    check_equal(p.do('pread', fd, 64, 0), token, 'the same token')
    check(not q.answered(), 'the other waits')
    p.do('setlk', fd, F_UNLCK)
    q.got()
    free(q)

    # Upgrade from shared: alone, beside others, and while another process waits for its upgrade.
    p.do('setlk', fd, F_RDLCK)
    token = int(p.do('pread', fd, 64, 0))
    p.do('setlk', fd, F_WRLCK)
    until(lambda: modes() == ['exclusive'], 'one entry took the place of the other')
    check(int(p.do('pread', fd, 64, 0)) > token, 'the token of the new entry')
    free(p)
    for other in (q, r):
        p.do('setlk', fd, F_RDLCK)
        other.do('setlk', fds[other], F_RDLCK)
        p.fails(errno.EAGAIN, 'setlk', fd, F_WRLCK)
        queued(2)
        p.ask('setlk', fd, F_WRLCK, F_SETLKW)
        queued(3)
        other.fails(errno.EAGAIN, 'setlk', fds[other], F_WRLCK)
        other.fails(errno.EDEADLK, 'setlk', fds[other], F_WRLCK, F_SETLKW)
        check(not p.answered() and int(other.do('pread', fds[other], 64, 0)) > 0,
              'the other shares still')
        other.do('setlk', fds[other], F_UNLCK)
        p.got()
        until(lambda: modes() == ['exclusive'], 'the upgrade holds')
        other.fails(errno.EAGAIN, 'setlk', fds[other], F_RDLCK)
        free(p)

    # While an upgrade waits, an unlock by the taker in its way gives it the lock.
    p.do('setlk', fd, F_RDLCK)
    q.do('setlk', qfd, F_RDLCK)
    p.ask('setlk', fd, F_WRLCK, F_SETLKW)
    queued(3)
    free_of = [name for name in a.queue('build') if name.split('-')[2] == str(p.pid)]
    check_equal([name.split('-')[1] for name in free_of], ['shared', 'exclusive'], 'both entries')
    q.do('setlk', qfd, F_UNLCK)
    p.got()
    free(p)

    # F_GETLK.
    check_equal(p.do('getlk', fd, F_WRLCK), None, 'nobody is in the way')
    q.do('setlk', qfd, F_WRLCK)
    for kind in (F_RDLCK, F_WRLCK):
        check_equal(p.do('getlk', fd, kind), (F_WRLCK, q.pid), 'the holder in the way')
        check_equal(r.do('getlk', rfd, kind), (F_WRLCK, 0), 'seen from another host')
        check_equal(q.do('getlk', qfd, kind), None, 'the own lock')
        check_equal(p.do('getlk', fd, kind, F_OFD_GETLK), (F_WRLCK, -1), 'OFD')
    p.ask('setlk', fd, F_WRLCK, F_SETLKW)
    queued(2)
    check_equal(q.do('getlk', qfd, F_WRLCK), None, 'the own lock, while another one waits')
    q.do('setlk', qfd, F_UNLCK)
    p.got()
    p.do('setlk', fd, F_UNLCK)
    q.do('setlk', qfd, F_WRLCK)
    q.do('setlk', qfd, F_RDLCK)
    check_equal(p.do('getlk', fd, F_WRLCK), (F_RDLCK, q.pid), 'a lock that was downgraded')
    q.do('setlk', qfd, F_UNLCK)
    q.do('setlk', qfd, F_RDLCK)
    check_equal(p.do('getlk', fd, F_RDLCK), None, 'one could share')
    check_equal(p.do('getlk', fd, F_WRLCK), (F_RDLCK, q.pid), 'a shared lock')
    check_equal(q.do('getlk', qfd, F_WRLCK), None, 'only the own lock')
    q.do('setlk', qfd, F_WRLCK)
    until(lambda: modes() == ['exclusive'], 'an upgrade')
    check_equal(p.do('getlk', fd, F_WRLCK), (F_WRLCK, q.pid), 'a lock that was upgraded')
    q.do('setlk', qfd, F_UNLCK)
    q.do('setlk', qfd, F_RDLCK)
    r.do('setlk', rfd, F_RDLCK)
    check_equal(q.do('getlk', qfd, F_WRLCK), (F_RDLCK, 0), 'another process shares it')
    p.ask('setlk', fd, F_WRLCK, F_SETLKW)
    queued(3)
    other = Locker(a, 'build')
    other_fd = other.do('open')
    check_equal(other.do('getlk', other_fd, F_RDLCK), (F_WRLCK, p.pid), 'one that waits is in the way')
    q.do('setlk', qfd, F_UNLCK)
    r.do('setlk', rfd, F_UNLCK)
    p.got()
    free(p)

    # With slots F_GETLK tells whether a slot is left now, on each mount.
    with open(a.path('build', 'slots'), 'w', encoding='ascii') as file:
        file.write('2\n')
    q.do('setlk', qfd, F_WRLCK)
    check_equal(p.do('getlk', fd, F_WRLCK), None, 'one slot is left')
    check_equal(p.do('getlk', fd, F_RDLCK), (F_WRLCK, q.pid), 'none to share')
    r.do('setlk', rfd, F_WRLCK, F_SETLKW)
    check_equal(p.do('getlk', fd, F_WRLCK), (F_WRLCK, q.pid), 'no slot is left')
    with open(a.path('build', 'slots'), 'w', encoding='ascii') as file:
        file.write('3\n')
    other.do('setlk', other_fd, F_WRLCK, F_SETLKW)
    check_equal(r.do('getlk', rfd, F_WRLCK), None, 'the own lock, among three')
    other.do('setlk', other_fd, F_UNLCK)
    with open(a.path('build', 'slots'), 'w', encoding='ascii') as file:
        file.write('1\n')
    check_equal(p.do('getlk', fd, F_WRLCK), (F_WRLCK, q.pid), 'too many hold')
    free(q, r)

    # A close of any descriptor gives back the process's own lock, and no lock of others.
    p.do('setlk', fd, F_WRLCK)
    spare = p.do('open')
    check(int(p.do('read', spare, 64)) > 0, 'the process has it by every descriptor')
    q.ask('setlk', qfd, F_WRLCK, F_SETLKW)
    queued(2)
    p.do('close', spare)
    q.got()
    queued(1)
    spare = p.do('dup', fd)
    p.do('close', spare)
    p.fails(errno.EAGAIN, 'setlk', fd, F_WRLCK)   # q has the lock
    p.ask('setlk', fd, F_WRLCK, F_SETLKW)
    queued(2)
    q.kill()
    p.got()
    q = Locker(a, 'build')
    qfd = fds[q] = q.do('open')

    # A child does not inherit the lock, and the end of the child gives nothing back.
    child = p.do('fork_and', 'setlk', fd, F_WRLCK)
    check_equal(child, errno.EAGAIN, 'a child asks for what its parent has')
    q.fails(errno.EAGAIN, 'setlk', qfd, F_WRLCK)
    free(p)

    # OFD locks belong to the open file.
    p.do('setlk', fd, F_WRLCK, F_OFD_SETLKW)
    spare = p.do('open')
    p.fails(errno.EAGAIN, 'setlk', spare, F_WRLCK, F_OFD_SETLK)
    p.do('close', spare)
    p.do('close', p.do('dup', fd))
    check_equal(p.do('fork_and', 'setlk', fd, F_WRLCK, F_OFD_SETLK), 0, 'a child has it too')
    check(int(p.do('pread', fd, 64, 0)) > 0, 'it is held still')
    q.ask('setlk', qfd, F_WRLCK, F_OFD_SETLKW)
    queued(2)
    p.do('setlk', fd, F_UNLCK, F_OFD_SETLK)
    q.got()
    q.do('close', qfd)
    queued(0)
    qfd = fds[q] = q.do('open')

    # One process locks by both calls, in either order: it has one entry until both are given back.
    for first, second in ((('flock', fd, LOCK_EX), ('setlk', fd, F_WRLCK)),
                          (('setlk', fd, F_WRLCK), ('flock', fd, LOCK_EX | LOCK_NB)),
                          (('flock', fd, LOCK_SH), ('setlk', fd, F_WRLCK)),
                          (('setlk', fd, F_RDLCK), ('flock', fd, LOCK_EX)),
                          (('flock', fd, LOCK_EX), ('setlk', fd, F_RDLCK))):
        p.do(*first)
        p.do(*second)
        until(lambda: modes() == ['exclusive'], f'one entry for {first} and {second}')
        q.fails(errno.EAGAIN, 'flock', qfd, LOCK_SH | LOCK_NB)
        p.do('flock', fd, LOCK_UN)
        q.fails(errno.EAGAIN, 'flock', qfd, LOCK_SH | LOCK_NB)
        p.do('flock', fd, LOCK_EX)
        p.do('setlk', fd, F_UNLCK)
        q.fails(errno.EAGAIN, 'setlk', qfd, F_RDLCK)
        p.do('flock', fd, LOCK_UN)
        queued(0)

    # But two open files conflict, whatever other locks the process has.
    spare = p.do('open')
    p.do('flock', fd, LOCK_SH)
    p.do('setlk', fd, F_RDLCK)
    p.do('flock', spare, LOCK_SH)
    check_equal(modes(), ['shared', 'shared'], 'an entry for each open file')
    p.fails(errno.EAGAIN, 'flock', spare, LOCK_EX | LOCK_NB)
    p.do('flock', fd, LOCK_UN)
    p.do('setlk', fd, F_WRLCK)
    p.do('flock', fd, LOCK_EX)
    p.fails(errno.EAGAIN, 'flock', spare, LOCK_EX | LOCK_NB)
    p.do('close', fd)
    p.do('close', spare)
    queued(0)
    fd = fds[p] = p.do('open')

    # Two threads wait, by different calls or by the same call: one entry serves both.
    for calls in ((('flock', fd, LOCK_EX), ('setlk', fd, F_WRLCK, F_SETLKW)),
                  (('flock', fd, LOCK_EX), ('flock', fd, LOCK_EX)),
                  (('setlk', fd, F_WRLCK, F_SETLKW), ('setlk', fd, F_RDLCK, F_SETLKW)),
                  (('setlk', fd, F_RDLCK, F_SETLKW), ('setlk', fd, F_WRLCK, F_SETLKW)),
                  (('flock', fd, LOCK_SH), ('setlk', fd, F_WRLCK, F_SETLKW)),
                  (('flock', fd, LOCK_SH), ('setlk', fd, F_RDLCK, F_SETLKW))):
        q.do('flock', qfd, LOCK_EX)
        p.ask('in_threads', *calls)
        queued(3)
        q.do('flock', qfd, LOCK_UN)
        check_equal(p.got(), [0, 0], f'{calls} at a time')
        queued(1)
        p.do('flock', fd, LOCK_UN)
        free(p)

    # A thread waits, another thread closes the descriptor, and another process has the file open:
    # no lock is left without an owner.
    a.mkdir('gate')
    child = p.do('fork_and_keep')
    q.do('setlk', qfd, F_WRLCK)
    with open(a.path('gate', 'flock'), 'r+', encoding='ascii') as gate:
        flock(gate, LOCK_EX)
        p.ask('in_threads', ('setlk', fd, F_WRLCK, F_SETLKW),
              ('close_after', a.path('gate', 'flock'), fd))
        queued(2)
        until(lambda: len(server.entries('gate')) == 2, 'the other thread waits')
    check_equal(p.got(), [errno.EBADF, 0], 'closed by another thread')
    queued(1)
    q.do('setlk', qfd, F_UNLCK)
    queued(0)
    os.kill(child, signal.SIGKILL)
    fd = fds[p] = p.do('open')

    # Two threads of a process upgrade its lock: one of them may get EDEADLK.
    p.do('setlk', fd, F_RDLCK)
    q.do('setlk', qfd, F_RDLCK)
    p.ask('in_threads', ('setlk', fd, F_WRLCK, F_SETLKW), ('setlk', fd, F_WRLCK, F_SETLKW))
    queued(3)
    q.do('setlk', qfd, F_UNLCK)
    check(sorted(p.got()) in ([0, 0], [0, errno.EDEADLK]), 'two upgrades at a time')
    until(lambda: modes() == ['exclusive'], 'one entry is left')
    free(p)

    # The calls do not share an entry any more when another process has the locked file open.
    p.do('flock', fd, LOCK_EX)
    heir = p.do('fork_and_keep')
    p.do('close', fd)
    fd = fds[p] = p.do('open')
    p.fails(errno.EAGAIN, 'setlk', fd, F_WRLCK)
    os.kill(heir, 9)
    p.do('setlk', fd, F_WRLCK, F_SETLKW)

    # The kernel's own checks.
    reader = q.do('open', os.O_RDONLY)
    q.fails(errno.EBADF, 'setlk', reader, F_WRLCK)
    q.do('setlk', reader, F_UNLCK)
    free(p)
    q.do('setlk', reader, F_RDLCK)
    check_equal(modes(), ['shared'], 'shared by a reader')


run(test)
