#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""poll and select never block on a held descriptor. Once the lock is lost they report POLLERR
and POLLHUP, and wake programs that wait for these events alone."""

import os
import select
import threading

from harness import check, check_equal, run, until


def ready(fd, wanted, timeout_ms=0):
    poll = select.poll()
    poll.register(fd, wanted)
    return dict(poll.poll(timeout_ms)).get(fd, 0)


def test(case):
    server = case.server()
    mount = case.mount(server)
    mount.allow('build')
    mount.mkdir('build')
    fd = os.open(mount.path('build', 'lock'), os.O_RDWR)
    both = select.POLLIN | select.POLLOUT
    check_equal(ready(fd, both), both, 'a held lock file')
    check_equal(select.select([fd], [fd], [fd], 0), ([fd], [fd], []), 'select')
    check_equal(ready(fd, 0), 0, 'no trouble yet')
    with open(mount.path('build', 'holder'), encoding='utf-8') as file:
        check(ready(file.fileno(), select.POLLIN) & select.POLLIN, 'holder is not ready')

    woken = []
    thread = threading.Thread(target=lambda: woken.append(ready(fd, 0, 20000)), daemon=True)
    thread.start()
    entry, = server.entries('build')
    server.zk.delete('/locks/build/' + entry)
    until(lambda: woken, 'a poller for errors alone is woken')
    lost = select.POLLERR | select.POLLHUP
    check_equal(woken[0] & lost, lost, 'a lost lock file')
    check_equal(ready(fd, both) & (lost | both), lost | both, 'a lost lock file still reads, as EIO')
    check_equal(select.select([], [], [fd], 0), ([], [], [fd]), 'select for trouble')


run(test)
