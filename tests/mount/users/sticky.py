#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""fusermount3(1), which mounts for users, mounts nothing over a directory of somebody else's, though everybody may make
locks there, nor over a queue. Shells, which open by O_CREAT, open all files in such directories as before, also where the
kernel protects those of others in sticky directories (fs.protected_regular)."""

import os
import socket
import stat

from harness import ALICE, BOB, check, check_equal, command, mounted, run, shells

PROTECTED = '/proc/sys/fs/protected_regular'


def mount_over(path, uid):
    """Whether that user can; it is taken off again."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        status, _, err = command(['setpriv', f'--reuid={uid}', f'--regid={uid}', '--clear-groups', 'fusermount3', '-o', 'rw',
                                  '--', path], env={**os.environ, '_FUSE_COMMFD': str(theirs.fileno())},
                                 pass_fds=[theirs.fileno()])
    done = mounted(path) is not None
    check_equal(status == 0, done, f'fusermount3 {path}: {err}')
    if done:
        check_equal(command(['umount', path])[0], 0, 'umount')
    return done


def covers(a):
    for lock, owner in (('team', 0), ('team/build', 0), ('group', BOB), ('group/build', BOB)):
        for name in ('', '/queue'):
            check(not mount_over(a.path(lock) + name, ALICE), f'over {lock}{name}')
        check(stat.S_IMODE(os.stat(a.path(lock)).st_mode) == 0o1777, 'who may write there')
        check_equal(os.stat(a.path(lock)).st_uid, owner, 'whose it is')
    check(mount_over(a.path('own'), ALICE), 'the directory of that user')
    check(not mount_over(a.path('own/queue'), ALICE), 'a queue, to which nobody writes')


def protect(case, level):
    with open(PROTECTED, 'r+', encoding='ascii') as file:
        was = file.read()
        file.seek(0)
        file.write(level)
    return was


def open_all(a, level):
    """By two users and root, of which two own nothing there."""
    for uid in (0, ALICE, BOB):
        user = ['setpriv', f'--reuid={uid}', f'--regid={uid}', '--clear-groups'] if uid else []
        for shell in shells():
            for lock in ('team/build', 'group/build'):
                line = ('cd "$1" && (exec 9>lock && echo x >&9 && echo x >value) && (exec 9>>shared) && (exec 9>lock@5s) && '
                        '(exec 9<>reentrant) && (exec 9>flock)')
                status, out, err = command([*user, *shell, '-c', line, 'sh', a.path(lock)])
                check_equal(status, 0, f'user {uid}, {shell[0]}, {lock}, protected_regular={level}: {out}{err}')
    holder = a.take('team/build', uid=ALICE).held()
    line = f'echo evict >"{a.path("team/build/queue", a.queue("team/build")[0])}"'
    check_equal(command(['sh', '-c', line]), (0, '', ''), 'root evicts a user')
    holder.kill()


def test(case):
    a = case.mount(case.server())
    case.fuse_for_all()
    os.umask(0)
    for name in ('team', 'team/build', 'group', 'group/build', 'own'):
        a.mkdir(name, 0o777)
    os.chown(a.path('group'), BOB, BOB)
    os.chown(a.path('group/build'), BOB, BOB)
    os.chown(a.path('own'), ALICE, ALICE)
    covers(a)
    open_all(a, '0')
    was = protect(case, '1')
    case.cleanups.callback(protect, case, was)
    open_all(a, '1')
    protect(case, '2')
    open_all(a, '2')


run(test)
