#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A machine was suspended for longer than the lease (rule 3): its holder finds out at the next
call, before the mount has heard anything of the ensemble, and waiters go on waiting."""

import errno

from harness import check, check_errno, run, until


def test(case):
    slept = case.directory + '/slept'
    server = case.server()
    b = case.mount(server, 'b')
    a = case.mount(server, 'a', env={**case.preloaded('suspend'), 'SUSPENDED': slept})
    a.watched = False   # its clock is not the machine's
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
