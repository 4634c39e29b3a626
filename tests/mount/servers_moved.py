#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The names of the servers get other addresses, and the mount finds the servers there. The loop
does not wait for the name service meanwhile. A name service without news changes nothing."""

import os

from harness import check, check_equal, run, until


def test(case):
    server = case.server()
    relay = case.relay(server, '127.0.0.2')
    case.hosts('127.0.0.2 zookeeper-of-the-test\n')
    mount = case.mount(server, session='6s', servers=f'zookeeper-of-the-test:{relay.port}')
    mount.allow('connection lost|session ended|lock is lost')
    mount.mkdir('build')
    holder = mount.take('build').held()
    waiter = mount.take('build')
    until(lambda: len(server.entries('build')) == 2, 'both queue')
    session = mount.session()

    # A name service that is gone is no reason to give anything up.
    case.hosts('')
    relay.end()
    until(lambda: mount.status()['state'] == 'lost', 'the lease ends')
    until(lambda: len(server.entries('build')) == 0, 'the session ends')
    check_equal(mount.session(), session, 'the session that the mount knows')

    moved = case.relay(server, '127.0.0.3', relay.port)
    case.hosts('127.0.0.3 zookeeper-of-the-test\n127.0.0.2 zookeeper-of-the-test\n')
    until(lambda: mount.status()['state'] == 'ready', 'it finds the server', 40)
    check_equal(mount.status()['server'], f'127.0.0.3:{moved.port}', 'the server')
    until(lambda: 'new addresses: 127.0.0.2' in mount.log(), 'the log says so')
    waiter.held()
    holder.release()
    waiter.release()
    check(not [pid for pid in case.daemons() if pid != mount.daemon], 'processes that are left')
    check(os.listdir(mount.path('build/queue')) == [], 'the queue')


run(test)
