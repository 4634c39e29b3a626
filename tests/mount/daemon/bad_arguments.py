#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wrong arguments and failed mounts: one line on stderr, status 1 for wrong usage and 32 for a
mount that failed, and nothing is left mounted."""

import os
import shutil

from harness import NOBODY, Stopwatch, ZKLOCKFS, besides_usual, check, check_equal, command, mounted, run


def test(case):
    server = case.server()
    port = server.port
    point = case.mount_point()
    servers = f'127.0.0.1:{port}'
    file = case.directory + '/file'
    with open(file, 'w', encoding='ascii'):
        pass

    def refused(status, *args):
        for front in ((), ('-f',)):
            got, out, err = besides_usual(command([ZKLOCKFS, *front, *args]))
            what = f'zklockfs {" ".join(front + args)}'
            check_equal(got, status, f'status of {what}')
            check_equal(out, '', f'stdout of {what}')
            check(err.count('\n') == 1 and err.endswith('\n') and len(err) > 10, f'stderr of {what}: {err!r}')
            check(mounted(point) is None, f'{what} left a mount')
        return err

    refused(1)
    refused(1, servers)
    check('-o more' in refused(1, servers, point, 'more'), 'the argument too many is not named')
    # OPTIONS= in the file of a unit, without -o.
    check('-o on_lost=kill' in refused(1, 'on_lost=kill', servers, point), 'an option without -o is not named')
    refused(1, '--nonsense', servers, point)
    refused(1, '-o', 'nonsense', servers, point)
    refused(1, '-o', 'nonsense=1', servers, point)
    for option in ('session_timeout', 'tick_time', 'connect_timeout'):
        for duration in ('', '15', '1.5s', '-1s', '15 s', '1h30m', 'x', '99999999999999999999s'):
            refused(1, '-o', f'{option}={duration}', servers, point)
    for bad in ('', ':2181', '127.0.0.1:x', '127.0.0.1:99999', '127.0.0.1:0', '/locks'):
        refused(1, bad, point)

    refused(1, servers + '/', point)
    refused(32, servers + '/elsewhere', point)
    check(server.zk.exists('/elsewhere') is None, 'a root was made without mkroot')
    refused(32, servers, point + '/missing')
    refused(32, servers, file)
    refused(32, '-o', 'session_timeout=4s,tick_time=2s', servers, point)

    # Refused by the kernel or by fusermount3, which both have something to say.
    program = shutil.copy(ZKLOCKFS, case.directory)
    status, _, err = command([program, servers, point], user=NOBODY, group=NOBODY, extra_groups=())
    check_equal((status, err.count('\n')), (32, 1), f'the mount point of another user: {err!r}')
    check(mounted(point) is None, 'it was mounted')

    # Few descriptors, as in some cron and container.
    for most in (6, 10):
        status, _, err = command(['prlimit', f'--nofile={most}', ZKLOCKFS, servers, point])
        check(status == 32 and err.count('\n') == 1 and '(ulimit -n)' in err, f'{most} descriptors: {err!r}')

    watch = Stopwatch()
    server.stop()
    refused(32, '-o', 'connect_timeout=1s', servers, point)
    watch.check(1, 15, 'connect_timeout=1s')
    check_equal(case.daemons(), [], 'processes that are left')
    check(os.listdir(point) == [], 'the mount point is no empty directory')


run(test)
