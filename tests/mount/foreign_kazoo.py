#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An entry of plain kazoo is never passed: the taker waits behind it, or is
refused with ENOLCK while kazoo would not wait for ours (INTERFACE, INTEROP)."""

import errno
import os
import uuid

from harness import check, errno_of, run


def test(case):
    server = case.server()
    mount = case.mount(server)
    mount.allow('kazoo|__lock__|family|client')
    mount.mkdir('build')
    planted = server.zk.create(f'/locks/build/{uuid.uuid4().hex}__lock__', ephemeral=True, sequence=True)
    check(errno_of(os.open, mount.path('build', 'try'), os.O_RDWR) in (errno.EAGAIN, errno.ENOLCK),
          'taken beside kazoo')
    check(errno_of(os.open, mount.path('build', 'lock@300ms'), os.O_RDWR) in (errno.ETIMEDOUT, errno.ENOLCK),
          'taken beside kazoo')
    name, = mount.queue('build')
    check(name.startswith(planted[-10:] + '-exclusive-'), f'shown as {name}')
    server.zk.delete(planted)
    mount.take('build').held()


run(test)
