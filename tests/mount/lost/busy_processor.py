#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a machine with one processor, a reader that gets an answer runs first and asks again, so that
there is always a request to serve. A request to the ensemble does not wait for many readers."""

import os
import statistics

from harness import SLOWNESS, Stopwatch, check, check_equal, run, spawn

READERS = 8
ASKS = 15
MOST_SECONDS = 0.25 * SLOWNESS
READER = '''
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
while os.pread(fd, 64, 0):
    pass
'''


def asks(mount, fd):
    """The median time of fsync, which asks the ensemble."""
    times = []
    for _ in range(ASKS):
        watch = Stopwatch()
        os.fsync(fd)
        times.append(watch.seconds())
    print(f'asking the ensemble: {min(times):.3f} to {max(times):.3f} s, {statistics.median(times):.3f}')
    return statistics.median(times)


def test(case):
    mount = case.mount(case.server(), env=case.preloaded('slow_answers'))
    mount.watched = False   # its turns are slow
    mount.mkdir('held')
    fd = os.open(mount.path('held', 'lock'), os.O_RDWR)
    readers = []
    for i in range(READERS):
        mount.mkdir(f'reader{i}')
        readers.append(spawn(['python3', '-c', READER, mount.path(f'reader{i}', 'lock')]))
    median = asks(mount, fd)
    check(median < MOST_SECONDS, f'the ensemble is asked within {median:.3f} s')
    for reader in readers:
        check_equal(reader.poll(), None, 'a reader')
        reader.kill()
        reader.wait()
    os.close(fd)


run(test)
