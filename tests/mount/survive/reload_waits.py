#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A call that waits for a lock waits on over a reload, also one that would be refused by now: two
threads of a process ask for the whole file and for its first byte, and one of them has its lock
when another program takes over. When the process ends, nothing of it is left."""

import fcntl
import os
import signal

from harness import check, check_equal, run, until
from locker import Locker


def test(case):
    server = case.server()
    mount = case.mount(server, mode='-d')
    mount.mkdir('build')
    first, process = Locker(mount, 'build'), Locker(mount, 'build')
    held = first.do('open')
    first.do('flock', held, fcntl.LOCK_EX)
    fd = process.do('open')
    process.ask('in_threads', ('setlk', fd, fcntl.F_WRLCK, fcntl.F_SETLKW), ('setlk', fd, fcntl.F_WRLCK, fcntl.F_SETLKW, 0, 1))
    until(lambda: len(server.entries('build')) == 3, 'both threads wait')
    first.do('flock', held, fcntl.LOCK_UN)
    until(lambda: (mount.status()['holders'], mount.status()['waiters']) == ('1', '1'), 'one has its lock')

    mount.reload()
    mount.said('has taken over')
    check(': EINVAL after' not in mount.log(), 'the call that waits is answered')
    os.kill(process.pid, signal.SIGKILL)
    first.do('flock', held, fcntl.LOCK_EX)
    until(lambda: len(server.entries('build')) == 1, 'the process has left nothing')
    check_equal((mount.metric('reloads_total'), mount.metric('adoptions_total')), (1, 0), 'reloads and crashes')


run(test)
