#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Locks that other clients have made as containers or as TTL nodes: each is there as long as it has an entry, and is
then deleted by the ensemble, as zklockfs(5) says. One that is made by mkdir stays."""

import rawzk
from harness import ZOOKEEPER_JVM, check, check_equal, run, until

TTL_MS = 300


def make_ttl(zk):
    """With something in it, so that it is there when it is looked for."""
    while True:
        zk.create_ttl('/locks/ttl', TTL_MS)
        try:
            return zk.create('/locks/ttl/below')
        except rawzk.ZkError as err:    # it was gone before
            check_equal(err.code, rawzk.NONODE, 'make a node below it')


def test(case):
    ZOOKEEPER_JVM.append('-Dznode.container.checkIntervalMs=100')
    server = case.server(properties=['extendedTypesEnabled=true'])
    mount = case.mount(server)
    mount.mkdir('kept')
    server.zk.create_container('/locks/container')
    below = make_ttl(server.zk)
    takers = {}
    for name in ('container', 'ttl', 'kept'):
        until(lambda name=name: name in mount.locks(), f'{name} is seen')
        takers[name] = mount.take(name).held()
    server.zk.delete(below)
    bare = server.zk.create_ttl('/locks/bare', TTL_MS)
    until(lambda: not server.zk.exists(bare), 'a TTL node without an entry goes')
    for name, taker in takers.items():
        check(server.zk.exists(f'/locks/{name}'), f'{name} is gone, with its holder')
        taker.token()
        taker.release()
    until(lambda: set(mount.locks()) == {'kept'}, 'the others go after their last entry')


run(test)
