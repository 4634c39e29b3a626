#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The kernel has no memory left for the cgroup of a mount. It kills the daemon, which grows, and
not the supervisor. When there is memory again, another daemon goes on, and no user has noticed.

Run it by hand: it needs cgroups with memory, of version 1 or 2, and the right to make one."""

import contextlib
import os
import threading
import time

from crowd import Crowd
from harness import ALICE, Stopwatch, check, check_equal, run, until

MIB = 1024 * 1024
ROOM = MIB
CROWD = 3000             # needs some 6 MiB


def directory():
    """The directory of cgroups with memory, the names of three files in each, and a word for
    `no limit`."""
    if os.path.exists('/sys/fs/cgroup/cgroup.controllers'):
        with contextlib.suppress(OSError), open('/sys/fs/cgroup/cgroup.subtree_control', 'w', encoding='ascii') as file:
            file.write('+memory')
        names = '/sys/fs/cgroup', 'memory.max', 'memory.current', 'memory.events', 'max'
    else:
        names = '/sys/fs/cgroup/memory', 'memory.limit_in_bytes', 'memory.usage_in_bytes', 'memory.oom_control', '-1'
    return names


class Cgroup:
    def __init__(self):
        top, self.limit_name, self.usage_name, self.events_name, self.no_limit = directory()
        self.path = f'{top}/zklockfs-test-{os.getpid()}'
        os.mkdir(self.path)
        check(os.path.exists(self._name(self.limit_name)), f'{top} has no memory')
        with open('/proc/self/cgroup', encoding='ascii') as lines:
            own = next(line.rstrip('\n').split(':')[2] for line in lines
                       if ':memory:' in line or (line.startswith('0::') and self.no_limit == 'max'))
        self.before = top + own

    def _name(self, name):
        return f'{self.path}/{name}'

    def enter(self):
        self._write(self._name('cgroup.procs'), os.getpid())

    def leave(self):
        self._write(f'{self.before}/cgroup.procs', os.getpid())

    def pids(self):
        with open(self._name('cgroup.procs'), encoding='ascii') as lines:
            return {int(line) for line in lines}

    @staticmethod
    def _write(name, what):
        with open(name, 'w', encoding='ascii') as file:
            file.write(f'{what}\n')

    def limit(self, size=None):
        self._write(self._name(self.limit_name), self.no_limit if size is None else size)

    def usage(self):
        with open(self._name(self.usage_name), encoding='ascii') as file:
            return int(file.read())

    def kills(self):
        with open(self._name(self.events_name), encoding='ascii') as lines:
            return sum(int(line.split()[1]) for line in lines if line.startswith('oom_kill '))

    def give_room_after_a_kill(self):
        while self.kills() == 0:
            time.sleep(0.0005)
        self.limit()

    def end(self):
        until(lambda: not self.pids(), 'all in the cgroup have ended')
        os.rmdir(self.path)


def test(case):
    cgroup = Cgroup()
    server = case.server()
    cgroup.enter()
    mount = case.mount(server, session='30s')
    cgroup.leave()
    supervisor, daemon = mount.process.pid, mount.daemon
    check({supervisor, daemon} <= cgroup.pids(), 'the mount is not in the cgroup')
    mount.mkdir('build')
    os.chmod(mount.path('build', 'lock'), 0o666)
    holder = mount.take('build', uid=ALICE).held()
    token = holder.token()
    waiter = mount.take('build', uid=ALICE)
    until(lambda: len(server.entries('build')) == 2, 'one waits')
    room = threading.Thread(target=cgroup.give_room_after_a_kill, daemon=True)
    room.start()
    cgroup.limit(cgroup.usage() + ROOM)
    watch = Stopwatch()
    crowd = Crowd(mount.path('build', 'lock'), CROWD)
    until(lambda: not room.is_alive(), 'the kernel kills for want of memory', 60)
    print(f'killed after {watch.seconds():.1f} s: {cgroup.kills()}')
    check(os.path.exists(f'/proc/{supervisor}'), 'the keeper was killed')
    until(lambda: mount.daemon not in (0, daemon), 'another daemon is started')
    check_equal(mount.metric('adoptions_total'), 1, 'the adoptions')
    check_equal(holder.token(), token, 'the token')
    holder.do('fsync')
    until(lambda: mount.status()['waiters'] == str(CROWD + 1), 'all wait', 60)
    mount.said('after a crash (signal 9)')
    holder.release()
    waiter.held().release()
    check_equal(crowd.served(), CROWD, 'waiters that were served')
    mount.unmount()
    cgroup.end()


run(test)
