#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A lock belongs to the user who made it, with 0777 & ~umask, on all mounts. Its lock files are rw
for users who can write the directory, and closed for others except root."""

import errno
import os
import stat

from harness import NOBODY, check_equal, check_user, command, run, until


def modes(mount, lock):
    return tuple(oct(stat.S_IMODE(os.stat(mount.path(lock, name)).st_mode)) for name in ('', 'lock', 'try'))


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    os.umask(0o022)
    a.mkdir('private')
    os.umask(0)
    a.mkdir('open')
    os.umask(0o002)
    a.mkdir('group')

    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        os.umask(0o077)
        try:
            os.mkdir(a.path('open', 'own'))
            os._exit(0)
        finally:
            os._exit(1)
    check_equal(os.waitpid(child, 0)[1], 0, 'mkdir by a user')

    for mount in (a, b):
        check_equal(modes(mount, 'private'), ('0o755', '0o600', '0o600'), 'umask 022')
        check_equal(modes(mount, 'open'), ('0o1777', '0o666', '0o666'), 'umask 0')
        check_equal(modes(mount, 'group'), ('0o1775', '0o660', '0o660'), 'umask 002')
        check_equal(modes(mount, 'open/own'), ('0o700', '0o600', '0o600'), 'umask 077')
        for name in ('', 'lock', 'try'):
            found = os.stat(mount.path('open/own', name))
            check_equal((found.st_uid, found.st_gid), (NOBODY, NOBODY), 'owner')
        mount.take('private', uid=NOBODY).refused(errno.EACCES)
        mount.take('group', uid=NOBODY).refused(errno.EACCES)
        mount.take('group', 'lock@1s', uid=NOBODY).refused(errno.EACCES)
        mount.take('open', uid=NOBODY).held().release()
        mount.take('open/own', uid=NOBODY).held().release()

    # The recommended way: all users may take the lock, and make nothing in it.
    os.umask(0o022)
    a.mkdir('build')
    os.chmod(a.path('build', 'lock'), 0o666)
    for mount in (a, b):
        until(lambda: modes(mount, 'build') == ('0o755', '0o666', '0o666'), 'chmod a+w build/lock')
        for lock_file in ('lock', 'shared', 'try', 'reentrant', 'lock@1s'):
            mount.take('build', lock_file, uid=NOBODY).held().release()
        check_equal(command(['flock', '-n', mount.path('build', 'flock'), 'true'], user=NOBODY)[0], 0, 'flock')
        check_user(errno.EACCES, NOBODY, os.mkdir, mount.path('build', 'below'))
        check_user(errno.EACCES, NOBODY, os.open, mount.path('build', 'file'), os.O_CREAT | os.O_WRONLY)


run(test)
