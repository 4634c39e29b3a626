#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""chmod on a lock's directory changes the directory. chmod on any of its lock files changes all
lock files, where r follows w. Only the owner and root may do it, and all mounts show it within a
second. Setuid bits are refused, setgid is inherited. A directory is sticky if group or others may write to it, and
only then. All other files keep their modes."""

import errno
import os
import stat

from harness import ALICE, BOB, check, check_equal, check_errno, check_user, run, until

LOCK_FILES = ('lock', 'try', 'shared', 'lock@5s', 'value')


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    os.umask(0)
    a.mkdir('team')
    os.umask(0o022)
    check_user(0, ALICE, os.mkdir, a.path('team', 'build'))
    lock = a.path('team', 'build')

    def everywhere(directory, lock_files):
        for mount in (a, b):
            until(lambda path=mount.path('team', 'build', ''):
                  mode(path) == directory and {mode(path + lock_file) for lock_file in LOCK_FILES} == {lock_files},
                  f'{mount.host} shows {directory:o} and {lock_files:o}', 2)

    everywhere(0o755, 0o600)
    # The owner and root may change modes.
    for name in ('', '/lock', '/shared@1m'):
        check_user(errno.EPERM, BOB, os.chmod, lock + name, 0o777)
    everywhere(0o755, 0o600)
    check_user(0, ALICE, os.chmod, lock, 0o711)
    everywhere(0o711, 0o600)
    check_equal(server.zk.get('/locks/team/build')[0],
                b'zklockfs: 1\nuid: 1001\ngid: 1001\nmode: 711\ndoor_mode: 600\n\n', 'the data')
    os.chmod(b.path('team', 'build'), 0o750)
    everywhere(0o750, 0o600)
    check_user(errno.EACCES, BOB, os.listdir, lock)
    os.chmod(lock, 0o755)
    everywhere(0o755, 0o600)

    # The lock files: r follows w.
    b.take('team/build', uid=BOB).refused(errno.EACCES)
    holder = a.take('team/build', uid=ALICE).held()
    for given, wanted in ((0o666, 0o666), (0o444, 0), (0o640, 0o600), (0o777, 0o666), (0o622, 0o666),
                          (0o200, 0o600), (0o060, 0o060), (0o666, 0o666)):
        check_user(0, ALICE, os.chmod, lock + '/lock@1h', given)
        everywhere(0o755, wanted)
    check(holder.token() > 0, 'the holder was disturbed')
    holder.release()
    b.take('team/build', uid=BOB).held().release()
    until(lambda: not server.entries('team/build'), 'the lock is free')

    # Modes that are refused.
    for bits in (0o4755, 0o6755):
        check_errno(errno.EINVAL, os.chmod, lock, bits)
    for bits in (0o1666, 0o2666, 0o4666):
        check_errno(errno.EINVAL, os.chmod, lock + '/lock', bits)
    for given, wanted in ((0o1755, 0o755), (0o1777, 0o1777), (0o777, 0o1777), (0o775, 0o1775), (0o755, 0o755)):
        os.chmod(lock, given)
        everywhere(wanted, 0o666)
    holder = a.take('team/build').held()
    entry = 'team/build/queue/' + a.queue('team/build')[0]
    for name in ('', '.zklockfs', '.zklockfs/status', 'team/build/holder', 'team/build/queue', 'team/build/value',
                 'team/build/slots', entry):
        path = a.path(name)
        os.chmod(path, mode(path))
        check_errno(errno.EPERM, os.chmod, path, mode(path) ^ 0o004)
        check_errno(errno.EPERM, os.chmod, path, 0o1777)
    holder.release()
    everywhere(0o755, 0o666)

    # The group of locks that are made below.
    os.chown(lock, ALICE, 2000)
    os.chmod(lock, 0o2777)
    everywhere(0o3777, 0o666)
    os.umask(0o002)
    check_user(0, BOB, os.mkdir, b.path('team', 'build', 'below'))
    found = os.stat(a.path('team', 'build', 'below'))
    check_equal((found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)), (BOB, 2000, 0o3775), 'below')
    check_equal(mode(a.path('team', 'build', 'below', 'lock')), 0o660, 'its lock files')

    # An open lock file shows what another mount changes, too.
    with open(a.path('team', 'build', 'flock'), 'rb') as file:
        for given in (0o600, 0o666):
            os.chmod(b.path('team', 'build', 'lock'), given)
            until(lambda: stat.S_IMODE(os.fstat(file.fileno()).st_mode) == given, f'the open file shows {given:o}', 2)

    check_errno(errno.ENOENT, os.chmod, a.path('team', 'none'), 0o700)


run(test)
