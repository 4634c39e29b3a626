#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The queue shows entries of other clients (rule 25), and takers wait for them, whatever their
names have before the number. The recipes of these clients wait for our entries, too."""

import errno
import os
import uuid

from harness import check, check_equal, check_errno, run, until

PREFIXES = (f'_c_{uuid.uuid4()}-lock-', 'x-123-', 'lock-1-', 'write-lock:', 'ex')


def test(case):
    server = case.server()
    mount = case.mount(server)
    for number, prefix in enumerate(PREFIXES):
        lock = f'lock{number}'
        mount.mkdir(lock)
        planted = server.zk.create(f'/locks/{lock}/{prefix}', ephemeral=True, sequence=True)
        check_errno(errno.EAGAIN, os.open, mount.path(lock, 'try'), os.O_RDWR)
        check_errno(errno.ETIMEDOUT, os.open, mount.path(lock, 'lock@200ms'), os.O_RDWR)
        until(lambda: len(server.entries(lock)) == 1, 'the one whose time was over has left')

        taker = mount.take(lock)
        until(lambda: len(server.entries(lock)) == 2, 'the taker queues')
        first, second = mount.queue(lock)
        check(first.startswith(planted[-10:] + '-exclusive-'), f'{planted} is shown as {first}')
        fields = mount.fields(lock, 'queue', first)
        check(fields['znode'].endswith(planted.rsplit('/', 1)[1]), f'its znode: {fields}')
        check_equal(fields['state'], 'held', 'its state')
        check_equal(mount.fields(lock, 'queue', second)['state'], 'waiting', 'ours')
        check(first in mount.read(lock, 'holder'), 'it is not shown as the holder')

        check(not taker.answered(), 'granted beside another client')
        server.zk.delete(planted)
        taker.held().release()
        until(lambda: not server.entries(lock), 'the lock is free')

    # Not an entry: no number at the end.
    server.zk.create('/locks/lock0/config', ephemeral=True)
    mount.take('lock0', 'try').held()


run(test)
