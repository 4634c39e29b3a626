#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A process stands still in exec, on a file of another filesystem that hangs, and with it every
process that reads its stat (rule 29). The process holds a lock, is the parent of a taker, is the
opener of a locked file, or does nothing else. Takes and heartbeats go on, and the mount leaves
when it is told to, or is aborted."""

import errno
import os
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN

from clan import Clan
from harness import Stopwatch, check, check_equal, command, libc, run, until
from hungfs import HungFs

MNT_FORCE, MNT_DETACH = 1, 2
NOW = os.O_RDWR | os.O_NONBLOCK


def test(case):
    server = case.server(tick_ms=500)
    mount = case.mount(server, 'a', session='30s', options=['on_lost=kill'])
    mount.mkdir('build')
    lock, reentrant = mount.path('build', 'lock'), mount.path('build', 'reentrant')
    hung, clan = HungFs(case), Clan(case)
    bystander, parent, stranger = clan.member(), clan.member(), clan.member()
    child = parent.fork()
    watch = Stopwatch()

    # The parent holds, and its child joins; a process that does not descend from it waits.
    held = parent.open(lock).held()
    held.do('set_inheritable', True)
    flock = parent.open(mount.path('build', 'flock')).held()
    flock.do('set_inheritable', True)
    for member in (bystander, parent):
        member.become(hung.path, 'sleep', '1000')
        hung.caught()
    stranger.refused(errno.EAGAIN, reentrant, NOW)
    joined = child.open(reentrant).held()
    joined.do('fsync')
    value = child.open(mount.path('build', 'value'), os.O_WRONLY).held()
    value.do('write', b'by a child')
    value.close()
    joined.close()
    check_equal(mount.read('build', 'value'), 'by a child', 'the value')
    waiter = stranger.open(lock)
    until(lambda: len(server.entries('build')) == 2, 'the stranger queues')
    watch.check(0, 5, 'all of that')

    # The lease goes on being extended.
    until(lambda: int(mount.status()['lease_left'][:-2]) > 20000, 'the lease is good')
    check(not waiter.answered(), 'the stranger holds beside the parent')

    # Told to leave: the time to drain is over, the holder has lost, and the daemon ends.
    drained = case.mount(server, 'b', session='10s', options=['drain=200ms'])
    drained.allow('time to drain|lock is lost')
    drained.mkdir('drained')
    holder, opener = clan.member(), clan.member()
    kept = holder.open(drained.path('drained', 'lock')).held()
    kept.do('set_inheritable', True)
    shared = opener.open(mount.path('build', 'flock')).held()
    shared.do('set_inheritable', True)
    locker = opener.fork()
    for member in (holder, opener):
        member.become(hung.path, 'sleep', '1000')
        hung.caught()
    watch = Stopwatch()
    drained.process.terminate()
    drained.check_end()
    watch.check(0, 5, 'leaving')

    # Aborted while a process holds: its open files cannot be seen, so its entry stays until the
    # session is over.
    aborted = case.mount(server, 'c', session='10s')
    aborted.allow('.')
    aborted.mkdir('aborted')
    holder = clan.member()
    kept = holder.open(aborted.path('aborted', 'lock')).held()
    kept.do('set_inheritable', True)
    holder.become(hung.path, 'sleep', '1000')
    hung.caught()
    watch = Stopwatch()
    libc.umount2(aborted.directory.encode(), MNT_FORCE)
    # Before the daemon has seen that the mount point is dead, it would look like an ordinary unmount.
    aborted.said('was ended by force')
    libc.umount2(aborted.directory.encode(), MNT_DETACH)
    aborted.check_end(status=32)
    watch.check(0, 5, 'leaving after an abort')
    check_equal(len(server.entries('aborted')), 1, 'the entry of a process that may be at work')

    # A child locks a file, while the process that has opened the file stands still.
    check_equal(errno_of_flock(locker, shared, LOCK_EX | LOCK_NB), errno.EAGAIN, 'flock while it is held')
    hung.end()
    parent.kill()
    waiter.held().close()
    locker.ask('flock', shared.number, LOCK_EX)
    locker.ask('flock', shared.number, LOCK_UN)
    until(lambda: not server.entries('aborted') and not server.entries('drained'), 'the sessions are over')
    check_equal(command(['ps', '-e'])[0], 0, 'ps')


def errno_of_flock(member, opening, operation):
    try:
        member.ask('flock', opening.number, operation)
    except OSError as err:
        return err.errno
    return 0


run(test)
