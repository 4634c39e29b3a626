#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Entries that a mount may not read: it waits for another client's entry without asking all the
time, and gets the lock when this entry goes. It keeps its own place and hold when it may not read
its own entry."""

import errno
import os
import time

import rawzk
from harness import Stopwatch, check, check_errno, run, until

CLOSED = [(rawzk.ALL, 'digest', rawzk.digest_id('other:word'))]


def test(case):
    server = case.server()
    mount = case.mount(server, session='60s')
    mount.mkdir('build')
    other = server.client('other:word')
    planted = other.create('/locks/build/_c_12345678-1234-1234-1234-123456789012-lock-',
                           ephemeral=True, sequence=True, acl=CLOSED)
    first = mount.take('build')
    until(lambda: len(mount.queue('build')) == 2, 'the first queues')
    second = mount.take('build')
    until(lambda: len(mount.queue('build')) == 3, 'both queue')
    name = next(name for name in mount.queue('build') if not name.endswith('-a'))
    check_errno(errno.EACCES, os.open, mount.path('build/queue', name), os.O_RDONLY)

    def requests(seconds):
        # The requests within this time are counted.
        before = int(server.connections()[mount.session()]['recved'])
        time.sleep(seconds)
        return int(server.connections()[mount.session()]['recved']) - before
    check(requests(2) < 30, 'it asks on and on while it waits')
    watch = Stopwatch()
    other.delete(planted)
    first.held()
    watch.check(0, 3, 'the next one')

    for entry in server.entries('build'):
        other.set_acl(f'/locks/build/{entry}', CLOSED)
    server.stop()
    mount.allow('connection lost|resumed')
    server.start()
    mount.ready()   # and has asked for its entries again
    check(requests(2) < 30, 'it asks on and on while it holds')
    first.release()
    second.held()
    second.release()
    mount.take('build', lock_file='try').held().release()


run(test)
