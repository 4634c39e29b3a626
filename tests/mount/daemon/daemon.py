#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Without -f the command returns 0 when the mount serves requests, and not before. The daemon
gives up the caller's descriptors, directory and session, and works when some of them are
closed. It may open as many files as root lets it. With -f the daemon goes on when nobody reads
its log any more."""

import errno
import os
import resource
import subprocess

from harness import ZKLOCKFS, besides_usual, check, check_equal, check_errno, command, libc, mounted, run, spawn, until


def test(case):
    server = case.server()
    closed = ['sh', '-c', 'exec "$@" <&- >&- 2>&-', 'sh']
    few = ['prlimit', '--nofile=100:1000']
    most = 65536 if command([*few, 'prlimit', '--nofile=65536:65536', 'true'])[0] == 0 else 1000   # root may, but not everywhere
    for before, directory in (([], '/'), (few, case.directory), (closed, '/')):
        path = case.mount_point()
        # A relative path, though the daemon changes its directory. The pipes of command() end only
        # when the daemon has closed them.
        relative = os.path.relpath(path, directory)
        said = command(before + [ZKLOCKFS, f'127.0.0.1:{server.port}/locks', relative], cwd=directory)
        check_equal(besides_usual(said), (0, '', ''), 'the command')
        check(mounted(path), 'it is not mounted when the command returns')
        with open(path + '/.zklockfs/status', encoding='utf-8') as file:
            check('state: ready\n' in file.read(), 'it does not serve when the command returns')
        if not os.path.isdir(path + '/build'):
            os.mkdir(path + '/build')
        os.close(os.open(path + '/build/try', os.O_RDWR))

        daemon, = case.daemons()
        check_equal(os.readlink(f'/proc/{daemon}/cwd'), '/', 'its directory')
        check(os.getsid(daemon) != os.getsid(0), 'it is in the session of the caller')
        if before is few:
            check_equal(resource.prlimit(daemon, resource.RLIMIT_NOFILE), (most, most), 'how many files it may open')
        check_equal(libc.umount2(path.encode(), 0), 0, 'umount')
        until(lambda: not case.daemons(), 'the daemon ends after the unmount')
        until(lambda: not server.entries('build'), 'no entry is left')

    path = case.mount_point()
    daemon = spawn([ZKLOCKFS, '-f', f'127.0.0.1:{server.port}/locks', path], stdin=subprocess.DEVNULL,
                   stderr=subprocess.PIPE)
    until(lambda: mounted(path), 'it is mounted')
    daemon.stderr.close()
    check_errno(errno.EINVAL, os.mkdir, path + '/\N{GRINNING FACE}')   # the daemon logs why
    os.close(os.open(path + '/build/try', os.O_RDWR))
    check_equal(libc.umount2(path.encode(), 0), 0, 'umount')
    check_equal(daemon.wait(60), 0, 'its status')


run(test)
