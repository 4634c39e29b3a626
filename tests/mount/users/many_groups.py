#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A process with as many groups as possible, and with such ancestors, costs the loop no more
than others. The harness looks for complaints of the loop's watchdog."""

import errno
import os
import platform

from harness import ALICE, BOB, as_user, check_equal, errno_of, run

GROUPS = range(200000, 200000 + 65536)
GENERATIONS = 30


def descend(generations, function):
    """Call the function in a descendant. Its exit status becomes that of each ancestor."""
    for _ in range(generations):
        child = os.fork()
        if child:
            os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os._exit(function())


def test(case):
    # Without PIDFD_GET_INFO, looking at ancestors takes long.
    asks_pidfd = tuple(map(int, platform.release().split('.')[:2])) >= (6, 13)
    server = case.server()
    mount = case.mount(server, 'a', options=['on_lost=kill'])
    mount.mkdir('build')
    os.chmod(mount.path('build', 'lock'), 0o666)
    holder = mount.take('build', 'lock', uid=BOB).held()
    locks = mount.path('.zklockfs', 'locks')

    def tries():
        for lock_file in (['try', 'reentrant'] if asks_pidfd else ['try']) * 3:
            try:
                os.close(os.open(mount.path('build', lock_file), os.O_RDWR | os.O_NONBLOCK))
            except OSError as err:
                if err.errno == errno.EAGAIN:
                    continue
            return 1
        return 0

    def looks():
        """The user may look at all locks, but soon after that gets EBUSY."""
        return int({errno_of(os.open, locks, os.O_RDONLY) for _ in range(5)} != {0, errno.EBUSY})

    with_groups(tries)
    with_groups(looks)
    check_equal(as_user(BOB, os.open, locks, os.O_RDONLY), 0, 'another user looks')
    holder.do('fsync')


def with_groups(function):
    child = os.fork()
    if child == 0:
        os.setgroups(GROUPS)
        os.setgid(ALICE)
        os.setuid(ALICE)
        descend(GENERATIONS, function)
    check_equal(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0, function.__name__)


run(test)
