#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A process with as many groups as possible, and with such ancestors, costs the loop no more
than others. The harness looks for complaints of the loop's watchdog."""

import errno
import os
import platform

from harness import ALICE, BOB, check_equal, run

GROUPS = range(200000, 200000 + 65536)
GENERATIONS = 30


def descend(generations, function):
    """In a descendant; its exit status is every ancestor's."""
    for _ in range(generations):
        child = os.fork()
        if child:
            os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os._exit(function())


def test(case):
    if tuple(map(int, platform.release().split('.')[:2])) < (6, 13):
        print('not on this kernel')
        return
    server = case.server()
    mount = case.mount(server, 'a', options=['on_lost=kill'])
    mount.mkdir('build')
    os.chmod(mount.path('build', 'lock'), 0o666)
    holder = mount.take('build', 'lock', uid=BOB).held()

    def tries():
        for door in ('try', 'reentrant') * 3:
            try:
                os.close(os.open(mount.path('build', door), os.O_RDWR | os.O_NONBLOCK))
            except OSError as err:
                if err.errno == errno.EAGAIN:
                    continue
            return 1
        return 0

    child = os.fork()
    if child == 0:
        os.setgroups(GROUPS)
        os.setgid(ALICE)
        os.setuid(ALICE)
        descend(GENERATIONS, tries)
    check_equal(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0, 'tries while it is held')
    holder.do('fsync')


run(test)
