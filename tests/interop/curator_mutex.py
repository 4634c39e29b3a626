#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Curator's InterProcessMutex and zklockfs exclude each other, in order. Curator also waits for
holders that share."""

import foreign
from harness import run


def test(case):
    server = case.server()
    mount = case.mount(server)
    mount.mkdir('build')
    mutex = foreign.curator(case, server, 'mutex')
    foreign.waits_for_us(server, mount, mutex)
    foreign.waits_for_us(server, mount, mutex, 'shared')
    foreign.we_wait(server, mount, mutex)
    foreign.we_wait(server, mount, mutex, 'shared')
    foreign.order_is_kept(server, mount, mutex)
    foreign.nobody_meets(mount, mutex)


run(test)
