#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A user who loses the own locks again and again, as often as the log has lines, hides in log and
history nothing of what becomes of root's."""

import os
import select

from harness import ALICE, as_user, check, check_equal, run

BURST = 50     # LOG_BURST
HOLDS = 1005   # more than HISTORY_HOLDS


def lose(path):
    fd = os.open(path, os.O_RDWR)
    poll = select.poll()
    poll.register(fd, select.POLLPRI)
    while not any(events & select.POLLERR for _, events in poll.poll()):
        pass
    os.close(fd)


def make_noise(path):
    for _ in range(BURST + 10):
        lose(path + '@most=1ms')
    for _ in range(HOLDS):
        os.close(os.open(path, os.O_RDWR))


def test(case):
    mount = case.mount(case.server())
    mount.mkdir('alices')
    mount.mkdir('roots')
    os.chmod(mount.path('alices', 'lock'), 0o666)
    lose(mount.path('roots', 'lock@most=1ms'))
    check_equal(as_user(ALICE, make_noise, mount.path('alices', 'lock')), 0, 'Alice')
    lose(mount.path('roots', 'lock@most=2ms'))
    mount.said('roots: the lock is lost by', 2)
    check(mount.log().count('alices: the lock is lost by') >= BURST, 'lines about those of Alice')
    with open(mount.path('.zklockfs', 'history'), encoding='ascii') as file:
        check_equal(sum(' roots ' in line for line in file), 2, "root's holds in the history")
    mount.allow('the lock is lost')
    mount.allow('were not written')


run(test)
