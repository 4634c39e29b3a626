#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Calls whose results decide whether a mount can be kept: where one is refused, or where too few
files may be open, the start ends with a line that names it."""

from harness import ZKLOCKFS, check, check_equal, command, mounted, refused, run


def test(case):
    server = case.server()
    point = case.mount_point()
    source = f'127.0.0.1:{server.port}/locks'

    def fails(line, wrapped, *options):
        status, _, err = command(wrapped([ZKLOCKFS, '-f', '-o', ','.join(('noprotect', 'connect_timeout=1m', *options)), source, point]))
        check_equal(status, 32, err)
        check(line in err, f'not {line!r}: {err}')
        check(not mounted(point), 'it is mounted')

    for limit in (16, 63):
        fails(f'cannot start: {limit} files may be open (ulimit -n), and 64 must be',
                lambda args, most=limit: ['prlimit', f'--nofile={most}:{most}', *args])
    fails('cannot start: signalfd: ', lambda args: refused(args, ['signalfd4']))
    fails('cannot start: signalfd: ', lambda args: refused(args, ['signalfd4']), 'nokeeper')
    fails('ppoll: ', lambda args: refused(args, ['ppoll']))
    fails(f'{point}: pipe2 or fork, to look at it: Operation not permitted', lambda args: refused(args, ['pipe2']))
    fails('cannot start: fcntl, or open of /dev/null: ', lambda args: refused(args, ['fcntl']))
    # A process in trial that can say nothing ends; it is not waited for.
    fails('a process in trial has ended', lambda args: refused(args, ['sendto']), 'on_lost=kill', 'connect_timeout=1s')


run(test)
