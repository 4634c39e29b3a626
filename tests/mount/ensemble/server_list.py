#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lists of servers, of any length, by name or number. Only one server is alive: the mount finds it,
and finds it again after a restart."""

from harness import check, check_equal, mounted, run


def test(case):
    server = case.server()
    alive = f'127.0.0.1:{server.port}'
    dead = '127.0.0.1:9'   # discard: nobody listens
    for count, servers in enumerate((f'{dead},{alive}', f'{alive},{dead}', f'{dead},{dead},{alive}',
                                     f'{dead},{alive},{dead},{dead}', f'localhost:{server.port}')):
        mount = case.mount(server, f'host{count}', '60s', servers=servers)
        mount.allow('.')
        line = mounted(mount.directory)
        check(servers.split(',')[0] in line, f'its source: {line}')
        mount.mkdir(f'lock{count}')
        taker = mount.take(f'lock{count}').held()
        server.stop()
        server.start()
        mount.ready()
        taker.do('fsync')
        check_equal(mount.status()['server'], alive, 'the server in use')
        taker.release()
        mount.unmount()


run(test)
