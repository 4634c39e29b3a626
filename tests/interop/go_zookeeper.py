#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""go-zookeeper's Lock and zklockfs exclude each other, in order."""

import foreign
from harness import run


def test(case):
    server = case.server()
    mount = case.mount(server)
    mount.mkdir('build')
    lock = foreign.go_zookeeper(case, server)
    foreign.waits_for_us(server, mount, lock)
    foreign.waits_for_us(server, mount, lock, 'shared')
    foreign.we_wait(server, mount, lock)
    foreign.we_wait(server, mount, lock, 'shared')
    foreign.order_is_kept(server, mount, lock)
    foreign.nobody_meets([mount], [lock])


run(test)
