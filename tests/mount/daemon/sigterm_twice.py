#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A second SIGTERM does not wait for the holder: the daemon leaves now, and the holder's
descriptor is useless from then on."""

import signal

from harness import check, errno_of, mounted, run, until


def test(case):
    server = case.server()
    mount, b = case.mount(server, 'a', session='5s', options=[]), case.mount(server, 'b')
    mount.mkdir('build')
    holder = mount.take('build').held()
    remote = b.take('build')
    until(lambda: len(server.entries('build')) == 2, 'the waiter queues')
    mount.process.send_signal(signal.SIGTERM)
    until(lambda: mounted(mount.directory) is None, 'the mount point goes')
    mount.process.send_signal(signal.SIGTERM)
    until(lambda: mount.process.poll() is not None, 'the daemon leaves')
    mount.checked = True   # its output and its status do not matter
    check(errno_of(holder.do, 'pread', 64, 0) != 0, 'the descriptor still reads')
    check(errno_of(holder.do, 'fsync') != 0, 'the descriptor still syncs')
    remote.held()


run(test)
