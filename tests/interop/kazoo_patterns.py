#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kazoo with extra_lock_patterns=["lock-"] waits for our holders, the exclusive and the
shared ones. Its entries cannot be told from those of plain kazoo, so beside them our takers
are refused and do not wait; never two hold."""

import foreign
from harness import run


def test(case):
    server = case.server()
    mount = case.mount(server)
    mount.allow('does not wait|client')
    mount.mkdir('build')
    lock = foreign.kazoo(case, server, 'lock+patterns')
    foreign.waits_for_us(server, mount, lock)
    foreign.waits_for_us(server, mount, lock, 'shared')
    foreign.is_refused_beside(server, mount, lock, 'exclusive')
    both = foreign.kazoo(case, server, 'readwrite+patterns')
    for mode in ('exclusive', 'shared'):
        foreign.waits_for_us(server, mount, both, 'lock', mode)
        foreign.waits_for_us(server, mount, both, 'shared', mode)
        foreign.is_refused_beside(server, mount, both, mode)


run(test)
