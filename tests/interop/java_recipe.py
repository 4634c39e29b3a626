#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ZooKeeper's own recipe in Java and zklockfs exclude each other, in order. The recipe waits for
ever when the taker before it leaves between its listing and its watch, so the test gives it
time."""

import foreign
from harness import run


def test(case):
    server = case.server()
    mount = case.mount(server)
    mount.mkdir('build')
    recipe = foreign.java_recipe(case, server)
    foreign.waits_for_us(server, mount, recipe)
    foreign.waits_for_us(server, mount, recipe, 'shared')
    foreign.we_wait(server, mount, recipe)
    foreign.we_wait(server, mount, recipe, 'shared')
    foreign.order_is_kept(server, mount, recipe, hurries=False)


run(test)
