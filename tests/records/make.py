#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the records of a mount with locks that are held, waited for, lost and evicted into the file RECORDS, for read.py:
once for each RECORDS_VERSION that is released. Times in records are of this machine's clock, which must be ahead
where they are read, so it is made young (SECONDS: of /proc/uptime, less a few):

    RECORDS=tests/records/6.z PYTHONPATH=tests/mount unshare --time --boottime -SECONDS --monotonic -SECONDS \\
        tests/records/make.py
"""

import fcntl
import os
import zlib

from harness import run, until

HEAD, REQUESTS, HALF = 4096, 16 << 20, 256 << 20     # as fs/store/journal.c has them


def write_records(daemon):
    """The store's pages that were ever written to: of each extent its place, its length, its bytes."""
    fd = next(fd for fd in os.listdir(f'/proc/{daemon}/fd')
              if os.readlink(f'/proc/{daemon}/fd/{fd}').startswith('/memfd:zklockfs-store'))
    store = os.open(f'/proc/{daemon}/fd/{fd}', os.O_RDONLY)
    text, at = b'', 0
    while at < HEAD + REQUESTS + 2 * HALF:
        try:
            at = os.lseek(store, at, os.SEEK_DATA)
        except OSError:
            break
        end = os.lseek(store, at, os.SEEK_HOLE)
        text += at.to_bytes(8, 'little') + (end - at).to_bytes(8, 'little') + os.pread(store, end - at, at)
        at = end
    with open(os.environ['RECORDS'], 'wb') as file:
        file.write(zlib.compress(text, 9))


def test(case):
    server = case.server()
    mount = case.mount(server, 'recorded', session='60s')
    for name in ('held', 'evicted', 'flocked', 'waited'):
        mount.mkdir(name)
    held, evicted = mount.take('held').held(), mount.take('evicted').held()
    waiters = [mount.take('held') for _ in range(2)]
    until(lambda: len(server.entries('held')) == 3, 'they wait')
    for entry in server.entries('evicted'):
        server.zk.delete('/locks/evicted/' + entry)
    until(lambda: mount.metric('losses_total') > 0, 'it is lost')
    flocked = open(mount.path('flocked', 'flock'), 'a', encoding='ascii')    # pylint: disable=consider-using-with
    fcntl.flock(flocked, fcntl.LOCK_EX)
    text, directory = os.open(mount.path('.zklockfs', 'status'), os.O_RDONLY), os.open(mount.path('held'), os.O_RDONLY)
    os.read(text, 10)
    os.listdir(directory)
    write_records(mount.daemon)
    for taker in (held, evicted, *waiters):
        taker.kill()


run(test)
