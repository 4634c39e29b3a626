#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Of two starts at one mount point at the same moment one mounts, and the other says why it does
not. They are not stacked. A user who has locked the directory stops nobody."""

import fcntl
import os
import subprocess

from harness import ZKLOCKFS, check, check_equal, libc, run, spawn, until

ROUNDS = 4


def mounts(point):
    with open('/proc/self/mountinfo', encoding='utf-8', errors='replace') as lines:
        return sum(line.split()[4] == point for line in lines)


def test(case):
    server = case.server()

    def start(point, number):
        return spawn([ZKLOCKFS, '-f', '-o', f'noprotect,host=h{number}', f'127.0.0.1:{server.port}/locks', point],
                     stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def end(point, process):
        check_equal(libc.umount2(os.fsencode(point), 0), 0, 'umount')
        check_equal(process.wait(60), 0, process.stderr.read())

    for _ in range(ROUNDS):
        point = case.mount_point()
        both = [start(point, number) for number in (1, 2)]
        until(lambda p=point, b=both: mounts(p) > 1 or any(one.poll() is not None for one in b), 'one of them ends')
        check(mounts(point) < 2, 'they are stacked')
        refused, other = both if both[0].poll() is not None else both[::-1]
        err = refused.stderr.read()
        check_equal(refused.returncode, 32, err)
        check('zklockfs is mounted there already' in err, err)
        until(lambda p=point: os.path.exists(p + '/.zklockfs/status'), 'the other one serves')
        check_equal(mounts(point), 1, 'mounts')
        end(point, other)

    point = case.mount_point()
    locked = os.open(point, os.O_RDONLY)
    fcntl.flock(locked, fcntl.LOCK_EX)
    process = start(point, 1)
    until(lambda: os.path.exists(point + '/.zklockfs/status'), 'it serves')
    os.close(locked)
    end(point, process)


run(test)
