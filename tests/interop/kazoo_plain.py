#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kazoo's Lock, ReadLock and WriteLock as they come do not wait for our entries: where
one of theirs stands nobody is let in, and the holder file says why."""

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
