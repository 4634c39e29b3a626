#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""After a reload the guardian still knows all its processes: losers are stopped, also when the
daemon is dead, and no other process is. Earlier holders can be evicted."""

import contextlib
from fcntl import LOCK_EX

from harness import check, check_equal, command, run, until
from locker import Locker


def name_of(pid):
    with open(f'/proc/{pid}/comm', encoding='ascii') as file:
        return file.read().strip()


def guards(mount):
    """Guardians of the mount. Their parents do not matter: after a crash they have another one."""
    found = []
    for pid in mount.case.daemons():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):    # it has ended
            with open(f'/proc/{pid}/cmdline', encoding='utf-8') as file:
                if mount.directory in file.read() and name_of(pid) == 'zklockfs-guard':
                    found.append(pid)
    return found


def evicted(case, server):
    mount = case.mount(server, 'a', session='6s', options=['on_lost=kill'])
    mount.allow('lost')
    for name in ('build', 'file', 'other'):
        mount.mkdir(name)
    before = until(lambda: guards(mount), 'the guardian has its name')
    holder, other = mount.take('build').held(), mount.take('other').held()
    locker = Locker(mount, 'file')
    locker.do('flock', locker.do('open'), LOCK_EX)
    bystander = Locker(mount, 'file')
    bystander.do('open')
    mount.reload()
    mount.reload()
    check_equal(guards(mount), before, 'the guardian is the same one')
    late = mount.take('build')
    until(lambda: len(server.entries('build')) == 2, 'a waiter queues')
    entry = mount.queue('build')[0]
    with open(mount.path('build', 'queue', entry), 'w', encoding='ascii') as file:
        file.write('evict\n')
    holder.gone()
    late.held()
    entry, = server.entries('file')
    server.zk.delete('/locks/file/' + entry)
    locker.gone()
    check(not bystander.ended() and not other.ended(), 'a process without the lost lock was stopped')
    late.release()
    other.release()


def dead(case, server):
    """The daemon that took over is killed."""
    mount = case.mount(server, 'b', session='6s', options=['on_lost=term'])
    mount.allow('.')
    mount.mkdir('deep')
    holder = mount.take('deep').held()
    mount.reload()
    mount.crash()
    holder.gone()
    until(lambda: not server.entries('deep'), 'the session has ended')
    command(['umount', '-l', mount.directory])


def test(case):
    server = case.server(tick_ms=500)
    case.at_once(lambda part: evicted(part, server), lambda part: dead(part, server))


run(test)
