#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The daemon tells, in log, status and metrics, which filesystem is mounted over a part of its mount, by whom, and that it
is gone again; also another program that takes over."""

import ctypes
import os
import socket

from harness import ALICE, check, check_equal, command, libc, run, until


def told(a, what):
    until(lambda: f'covered_by: {what}\n' in a.read('.zklockfs', 'status'), f'covered_by: {what}')
    metric = f'zklockfs_covered{{mount="{a.directory}"}} {0 if what == "-" else 1}\n'
    check(metric in a.read('.zklockfs', 'metrics'), metric)


def mount_over(path, uid):
    """By fusermount3; until the socket is closed."""
    ours, theirs = socket.socketpair()
    with theirs:
        got = command(['setpriv', f'--reuid={uid}', f'--regid={uid}', '--clear-groups', 'fusermount3', '-o', 'rw', '--', path],
                      env={**os.environ, '_FUSE_COMMFD': str(theirs.fileno())}, pass_fds=[theirs.fileno()])
    check_equal(got[0], 0, got[2])
    return ours


def test(case):
    a = case.mount(case.server())
    case.fuse_for_all()
    for name in ('team', 'team/build', 'own'):
        a.mkdir(name, 0o755)
    os.chown(a.path('own'), ALICE, ALICE)
    told(a, '-')
    team, own = a.path('team'), a.path('own')
    check(libc.mount(b'tmpfs', team.encode(), b'tmpfs', 0, None) == 0, os.strerror(ctypes.get_errno()))
    told(a, f'{team} (tmpfs)')
    check(f'another filesystem hides a part of the mount: {team} (tmpfs)' in a.log(), a.log())
    mount = mount_over(own, ALICE)
    told(a, f'{own} (fuse of user {ALICE}), and 1 more')
    a.reload()
    told(a, f'{own} (fuse of user {ALICE}), and 1 more')
    check_equal([command(['umount', path])[0] for path in (team, own)], [0, 0], 'umount')
    mount.close()
    told(a, '-')
    until(lambda: 'no other filesystem hides a part of the mount any more' in a.log(), 'a line')


run(test)
