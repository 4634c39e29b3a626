#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What mounts cost that nobody uses: the writes of the ensemble, before they rest and while they rest; and what the
first take after a rest costs, in round trips: with servers that are 50 ms away each way, where only the connection of
TCP, one round trip more, is not far.

    tests/bench/resting.py [MOUNTS]        100; some four minutes

The points: nothing is written while all rest, and the first take costs five round trips at most. A try, which lists
before it makes an entry, costs one or two more."""

import os
import re
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'mount'))
os.environ['ZKLOCKFS_CASE_SECONDS'] = '900'

from harness import run, until

SECONDS = 30
WAY = 0.05
AFTER = 3     # what a mount asks of its server after a rest, it asks within two seconds


def written(server):
    """The transactions so far."""
    return int(re.search(r'Zxid: 0x(\w+)', server.ask('srvr')).group(1), 16)


def writes_a_minute(server):
    before = written(server)
    time.sleep(SECONDS)
    return 60 / SECONDS * (written(server) - before)


def take_ms(mount, lock_file='lock'):
    began = time.monotonic()
    os.close(os.open(mount.path('build', lock_file), os.O_RDWR))
    return 1000 * (time.monotonic() - began)


def test(case):
    server = case.server()
    relay = case.relay(server, delay=WAY)
    far, far_try = (case.mount(server, host, servers=f'127.0.0.1:{relay.port}') for host in ('far', 'try'))
    far.mkdir('build')
    usual = {}
    for mount, lock_file in ((far, 'lock'), (far_try, 'try')):
        time.sleep(2)
        usual[mount] = min((time.sleep(2), take_ms(mount, lock_file))[1] for _ in range(3))
    mounts = [case.mount(server, f'm{i}') for i in range(count)]
    awake = writes_a_minute(server)
    until(lambda: all(mount.status()['resting'] == '1' for mount in [far, far_try, *mounts]), 'all rest', 300)
    until(lambda: written(server) == (time.sleep(1), written(server))[1], 'nothing is written')
    rest = writes_a_minute(server)
    print(f'{count} mounts and two: {awake:.0f} writes a minute, {rest:.0f} while they rest:', 'MISSED' if rest else 'ok')
    for mount, lock_file in ((far, 'lock'), (far_try, 'try')):
        trips = take_ms(mount, lock_file) / 2000 / WAY
        print(f'first take by {lock_file}: {trips:.1f} round trips and that of TCP, usually {usual[mount] / 2000 / WAY:.1f}:',
              '' if lock_file == 'try' else 'ok' if trips <= 4.1 else 'MISSED')
    before = written(server)
    for number, mount in enumerate(mounts):
        os.mkdir(mount.path(f'lock{number}'))
    time.sleep(AFTER)
    print(f'all make a lock: {(written(server) - before) / count:.1f} writes each within {AFTER} s')


count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
sys.argv[1:] = []
run(test)
