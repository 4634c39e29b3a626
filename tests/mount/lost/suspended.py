#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A machine was suspended for longer than the lease (rule 3): its holder finds out at the next
call, before the mount has heard anything of the ensemble, and waiters go on waiting."""

import errno
import os

from harness import SOURCE_ROOT, check, check_equal, check_errno, command, run, until


def test(case):
    slept, library = case.directory + '/slept', case.directory + '/suspend.so'
    status, _, err = command(['cc', '-shared', '-fPIC', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-Werror', '-o',
                              library, SOURCE_ROOT + '/tests/mount/suspend.c'])
    check_equal((status, err), (0, ''), 'cc')
    server = case.server()
    b = case.mount(server, 'b')
    os.environ.update(LD_PRELOAD=library, SUSPENDED=slept,
                      ASAN_OPTIONS=os.environ.get('ASAN_OPTIONS', '') + ':verify_asan_link_order=0')
    a = case.mount(server, 'a')
    del os.environ['LD_PRELOAD']
    a.allow('lock is lost|does not answer|connection lost|resumed')
    b.allow('does not answer|connection lost|resumed')
    a.mkdir('build')
    holder = a.take('build').held()
    waiter = a.take('build')
    until(lambda: len(server.entries('build')) == 2, 'the waiter queues')
    remote = b.take('build')
    until(lambda: len(server.entries('build')) == 3, 'the remote waiter queues')

    server.freeze()
    check(holder.token() > 0, 'held')
    with open(slept, 'wb') as file:
        file.truncate(15000)
    check_errno(errno.EIO, holder.do, 'pread', 64, 0)
    check(not waiter.answered() and not remote.answered(), 'granted without a server')
    server.thaw()
    waiter.held()
    check_errno(errno.EIO, holder.token)
    check(not remote.answered(), 'two holders')
    waiter.release()
    remote.held()


run(test)
