#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Curator's InterProcessReadWriteLock would not wait for our entries. While one of its own entries
is in the queue, all takers are refused, and the holder file says why. After it they are served."""

import foreign
from harness import run


def test(case):
    server = case.server()
    mount = case.mount(server)
    mount.allow('does not wait|client')
    mount.mkdir('build')
    both = foreign.curator(case, server, 'readwrite')
    foreign.is_refused_beside(server, mount, both, 'exclusive')
    foreign.is_refused_beside(server, mount, both, 'shared')


run(test)
