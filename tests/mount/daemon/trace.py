#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""With `-d` each request has a log line with operation, file, process, user, answer and time,
however many requests there are. Without `-d` no request has a line."""

import errno
import fcntl
import os
import re
import signal

from harness import ALICE, check, check_errno, check_user, run, until
from locker import Locker


def test(case):
    server = case.server()
    mount = case.mount(server, 'a', mode='-d')
    quiet = case.mount(server, 'b')

    def line(text, least_ms=0.0, most_ms=20000.0):
        """Wait for this line, as another process writes the log. The pattern's %s is the time."""
        def found():
            match = re.search(f'^zklockfs: {mount.directory}: {text}'.replace('%s', r'(\d+\.\d{3}) ms') + '$',
                              mount.log(), re.MULTILINE)
            return match and [match]
        times = until(found, f'the line {text}')[0].groups()
        check(all(least_ms <= float(ms) <= most_ms for ms in times), f'{text}: {times} ms')

    ours = os.getpid()
    mount.mkdir('team')
    mount.mkdir('team/build')
    os.chmod(mount.path('team/build/lock'), 0o666)
    line(f'mkdir team by pid {ours}, uid 0: success after %s')
    line(f'mkdir team/build by pid {ours}, uid 0: success after %s')
    check_errno(errno.ENOENT, os.stat, mount.path('team/none'))
    line(f'lookup team/none by pid {ours}, uid 0: ENOENT after %s')

    # Why did an open fail, and how long did each open wait?
    holder = mount.take('team/build').held()
    line(fr'open O_RDWR team/build/lock by pid {holder.pid}, uid 0: success after %s', 0, 5000)
    check_errno(errno.EAGAIN, os.open, mount.path('team/build/try'), os.O_WRONLY)
    line(fr'open O_WRONLY team/build/try by pid {ours}, uid 0: EAGAIN after %s')
    check_user(errno.EAGAIN, ALICE, os.open, mount.path('team/build/lock'), os.O_RDWR | os.O_NONBLOCK)
    line(fr'open O_RDWR\|O_NONBLOCK team/build/lock by pid \d+, uid {ALICE}: EAGAIN after %s')
    check_errno(errno.ETIMEDOUT, os.open, mount.path('team/build/lock@300ms'), os.O_RDWR)
    line(fr'open O_RDWR team/build/lock@300ms by pid {ours}, uid 0: ETIMEDOUT after %s', 300)

    waiter = mount.take('team/build')
    until(lambda: len(server.entries('team/build')) == 2, 'the waiter queues')
    waiter.kill(signal.SIGUSR1)
    waiter.refused(errno.EINTR)
    line(fr'interrupt of open O_RDWR team/build/lock by pid {waiter.pid}, uid 0')
    line(fr'open O_RDWR team/build/lock by pid {waiter.pid}, uid 0: EINTR after %s')
    holder.release()
    line(r'release team/build/lock by pid \d+, uid 0: success after %s')

    mount.mkdir('other')
    process = Locker(mount, 'other')
    first, second = process.do('open'), process.do('open')
    process.do('flock', first, fcntl.LOCK_EX)
    line(fr'flock LOCK_EX other/flock by pid {process.pid}, uid 0: success after %s')
    process.fails(errno.EAGAIN, 'flock', second, fcntl.LOCK_SH | fcntl.LOCK_NB)
    line(fr'flock LOCK_SH\|LOCK_NB other/flock by pid {process.pid}, uid 0: EAGAIN after %s')
    process.do('flock', first, fcntl.LOCK_UN)
    line(fr'flock LOCK_UN other/flock by pid {process.pid}, uid 0: success after %s')
    process.do('setlk', first, fcntl.F_WRLCK)
    line(fr'fcntl F_SETLK F_WRLCK other/flock by pid {process.pid}, uid 0: success after %s')

    # The limit of other log lines does not apply to these lines.
    for i in range(200):
        check_errno(errno.ENOENT, os.stat, mount.path(f'none{i}'))
    line(f'lookup none199 by pid {ours}, uid 0: ENOENT after %s')
    check(len(re.findall(r'lookup none\d+ ', mount.log())) == 200, '200 lookups, 200 lines')

    check_errno(errno.ENOENT, os.stat, quiet.path('none'))
    check('lookup' not in quiet.log(), 'a mount without -d traces')


run(test)
