#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An entry in ZooKeeper has the form that Curator and go-zookeeper understand: ephemeral, of
the mount's session, named _c_<uuid>-<host>.<pid>-lock-<number>."""

import re

from harness import check, check_equal, run


def test(case):
    server = case.server()
    mount = case.mount(server, 'web1')
    mount.mkdir('build')
    seen = set()
    for _ in range(2):
        taker = mount.take('build').held()
        name, = server.entries('build')
        match = re.fullmatch(r'_c_([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})'
                             r'-web1\.(\d+)-lock-\d{10}', name)
        check(match, f'the name {name}')
        check_equal(int(match.group(2)), taker.pid, 'its pid')
        check(match.group(1) not in seen, 'the uuid comes again')
        seen.add(match.group(1))
        stat = server.zk.exists('/locks/build/' + name)
        check_equal(stat.ephemeral_owner, mount.session(), 'the owner of the entry')
        taker.release()


run(test)
