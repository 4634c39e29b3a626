#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Users who have open whatever they may, all together, keep root from nothing: the last part of the
limit is root's. The log says that it is all of them, not the one who is refused."""

import errno
import os
import resource

from harness import check, check_equal, check_user, run

FIRST, USERS = 2001, 8    # 8 MiB each: more than BUDGET_BYTES without BUDGET_ROOT_BYTES
FILES = 2000


def test(case):
    resource.setrlimit(resource.RLIMIT_NOFILE, (USERS * FILES, USERS * FILES))
    mount = case.mount(case.server())
    mount.mkdir('build')
    status, metrics = mount.path('.zklockfs', 'status'), mount.path('.zklockfs', 'metrics')
    found = []
    for uid in range(FIRST, FIRST + USERS):
        os.seteuid(uid)
        for path in (metrics, status):
            try:
                while True:
                    found.append(os.open(path, os.O_RDONLY))
            except OSError as err:
                check_equal(err.errno, errno.ENFILE, f'uid {uid}')
        os.seteuid(0)
    check_user(errno.ENFILE, FIRST + USERS, os.open, status, os.O_RDONLY)
    mount.said(f'open files of uid {FIRST + USERS} are refused: all users together')
    with open(status, encoding='ascii') as file:
        check('state: ready' in file.read(), 'what root reads')
    mount.take('build').held().release()
    os.close(os.open(mount.path('build', 'flock'), os.O_RDWR))
    for fd in found:
        os.close(fd)
    mount.allow('open files of uid')


run(test)
