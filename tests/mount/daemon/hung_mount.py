#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A start at a directory where something is mounted that does not answer ends with a line. Neither
the start nor --check calls it a dead zklockfs, nor takes it off."""

import os
import signal

from harness import ZKLOCKFS, Stopwatch, check, check_equal, command, mounted, run


def test(case):
    server = case.server()
    a = case.mount(server, 'a', session='60s')
    source = f'127.0.0.1:{server.port}/locks'
    os.kill(a.daemon, signal.SIGSTOP)
    try:
        for words in ([source], ['--check', source], ['--check']):
            watch = Stopwatch()
            status, out, err = command([ZKLOCKFS, *words, a.directory])
            check_equal(status, 32, out + err)
            check('does not answer' in out + err and 'dead' not in out + err, out + err)
            check('--check' in words or err.count('\n') == 1, err)
            watch.check(0, 30, 'the line')
    finally:
        os.kill(a.daemon, signal.SIGCONT)
    check(mounted(a.directory), 'it was taken off')


run(test)
