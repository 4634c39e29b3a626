#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The uids that /etc/subuid gives to one user have one share of the limits, and nothing else in
common. A change of the file counts."""

import errno
import os
import resource

from harness import BOB, check, check_equal, check_user, run, until

ALICE, ONE, OTHER = 1001, 100001, 165535
FILES = 12000


def test(case):
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    # The last line counts without an end of line, too.
    case.instead('/etc/passwd', f'root:x:0:0::/root:\nalice:x:{ALICE}:{ALICE}::/:')
    case.instead('/etc/subuid', 'alice:100000:65536\n')
    mount = case.mount(case.server())
    mount.mkdir('build')
    status, metrics = mount.path('.zklockfs', 'status'), mount.path('.zklockfs', 'metrics')
    found = []

    def opens(uid):
        """Whether the user may still open a file."""
        os.seteuid(uid)
        try:
            os.close(os.open(status, os.O_RDONLY))
            return True
        except OSError as err:
            check_equal(err.errno, errno.ENFILE, f'uid {uid}')
            return False
        finally:
            os.seteuid(0)

    os.seteuid(ONE)
    for path in (metrics, status):
        try:
            while True:
                found.append(os.open(path, os.O_RDONLY))
        except OSError as err:
            check_equal(err.errno, errno.ENFILE, f'after {len(found)} files')
    os.seteuid(0)
    mount.said(f'open files of uid {ALICE} are refused: this user has too many')
    for uid, may in ((ONE, False), (OTHER, False), (ALICE, False), (OTHER + 1, True), (BOB, True), (0, True)):
        check_equal(opens(uid), may, f'uid {uid} opens a file')
    # What is whose does not change.
    os.chmod(mount.path('build'), 0o755)
    os.chown(mount.path('build'), ONE, ONE)
    check_user(errno.EPERM, OTHER, os.chmod, mount.path('build'), 0o700)
    check_equal(os.stat(mount.path('build')).st_uid, ONE, 'the owner')

    case.instead('/etc/subuid', 'alice:100000:10\n')
    until(lambda: opens(OTHER), 'the other uid has a share of its own')
    check(not opens(ALICE), 'what was open before still counts')
    for fd in found:
        os.close(fd)
    until(lambda: opens(ALICE) and mount.status()['open_bytes'] == '0', 'nothing is left of what was open')
    mount.allow('open files of uid')


run(test)
