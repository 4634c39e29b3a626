#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An entry of plain kazoo, which would not wait for our entries, is in the queue: takers get
EPROTO (rule 25), and the file `holder` says why. When the entry is gone, the lock can be taken."""

import errno
import os
import uuid

from harness import check, check_errno, raw_open, run


def test(case):
    server = case.server()
    mount = case.mount(server)
    mount.allow('kazoo|__lock__|family|client')
    mount.mkdir('build')
    planted = server.zk.create(f'/locks/build/{uuid.uuid4().hex}__lock__', ephemeral=True, sequence=True)
    for door in ('try', 'lock@10s', 'lock'):
        check_errno(errno.EPROTO, raw_open, mount.path('build', door), os.O_RDWR)
    check('does not wait for zklockfs' in mount.read('build', 'holder'), 'the holder file says why')
    name, = mount.queue('build')
    check(name.startswith(planted[-10:] + '-exclusive-'), f'shown as {name}')
    server.zk.delete(planted)
    mount.take('build').held()


run(test)
