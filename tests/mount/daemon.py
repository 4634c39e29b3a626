#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Without -f the command returns 0 when the mount serves requests, and not
before; the daemon lets go of the caller's descriptors, directory and session,
and does without any that are closed."""

import os

from harness import ZKLOCKFS, check, check_equal, command, libc, mounted, run, until


def test(case):
    server = case.server()
    closed = ['sh', '-c', 'exec "$@" <&- >&- 2>&-', 'sh']
    for before, directory in (([], '/'), ([], case.directory), (closed, '/')):
        path = case.mount_point()
        # Relative, which is not where the daemon will be. The pipes end only when it has closed them.
        relative = os.path.relpath(path, directory)
        status, out, err = command(before + [ZKLOCKFS, f'127.0.0.1:{server.port}/locks', relative],
                                   cwd=directory)
        check_equal((status, out, err), (0, '', ''), 'the command')
        check(mounted(path), 'it is not mounted when the command returns')
        with open(path + '/.zklockfs/status', encoding='utf-8') as file:
            check('state: ready\n' in file.read(), 'it does not serve when the command returns')
        if not os.path.isdir(path + '/build'):
            os.mkdir(path + '/build')
        os.close(os.open(path + '/build/try', os.O_RDWR))

        daemon, = case.daemons()
        check_equal(os.readlink(f'/proc/{daemon}/cwd'), '/', 'its directory')
        check(os.getsid(daemon) != os.getsid(0), 'it is in the session of the caller')
        check_equal(libc.umount2(path.encode(), 0), 0, 'umount')
        until(lambda: not case.daemons(), 'the daemon ends after the unmount')
        until(lambda: not server.entries('build'), 'no entry is left')


run(test)
