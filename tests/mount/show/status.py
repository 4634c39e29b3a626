#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`.zklockfs/status` tells about the mount, in `key: value` lines."""

import os

from harness import check, check_equal, run, until


def test(case):
    server = case.server()
    mount = case.mount(server, session='6s')
    text = mount.read('.zklockfs', 'status')
    for line in text.splitlines():
        check(': ' in line, f'no key and value: {line!r}')
    check(os.stat(mount.path('.zklockfs', 'status')).st_size >= len(text), 'the size is no upper bound')
    status = mount.status()
    check_equal(status['state'], 'ready', 'state')
    check_equal(status['server'], f'127.0.0.1:{server.port}', 'server')
    check(status['session'].startswith('0x'), status['session'])
    check(mount.session() in server.connections(), 'no such session at the server')
    check('lease_left' in status and 'tick_time' in status, f'keys: {list(status)}')

    server.stop()
    mount.allow('.')
    status = until(lambda: mount.status() if mount.status()['state'] != 'ready' else None,
                   'it sees that the server has gone')
    check_equal(status['state'], 'suspended', 'while the lease runs')
    check(0 < int(status['lease_left'][:-2]) < 6000, f'the lease: {status["lease_left"]}')
    status = until(lambda: mount.status() if mount.status()['state'] != 'suspended' else None,
                   'the lease ends')
    check_equal((status['state'], status['lease_left']), ('lost', '0ms'), 'after that')
    server.start()
    mount.ready()


run(test)
