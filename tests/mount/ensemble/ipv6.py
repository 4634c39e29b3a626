#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Servers with IPv6 addresses: given as numbers, and as names that have both kinds of
addresses."""

import socket

from harness import check_equal, errno_of, run


def test(case):
    if errno_of(socket.create_server, ('::1', 0), family=socket.AF_INET6):
        print('nothing to be tried: no IPv6 here')
        return
    server = case.server()
    relay = case.relay(server, '::1')
    case.hosts('::1 new\n::1 both\n127.0.0.1 both\n')
    there, dead = f'[::1]:{relay.port}', '127.0.0.1:9'
    for count, servers in enumerate((there, f'{dead},{there}', f'[::1]:9,{dead},{there}', f'new:{relay.port}',
                                     f'both:{relay.port}')):
        mount = case.mount(server, f'host{count}', servers=servers)
        mount.allow('.')
        mount.mkdir(f'lock{count}')
        mount.take(f'lock{count}').held().release()
        check_equal(mount.status()['server'], there, f'the server in use of {servers}')
        mount.unmount()


run(test)
