#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The sub-tree that is mounted: /locks is the default and is made when it is absent, another
one only with mkroot. A lock that is the root of another mount is busy, and can be removed after
that like any other."""

import errno
import os

from harness import check, check_equal, check_errno, run


def test(case):
    server = case.server()
    check(server.zk.exists('/locks') is None, 'a new server has /locks')
    default = case.mount(server, 'a', root='')
    check(server.zk.exists('/locks'), '/locks was not made')
    named = case.mount(server, 'b', root='/locks')
    deep = case.mount(server, 'c', root='/team/build/locks', options=['mkroot'])
    check(server.zk.exists('/team/build/locks'), 'mkroot made nothing')

    default.mkdir('one')
    check_equal(named.locks(), ['one'], 'locks in the same root')
    check_equal(deep.locks(), [], 'locks in another root')
    deep.mkdir('two')
    check(server.zk.exists('/team/build/locks/two'), 'the path is not the path')
    case.mount(server, 'd', root='/team/build/locks').take('two').held()

    below = case.mount(server, 'e', root='/locks/one')
    below.mkdir('three')
    check_errno(errno.ENOTEMPTY, os.rmdir, default.path('one'))
    os.rmdir(below.path('three'))
    check_errno(errno.EBUSY, os.rmdir, default.path('one'))
    check(below.status()['state'] == 'ready', 'the mount was disturbed')
    below.unmount()
    os.rmdir(default.path('one'))
    check_equal(named.locks(), [], 'locks in the same root')


run(test)
