#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kazoo's Lock, ReadLock and WriteLock by default do not wait for our entries. While one of their
entries is in the queue, all takers are refused, and the holder file says why."""

import foreign
from harness import run


def test(case):
    server = case.server()
    mount = case.mount(server)
    mount.allow('does not wait|client')
    mount.mkdir('build')
    plain = foreign.kazoo(case, server, 'lock')
    foreign.is_refused_beside(server, mount, plain, 'exclusive')
    both = foreign.kazoo(case, server, 'readwrite')
    foreign.is_refused_beside(server, mount, both, 'exclusive')
    foreign.is_refused_beside(server, mount, both, 'shared')


run(test)
