#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""fsync on a held descriptor asks the ensemble (rule 7): it succeeds only if the entry was
there during the call. If the entry was deleted before, fsync fails with EIO at once."""

import errno
import os

from harness import check, check_errno, run


def test(case):
    server = case.server()
    mount = case.mount(server, session='60s')   # no heartbeat in the way of the counting
    mount.allow('build')
    mount.mkdir('build')
    fd = os.open(mount.path('build', 'lock'), os.O_RDWR)

    def requests():
        return int(server.connections()[mount.session()]['recved'])

    before = requests()
    for _ in range(5):
        os.fsync(fd)
        os.fdatasync(fd)
    check(requests() - before >= 10, f'{requests() - before} requests for ten calls')

    # Many times, because the watch on the entry may be faster or slower than the call.
    for _ in range(20):
        entry, = server.entries('build')
        server.zk.delete('/locks/build/' + entry)
        check_errno(errno.EIO, os.fsync, fd)
        os.close(fd)
        fd = os.open(mount.path('build', 'lock'), os.O_RDWR)
    os.fsync(fd)


run(test)
