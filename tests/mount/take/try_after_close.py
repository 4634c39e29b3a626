#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A close followed by a new open on the same mount never meets its own dying entry (rules 11
and 14): `try` right after a close always succeeds when nobody else is queued, however many
other files are closed at the time."""

import os
import resource
import signal

from harness import Taker, run, until

OTHERS = 3000


def waits_for_the_daemon(taker):
    with open(f'/proc/{taker.pid}/stack', encoding='ascii') as stack:
        return 'fuse' in stack.read()


def test(case):
    mount = case.mount(case.server())
    mount.mkdir('build')
    lock_file = mount.path('build', 'try')
    for _ in range(200):
        os.close(os.open(lock_file, os.O_RDWR))

    # The daemon is late: the kernel must not hold the close back and deliver a later open.
    resource.setrlimit(resource.RLIMIT_NOFILE, (OTHERS + 1000, OTHERS + 1000))
    others = [os.open(mount.path('.zklockfs', 'status'), os.O_RDONLY) for _ in range(OTHERS)]
    held = os.open(lock_file, os.O_RDWR)
    again = os.open(lock_file, os.O_PATH)   # opening this needs no lookup
    mount.send(signal.SIGSTOP)
    for fd in others:
        os.close(fd)
    os.close(held)
    taker = Taker(f'/proc/{os.getpid()}/fd/{again}', os.O_RDWR, 0)
    case.takers.append(taker)
    until(lambda: waits_for_the_daemon(taker), 'the open waits')
    mount.send(signal.SIGCONT)
    taker.held()


run(test)
