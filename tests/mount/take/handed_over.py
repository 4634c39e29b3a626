#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A lock goes from mount to mount (rule 10): the event that the holder's entry is gone is the
grant. That takes one round trip where a listing takes two, and as many requests and bytes with
200 in line as with 20."""

import os
import socket
import subprocess
import sys
import threading
import time

from harness import CC, SOURCE_ROOT, check, check_equal, run, spawn, until

sys.path.append(SOURCE_ROOT + '/tests/bench')
from relay import Relay   # noqa: E402  pylint: disable=wrong-import-position

LENGTHS = 20, 200
KNOWN = 3        # hand-offs until both mounts have listed all that wait
COUNTED = 4
COUNTS = 3       # one hand-off in very many ends in a listing, which is slower and as safe
FLIGHT_MS = 200
# Requests that keep a session, and requests of the test itself.
KEEPING = 'ping', 'heartbeat', 'exists', 'lock data'


class Opener:
    """A taker in a thread, because the test does not need two hundred processes."""

    def __init__(self, path):
        self.path, self.fd, self.when = path, None, None
        self.thread = threading.Thread(target=self._open)
        self.thread.start()

    def _open(self):
        fd = os.open(self.path, os.O_RDWR)
        self.when = time.monotonic()
        self.fd = fd

    def held(self):
        until(lambda: self.fd is not None, 'the next one holds')
        self.thread.join()

    def leave(self):
        os.close(self.fd)
        return time.monotonic()


def line_up(server, mounts, lock, length):
    """Takers of both mounts in turn, in a known order; the first one holds."""
    mounts[0].mkdir(lock)
    openers = []
    for i in range(length):
        openers.append(Opener(mounts[i % 2].path(lock, 'lock')))
        until(lambda: len(server.entries(lock)) == len(openers), 'the taker queues')
    openers[0].held()
    return openers


def hand_over(openers, i):
    left = openers[i].leave()
    openers[i + 1].held()
    return openers[i + 1].when - left


def check_costs(server, mounts, relay):
    costs = []
    for length in LENGTHS:
        openers = line_up(server, mounts, f'line{length}', length)

        def settle(entry):
            """Wait for the last request: the holder writes since when it holds, for all to see."""
            until(lambda: b'held_since' in server.zk.get(f'/locks/line{length}/{entry}')[0], 'it is written')
            before = None
            while before != relay.counts()[0]:
                before = relay.counts()[0]
                time.sleep(0.1)
        entries = server.entries(f'line{length}')
        done = 0

        def hand_over_and_settle(times):
            nonlocal done
            for done in range(done + 1, done + 1 + times):
                hand_over(openers, done - 1)
                settle(entries[done])
        hand_over_and_settle(KNOWN)
        for _ in range(COUNTS):
            before = relay.counts()
            hand_over_and_settle(COUNTED)
            after = relay.counts()
            requests, sizes = after[0] - before[0], after[1] - before[1]
            if requests['list'] == 0:
                break
        for kind in KEEPING:
            requests.pop(kind, None)
            sizes.pop(kind, None)
        print(f'{length} in line: {dict(requests)}, {sum(sizes.values())} bytes in {COUNTED} hand-offs')
        check_equal(requests['list'], 0, 'listings')
        costs.append((sum(requests.values()), sum(sizes.values())))
        for i in range(done, length - 1):
            hand_over(openers, i)
        openers[-1].leave()
    # A question may be counted before or behind a hand-off; each of 180 more in line would count.
    check(abs(costs[1][0] - costs[0][0]) < COUNTED, f'requests: {costs}')
    check(abs(costs[1][1] - costs[0][1]) <= costs[0][1] / 4, f'bytes: {costs}')


def check_flights(case, server):
    delay = case.directory + '/delay'
    subprocess.check_call([*CC, '-O2', '-D_GNU_SOURCE', '-o', delay, SOURCE_ROOT + '/tests/bench/delay.c'])
    with socket.create_server(('127.0.0.1', 0)) as listener:
        port = listener.getsockname()[1]
    way = spawn([delay, str(FLIGHT_MS * 1000), str(port), str(server.port)], prompt=15, stdout=subprocess.PIPE)
    case.cleanups.callback(way.kill)
    check(way.stdout.readline(), 'the way with a delay is open')
    mounts = [case.mount(server, host, servers=f'127.0.0.1:{port}') for host in ('far1', 'far2')]
    openers = line_up(server, mounts, 'far', 6)
    flights = [hand_over(openers, i) * 1000 / FLIGHT_MS for i in range(5)]
    openers[-1].leave()
    print('flights of the hand-offs: ' + ', '.join(f'{number:.2f}' for number in flights))
    check(1.8 < min(flights) < 3, 'two flights: delete there, event here')
    for mount in mounts:
        mount.unmount()


def test(case):
    server = case.server()
    relay = Relay(server.port)
    case.cleanups.callback(relay.end)
    mounts = [case.mount(server, host, servers=relay.address) for host in 'ab']
    check_costs(server, mounts, relay)
    check_flights(case, server)


run(test)
