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


class Scene:
    """Two mounts, and three processes on a and b that have the lock file open: p and q on a, r on b."""

    def __init__(self, case):
        self.server = case.server()
        self.a, self.b = case.mount(self.server, 'a'), case.mount(self.server, 'b')
        self.a.mkdir('build')
        until(lambda: 'build' in self.b.locks(), 'b sees the lock')
        self.p, self.q, self.r = self.locker(), self.locker(), self.locker(self.b)

    def locker(self, mount=None):
        locker = Locker(mount or self.a, 'build')
        locker.fd = locker.do('open')
        return locker

    def queued(self, count):
        until(lambda: len(self.server.entries('build')) == count, f'{count} in the queue')

    def modes(self):
        return [name.split('-')[1] for name in self.a.queue('build')]

    def free(self, *lockers):
        for locker in lockers:
            locker.do('setlk', locker.fd, F_UNLCK)
        self.queued(0)

    def play(self, what):
        """Nobody has the lock before and after it."""
        self.queued(0)
        what(self, self.p, self.q, self.r)
        for locker in (self.p, self.q, self.r):
            locker.do('close', locker.fd)
            locker.fd = locker.do('open')
        self.queued(0)


def exclusive_and_shared(scene, p, q, r):
    """Exclusive and shared."""
    p.do('lockf', p.fd, LOCK_EX)
    p.do('setlk', p.fd, F_WRLCK)
    check_equal(scene.modes(), ['exclusive'], 'the queue')
    check_equal(int(p.do('read', p.fd, 64)), int(scene.a.fields('build', 'queue', scene.a.queue('build')[0])['token']),
                'the token')
    for other in (q, r):
        other.fails(errno.EAGAIN, 'lockf', other.fd, LOCK_EX | LOCK_NB)
        other.fails(errno.EAGAIN, 'setlk', other.fd, F_RDLCK)
    check_errno(errno.EAGAIN, os.open, scene.b.path('build', 'try'), os.O_RDWR)
    q.ask('setlk', q.fd, F_RDLCK, F_SETLKW)
    scene.queued(2)
    r.ask('lockf', r.fd, LOCK_SH)
    scene.queued(3)
    p.do('lockf', p.fd, LOCK_UN)
    q.got()
    r.got()
    check_equal(scene.modes(), ['shared', 'shared'], 'the queue')
    scene.free(q, r)


def whole_or_nothing(scene, p, q, r):
    """The whole file, or nothing."""
    for place in ((0, 2), (1, 1), (1, 0), (0, 0, os.SEEK_CUR), (5, 10)):
        p.do('lseek', p.fd, 3, os.SEEK_SET)
        for kind in (F_RDLCK, F_WRLCK, F_UNLCK):
            p.fails(errno.EINVAL, 'setlk', p.fd, kind, F_SETLKW, *place)
    p.do('lseek', p.fd, 0, os.SEEK_SET)
    p.do('setlk', p.fd, F_WRLCK, F_SETLKW, 0, 0, os.SEEK_CUR)
    p.fails(errno.EINVAL, 'setlk', p.fd, F_UNLCK, F_SETLKW, 0, 1)
    q.fails(errno.EAGAIN, 'setlk', q.fd, F_RDLCK)
    scene.free(p)


def first_byte(scene, p, q, r):
    """The first byte stands for the whole file; but a part of a lock is not locked or unlocked."""
    for locked, asked in ((0, 1), (0, 0)), ((0, 0), (0, 1)), ((0, 1), (0, 1)):
        p.do('setlk', p.fd, F_WRLCK, F_SETLKW, *locked)
        check_equal(scene.modes(), ['exclusive'], f'the queue, {locked}')
        for other in (q, r):
            other.fails(errno.EAGAIN, 'setlk', other.fd, F_RDLCK, F_SETLK, *asked)
        check_equal(q.do('getlk', q.fd, F_WRLCK), (F_WRLCK, p.pid), 'F_GETLK')
        check_equal(p.do('getlk', p.fd, F_WRLCK), None, 'the own lock')
        p.fails(errno.EINVAL, 'setlk', p.fd, F_WRLCK, F_SETLKW, 1, 1)
        if locked != asked:
            for kind in (F_RDLCK, F_WRLCK):
                p.fails(errno.EINVAL, 'setlk', p.fd, kind, F_SETLKW, *asked)
        q.ask('setlk', q.fd, F_WRLCK, F_SETLKW, *asked)
        scene.queued(2)
        if locked == (0, 0) and asked == (0, 1):
            p.fails(errno.EINVAL, 'setlk', p.fd, F_UNLCK, F_SETLKW, *asked)
            asked = locked
        check(not q.answered(), 'the other waits')
        p.do('setlk', p.fd, F_UNLCK, F_SETLKW, *asked)
        q.got()
        check(int(q.do('pread', q.fd, 64, 0)) > 0, 'the token')
        p.ask('setlk', p.fd, F_WRLCK, F_SETLKW, 0, 1)
        scene.queued(2)
        q.do('close', q.fd)
        p.got()
        p.do('setlk', p.fd, F_RDLCK, F_SETLKW, 0, 1)
        p.do('setlk', p.fd, F_WRLCK, F_SETLKW, 0, 1)
        p.do('setlk', p.fd, F_UNLCK, F_SETLKW, 0, 1)
        scene.queued(0)
        q.fd = q.do('open')
    p.do('setlk', p.fd, F_WRLCK, F_SETLKW, 0, 1)
    scene.a.reload()
    q.fails(errno.EAGAIN, 'setlk', q.fd, F_RDLCK, F_SETLK, 0, 1)
    p.fails(errno.EINVAL, 'setlk', p.fd, F_WRLCK)
    p.do('setlk', p.fd, F_UNLCK, F_SETLKW, 0, 1)
    p.do('flock', p.fd, LOCK_EX)
    p.do('setlk', p.fd, F_WRLCK, F_SETLKW, 0, 1)
    check_equal(scene.modes(), ['exclusive'], 'one entry for both calls')
    p.do('flock', p.fd, LOCK_UN)
    p.do('setlk', p.fd, F_UNLCK)
    scene.queued(0)


def downgrade(scene, p, q, r):
    """Down and up again: the entry stays exclusive, and no other taker comes in between."""
    p.do('setlk', p.fd, F_WRLCK)
    token = p.do('pread', p.fd, 64, 0)
    q.ask('setlk', q.fd, F_WRLCK, F_SETLKW)
    scene.queued(2)
    p.do('setlk', p.fd, F_RDLCK)
    check_equal(scene.modes(), ['exclusive', 'exclusive'], 'the queue after a downgrade')
    r.fails(errno.EAGAIN, 'setlk', r.fd, F_RDLCK)
    p.do('setlk', p.fd, F_WRLCK)
    check_equal(p.do('pread', p.fd, 64, 0), token, 'the same token')
    check(not q.answered(), 'the other waits')
    p.do('setlk', p.fd, F_UNLCK)
    q.got()
    scene.free(q)


def upgrade(scene, p, q, r):
    """Upgrade from shared: alone, beside others, and while another process waits for its upgrade."""
    p.do('setlk', p.fd, F_RDLCK)
    token = int(p.do('pread', p.fd, 64, 0))
    p.do('setlk', p.fd, F_WRLCK)
    until(lambda: scene.modes() == ['exclusive'], 'one entry took the place of the other')
    check(int(p.do('pread', p.fd, 64, 0)) > token, 'the token of the new entry')
    scene.free(p)
    for other in (q, r):
        p.do('setlk', p.fd, F_RDLCK)
        other.do('setlk', other.fd, F_RDLCK)
        p.fails(errno.EAGAIN, 'setlk', p.fd, F_WRLCK)
        scene.queued(2)
        p.ask('setlk', p.fd, F_WRLCK, F_SETLKW)
        scene.queued(3)
        other.fails(errno.EAGAIN, 'setlk', other.fd, F_WRLCK)
        other.fails(errno.EDEADLK, 'setlk', other.fd, F_WRLCK, F_SETLKW)
        check(not p.answered() and int(other.do('pread', other.fd, 64, 0)) > 0,
              'the other shares still')
        other.do('setlk', other.fd, F_UNLCK)
        p.got()
        until(lambda: scene.modes() == ['exclusive'], 'the upgrade holds')
        other.fails(errno.EAGAIN, 'setlk', other.fd, F_RDLCK)
        scene.free(p)


def unlock_for_an_upgrade(scene, p, q, r):
    """While an upgrade waits, an unlock by the taker in its way gives it the lock."""
    p.do('setlk', p.fd, F_RDLCK)
    q.do('setlk', q.fd, F_RDLCK)
    p.ask('setlk', p.fd, F_WRLCK, F_SETLKW)
    scene.queued(3)
    free_of = [name for name in scene.a.queue('build') if name.split('-')[2] == str(p.pid)]
    check_equal([name.split('-')[1] for name in free_of], ['shared', 'exclusive'], 'both entries')
    q.do('setlk', q.fd, F_UNLCK)
    p.got()
    scene.free(p)


def getlk(scene, p, q, r):
    """F_GETLK."""
    check_equal(p.do('getlk', p.fd, F_WRLCK), None, 'nobody is in the way')
    q.do('setlk', q.fd, F_WRLCK)
    for kind in (F_RDLCK, F_WRLCK):
        check_equal(p.do('getlk', p.fd, kind), (F_WRLCK, q.pid), 'the holder in the way')
        check_equal(r.do('getlk', r.fd, kind), (F_WRLCK, 0), 'seen from another host')
        check_equal(q.do('getlk', q.fd, kind), None, 'the own lock')
        check_equal(p.do('getlk', p.fd, kind, F_OFD_GETLK), (F_WRLCK, -1), 'OFD')
    p.ask('setlk', p.fd, F_WRLCK, F_SETLKW)
    scene.queued(2)
    check_equal(q.do('getlk', q.fd, F_WRLCK), None, 'the own lock, while another one waits')
    q.do('setlk', q.fd, F_UNLCK)
    p.got()
    p.do('setlk', p.fd, F_UNLCK)
    q.do('setlk', q.fd, F_WRLCK)
    q.do('setlk', q.fd, F_RDLCK)
    check_equal(p.do('getlk', p.fd, F_WRLCK), (F_RDLCK, q.pid), 'a lock that was downgraded')
    q.do('setlk', q.fd, F_UNLCK)
    q.do('setlk', q.fd, F_RDLCK)
    check_equal(p.do('getlk', p.fd, F_RDLCK), None, 'one could share')
    check_equal(p.do('getlk', p.fd, F_WRLCK), (F_RDLCK, q.pid), 'a shared lock')
    check_equal(q.do('getlk', q.fd, F_WRLCK), None, 'only the own lock')
    q.do('setlk', q.fd, F_WRLCK)
    until(lambda: scene.modes() == ['exclusive'], 'an upgrade')
    check_equal(p.do('getlk', p.fd, F_WRLCK), (F_WRLCK, q.pid), 'a lock that was upgraded')
    q.do('setlk', q.fd, F_UNLCK)
    q.do('setlk', q.fd, F_RDLCK)
    r.do('setlk', r.fd, F_RDLCK)
    check_equal(q.do('getlk', q.fd, F_WRLCK), (F_RDLCK, 0), 'another process shares it')
    p.ask('setlk', p.fd, F_WRLCK, F_SETLKW)
    scene.queued(3)
    other = scene.locker()
    check_equal(other.do('getlk', other.fd, F_RDLCK), (F_WRLCK, p.pid), 'one that waits is in the way')
    q.do('setlk', q.fd, F_UNLCK)
    r.do('setlk', r.fd, F_UNLCK)
    p.got()
    scene.free(p)


def getlk_with_slots(scene, p, q, r):
    """With slots F_GETLK tells whether a slot is left now, on each mount."""
    other = scene.locker()
    with open(scene.a.path('build', 'slots'), 'w', encoding='ascii') as file:
        file.write('2\n')
    q.do('setlk', q.fd, F_WRLCK)
    check_equal(p.do('getlk', p.fd, F_WRLCK), None, 'one slot is left')
    check_equal(p.do('getlk', p.fd, F_RDLCK), (F_WRLCK, q.pid), 'none to share')
    r.do('setlk', r.fd, F_WRLCK, F_SETLKW)
    check_equal(p.do('getlk', p.fd, F_WRLCK), (F_WRLCK, q.pid), 'no slot is left')
    with open(scene.a.path('build', 'slots'), 'w', encoding='ascii') as file:
        file.write('3\n')
    other.do('setlk', other.fd, F_WRLCK, F_SETLKW)
    check_equal(r.do('getlk', r.fd, F_WRLCK), None, 'the own lock, among three')
    other.do('setlk', other.fd, F_UNLCK)
    with open(scene.a.path('build', 'slots'), 'w', encoding='ascii') as file:
        file.write('1\n')
    check_equal(p.do('getlk', p.fd, F_WRLCK), (F_WRLCK, q.pid), 'too many hold')
    scene.free(q, r)


def close_gives_back(scene, p, q, r):
    """A close of any descriptor gives back the process's own lock, and no lock of others."""
    p.do('setlk', p.fd, F_WRLCK)
    spare = p.do('open')
    check(int(p.do('read', spare, 64)) > 0, 'the process has it by every descriptor')
    q.ask('setlk', q.fd, F_WRLCK, F_SETLKW)
    scene.queued(2)
    p.do('close', spare)
    q.got()
    scene.queued(1)
    spare = p.do('dup', p.fd)
    p.do('close', spare)
    p.fails(errno.EAGAIN, 'setlk', p.fd, F_WRLCK)   # q has the lock
    p.ask('setlk', p.fd, F_WRLCK, F_SETLKW)
    scene.queued(2)
    q.kill()
    p.got()
    scene.q = scene.locker()


def child(scene, p, q, r):
    """A child does not inherit the lock, and the end of the child gives nothing back."""
    p.do('setlk', p.fd, F_WRLCK)
    child = p.do('fork_and', 'setlk', p.fd, F_WRLCK)
    check_equal(child, errno.EAGAIN, 'a child asks for what its parent has')
    q.fails(errno.EAGAIN, 'setlk', q.fd, F_WRLCK)
    scene.free(p)


def open_file_description(scene, p, q, r):
    """OFD locks belong to the open file."""
    p.do('setlk', p.fd, F_WRLCK, F_OFD_SETLKW)
    spare = p.do('open')
    p.fails(errno.EAGAIN, 'setlk', spare, F_WRLCK, F_OFD_SETLK)
    p.do('close', spare)
    p.do('close', p.do('dup', p.fd))
    check_equal(p.do('fork_and', 'setlk', p.fd, F_WRLCK, F_OFD_SETLK), 0, 'a child has it too')
    check(int(p.do('pread', p.fd, 64, 0)) > 0, 'it is held still')
    q.ask('setlk', q.fd, F_WRLCK, F_OFD_SETLKW)
    scene.queued(2)
    p.do('setlk', p.fd, F_UNLCK, F_OFD_SETLK)
    q.got()
    q.do('close', q.fd)
    scene.queued(0)
    q.fd = q.do('open')


def both_calls(scene, p, q, r):
    """One process locks by both calls, in either order: it has one entry until both are given back."""
    for first, second in ((('flock', p.fd, LOCK_EX), ('setlk', p.fd, F_WRLCK)),
                          (('setlk', p.fd, F_WRLCK), ('flock', p.fd, LOCK_EX | LOCK_NB)),
                          (('flock', p.fd, LOCK_SH), ('setlk', p.fd, F_WRLCK)),
                          (('setlk', p.fd, F_RDLCK), ('flock', p.fd, LOCK_EX)),
                          (('flock', p.fd, LOCK_EX), ('setlk', p.fd, F_RDLCK))):
        p.do(*first)
        p.do(*second)
        until(lambda: scene.modes() == ['exclusive'], f'one entry for {first} and {second}')
        q.fails(errno.EAGAIN, 'flock', q.fd, LOCK_SH | LOCK_NB)
        p.do('flock', p.fd, LOCK_UN)
        q.fails(errno.EAGAIN, 'flock', q.fd, LOCK_SH | LOCK_NB)
        p.do('flock', p.fd, LOCK_EX)
        p.do('setlk', p.fd, F_UNLCK)
        q.fails(errno.EAGAIN, 'setlk', q.fd, F_RDLCK)
        p.do('flock', p.fd, LOCK_UN)
        scene.queued(0)


def two_files(scene, p, q, r):
    """But two open files conflict, whatever other locks the process has."""
    spare = p.do('open')
    p.do('flock', p.fd, LOCK_SH)
    p.do('setlk', p.fd, F_RDLCK)
    p.do('flock', spare, LOCK_SH)
    check_equal(scene.modes(), ['shared', 'shared'], 'an entry for each open file')
    p.fails(errno.EAGAIN, 'flock', spare, LOCK_EX | LOCK_NB)
    p.do('flock', p.fd, LOCK_UN)
    p.do('setlk', p.fd, F_WRLCK)
    p.do('flock', p.fd, LOCK_EX)
    p.fails(errno.EAGAIN, 'flock', spare, LOCK_EX | LOCK_NB)
    p.do('close', p.fd)
    p.do('close', spare)
    scene.queued(0)
    p.fd = p.do('open')


def two_threads(scene, p, q, r):
    """Two threads wait, by different calls or by the same call: one entry serves both."""
    for calls in ((('flock', p.fd, LOCK_EX), ('setlk', p.fd, F_WRLCK, F_SETLKW)),
                  (('flock', p.fd, LOCK_EX), ('flock', p.fd, LOCK_EX)),
                  (('setlk', p.fd, F_WRLCK, F_SETLKW), ('setlk', p.fd, F_RDLCK, F_SETLKW)),
                  (('setlk', p.fd, F_RDLCK, F_SETLKW), ('setlk', p.fd, F_WRLCK, F_SETLKW)),
                  (('flock', p.fd, LOCK_SH), ('setlk', p.fd, F_WRLCK, F_SETLKW)),
                  (('flock', p.fd, LOCK_SH), ('setlk', p.fd, F_RDLCK, F_SETLKW))):
        q.do('flock', q.fd, LOCK_EX)
        p.ask('in_threads', *calls)
        scene.queued(3)
        q.do('flock', q.fd, LOCK_UN)
        check_equal(p.got(), [0, 0], f'{calls} at a time')
        scene.queued(1)
        p.do('flock', p.fd, LOCK_UN)
        scene.free(p)


def closed_by_a_thread(scene, p, q, r):
    """A thread waits, another thread closes the descriptor, and another process has the file open: no lock is left
    without an owner."""
    scene.a.mkdir('gate')
    child = p.do('fork_and_keep')
    q.do('setlk', q.fd, F_WRLCK)
    with open(scene.a.path('gate', 'flock'), 'r+', encoding='ascii') as gate:
        flock(gate, LOCK_EX)
        p.ask('in_threads', ('setlk', p.fd, F_WRLCK, F_SETLKW),
              ('close_after', scene.a.path('gate', 'flock'), p.fd))
        scene.queued(2)
        until(lambda: len(scene.server.entries('gate')) == 2, 'the other thread waits')
    check_equal(p.got(), [errno.EBADF, 0], 'closed by another thread')
    scene.queued(1)
    q.do('setlk', q.fd, F_UNLCK)
    scene.queued(0)
    os.kill(child, signal.SIGKILL)
    p.fd = p.do('open')


def two_upgrades(scene, p, q, r):
    """Two threads of a process upgrade its lock: one of them may get EDEADLK."""
    p.do('setlk', p.fd, F_RDLCK)
    q.do('setlk', q.fd, F_RDLCK)
    p.ask('in_threads', ('setlk', p.fd, F_WRLCK, F_SETLKW), ('setlk', p.fd, F_WRLCK, F_SETLKW))
    scene.queued(3)
    q.do('setlk', q.fd, F_UNLCK)
    check(sorted(p.got()) in ([0, 0], [0, errno.EDEADLK]), 'two upgrades at a time')
    until(lambda: scene.modes() == ['exclusive'], 'one entry is left')
    scene.free(p)


def heir(scene, p, q, r):
    """The calls do not share an entry any more when another process has the locked file open."""
    p.do('flock', p.fd, LOCK_EX)
    heir = p.do('fork_and_keep')
    p.do('close', p.fd)
    p.fd = p.do('open')
    p.fails(errno.EAGAIN, 'setlk', p.fd, F_WRLCK)
    os.kill(heir, 9)
    p.do('setlk', p.fd, F_WRLCK, F_SETLKW)


def kernel_checks(scene, p, q, r):
    """The kernel's own checks."""
    p.do('setlk', p.fd, F_WRLCK)
    reader = q.do('open', os.O_RDONLY)
    q.fails(errno.EBADF, 'setlk', reader, F_WRLCK)
    q.do('setlk', reader, F_UNLCK)
    scene.free(p)
    q.do('setlk', reader, F_RDLCK)
    check_equal(scene.modes(), ['shared'], 'shared by a reader')


def test(case):
    scene = Scene(case)
    for what in (exclusive_and_shared, whole_or_nothing, first_byte, downgrade, upgrade, unlock_for_an_upgrade,
                 getlk, getlk_with_slots, close_gives_back, child, open_file_description, both_calls, two_files,
                 two_threads, closed_by_a_thread, two_upgrades, heir, kernel_checks):
        scene.play(what)


run(test)
