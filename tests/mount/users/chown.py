#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A lock has one owner and one group. chown on its directory or on any lock file sets both, on all
mounts within a second. Only root gives a lock to another user. The owner may give it to one of
the owner's groups; other users may do nothing. All other files keep their owners."""

import errno
import os
import signal
import stat

from harness import ALICE, BOB, check_equal, check_errno, check_user, run, until

FILES = ('', 'lock', 'shared', 'try', 'lock@1s', 'queue', 'holder', 'value', 'slots')


def owner(path):
    found = os.stat(path)
    return found.st_uid, found.st_gid


def stale(case, server, mount):
    """The kernel's memory of a lock does not count: another user may own the lock by now."""
    server.zk.create('/locks/gone', b'zklockfs: 1\nuid: 1001\ngid: 1001\nmode: 777\ndoor_mode: 666\n\n')
    path = mount.path('gone', 'lock')
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgid(ALICE)
            os.setuid(ALICE)
            os.chmod(path, 0o600)
            os.write(write, b'x')
            os.kill(os.getpid(), signal.SIGSTOP)
            os.chmod(path, 0o666)
            os._exit(0)
        except OSError as err:
            os._exit(err.errno)
        finally:
            os._exit(255)
    os.read(read, 1)
    os.waitpid(child, os.WUNTRACED)
    server.zk.delete('/locks/gone')
    data = b'zklockfs: 1\nuid: 1002\ngid: 1002\nmode: 755\ndoor_mode: 600\n\n'
    server.zk.create('/locks/gone', data)
    os.kill(child, signal.SIGCONT)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    check_equal(status, errno.EPERM, 'chmod of a lock that is another\'s by now')
    check_equal(server.zk.get('/locks/gone')[0], data, 'the data')


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    os.umask(0o022)
    a.mkdir('build')
    a.mkdir('other')
    root_owner = owner(a.directory)

    def everywhere(uid, gid):
        for mount in (a, b):
            until(lambda path=mount.path('build', ''): {owner(path + name) for name in FILES} == {(uid, gid)},
                  f'{mount.host} shows {uid}:{gid}', 2)

    everywhere(0, 0)
    for name in ('', 'lock', 'shared'):
        for uid in (ALICE, BOB):
            check_user(errno.EPERM, uid, os.chown, a.path('build', name), uid, -1)
            check_user(errno.EPERM, uid, os.chown, a.path('build', name), -1, uid)
    os.chown(a.path('build'), ALICE, -1)
    everywhere(ALICE, 0)
    os.chown(b.path('build', 'lock'), -1, ALICE)
    everywhere(ALICE, ALICE)
    check_equal(stat.S_IMODE(os.stat(a.path('build')).st_mode), 0o755, 'the mode')

    # The new owner changes modes and group; only root gives the lock away.
    check_user(0, ALICE, os.chmod, a.path('build', 'lock'), 0o660)
    check_user(errno.EPERM, BOB, os.chmod, a.path('build', 'lock'), 0o666)
    check_user(0, ALICE, os.chown, a.path('build', 'try'), -1, 2000, groups=[2000])
    everywhere(ALICE, 2000)
    check_user(errno.EPERM, ALICE, os.chown, a.path('build'), -1, 3000, groups=[2000])
    check_user(errno.EPERM, ALICE, os.chown, a.path('build'), BOB, -1)
    check_user(errno.EPERM, BOB, os.chown, a.path('build'), BOB, -1)
    check_user(errno.EPERM, BOB, os.chown, a.path('build', 'lock'), -1, BOB)
    check_user(0, ALICE, os.chown, a.path('build'), ALICE, 2000, groups=[2000])
    everywhere(ALICE, 2000)
    a.take('build', uid=BOB).refused(errno.EACCES)
    os.chown(a.path('build'), BOB, BOB)
    everywhere(BOB, BOB)
    b.take('build', uid=BOB).held().release()

    # Other files keep their owners.
    holder = a.take('other').held()
    entry = 'other/queue/' + a.queue('other')[0]
    for name in ('', '.zklockfs', '.zklockfs/status', 'build/holder', 'build/queue', 'build/value', 'build/slots',
                 entry):
        path = a.path(name)
        os.chown(path, *owner(path))
        check_errno(errno.EPERM, os.chown, path, 4711, -1)
        check_errno(errno.EPERM, os.chown, path, -1, 4711)
    holder.release()
    everywhere(BOB, BOB)
    check_equal(owner(a.directory), root_owner, 'the root')

    stale(case, server, a)


run(test)
