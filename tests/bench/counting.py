# SPDX-License-Identifier: MIT
"""counting.py - how many requests a cycle costs the server, counted one by one.

The relay tells the kinds. The server's own counters of its connections (`cons`)
must give the same sum, or the measurement fails. The figure has requests for locks only:
pings, heartbeats and the looks at a lock's data once a second are in the check and not
in the figure. Bytes are those of these requests, their answers and notifications.
"""

import select
import time

from processes import BenchError, until
from relay import Relay

CYCLES = 100
HELD_CYCLES = 20
HELD_SECONDS = 0.05
HAND_OFFS = 20
# Requests that keep a session, or come once in a while: they do not belong to a cycle.
_KEEPING = ('ping', 'heartbeat', 'lock data', 'close', 'exists')
REST_SECONDS = 0.3     # for requests that come after an answer: a delete, a watch


class Count:
    """Requests between two points of time, of all clients that go through the relay.
    Where each taker has a session of its own, sessions come and go and are not counted,
    and the server cannot be asked: it forgets a connection that has ended."""

    def __init__(self, bench, relay, asked):
        self.bench, self.relay, self.asked = bench, relay, asked
        time.sleep(REST_SECONDS)
        self.before = self._look()

    def _look(self):
        """Both counters, at an instant when nothing is under way."""
        deadline = time.monotonic() + 10
        while True:
            requests, sizes, notifications = self.relay.counts()
            received = sum(int(each['recved']) for each in self.bench.zookeeper.connections().values())
            if self.relay.counts()[0] == requests:
                return requests, sizes, notifications, received
            if time.monotonic() > deadline:
                raise BenchError('the clients do not come to rest')

    def per(self, cycles):
        """The figures for one cycle, of so many cycles."""
        time.sleep(REST_SECONDS)
        after = self._look()
        requests = after[0] - self.before[0]
        if self.asked and sum(requests.values()) != after[3] - self.before[3]:
            raise BenchError(f'the relay counted {dict(requests)}, the server {after[3] - self.before[3]}')
        kinds = {kind: number / cycles for kind, number in requests.items() if kind not in _KEEPING}
        sizes = {kind: size for kind, size in (after[1] - self.before[1]).items() if kind not in _KEEPING}
        return {'requests': sum(kinds.values()), 'bytes': sum(sizes.values()) / cycles,
                'notifications': (after[2] - self.before[2]) / cycles, 'kinds': kinds}


def uncontended(bench, clients, relay):
    worker = clients.worker()
    worker.make('count')

    def cycle(seconds=0):
        worker.take(0, 'count')
        worker.held(0)
        time.sleep(seconds)
        worker.drop(0)
        worker.dropped(0)
    for _ in range(CYCLES):
        cycle()
    result = {}
    for name, cycles, seconds in (('uncontended', CYCLES, 0), ('held 50 ms', HELD_CYCLES, HELD_SECONDS)):
        count = Count(bench, relay, clients.peer.one_client)
        for _ in range(cycles):
            cycle(seconds)
        result[name] = count.per(cycles)
    return result


class Queue:
    """Takers of two hosts in turn, all waiting for one lock in a known order."""

    def __init__(self, bench, clients, lock):
        self.bench, self.lock = bench, lock
        self.workers = [clients.worker(0), clients.worker(1)]
        self.workers[0].make(lock)
        self.length = 0
        self.holder = None

    def _entries(self):
        return self.bench.zookeeper.metric('zk_ephemerals_count')

    def add(self, await_entry=True):
        before = self._entries() if await_entry else 0
        worker = self.workers[self.length % 2]
        worker.take(self.length, self.lock)
        if self.length == 0:
            worker.held(0)
            self.holder = 0
        elif await_entry:
            until(lambda: self._entries() > before, 'the waiter stands in the queue')
        self.length += 1

    def pass_on(self):
        """The holder leaves, and the next one becomes the holder."""
        self.workers[self.holder % 2].drop(self.holder)
        self.workers[self.holder % 2].dropped(self.holder)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for worker in self.workers:
                for key in [key for key in worker.answers if key[0] == 'held']:
                    worker.answers.pop(key)
                    self.holder = key[1]
                    return
            ready = select.select([worker.process.stdout for worker in self.workers], [], [], 1)[0]
            for worker in self.workers:
                if worker.process.stdout in ready:
                    worker.has(('held', -1))
        raise BenchError('nobody holds')

    def empty(self):
        while True:
            self.length -= 1
            if self.length == 0:
                break
            self.pass_on()
        self.workers[self.holder % 2].drop(self.holder)
        self.workers[self.holder % 2].dropped(self.holder)


def hand_off(bench, clients, relay, waiters):
    """One taker leaves, one comes: requests of a hand-off in a queue that keeps its length."""
    line = Queue(bench, clients, f'queue{waiters}')
    idle_watches = bench.zookeeper.metric('zk_watch_count')

    def all_watch(number):
        # A herd has one node for all waiters: its watches tell how many wait.
        if not clients.peer.queues:
            until(lambda: bench.zookeeper.metric('zk_watch_count') - idle_watches == number,
                  f'{number} of {clients.peer.name} wait')
    # First hand-offs without new takers. After them the queue has the wanted length.
    for _ in range(waiters + HAND_OFFS + 1):
        line.add(await_entry=clients.peer.queues)
    all_watch(waiters + HAND_OFFS)
    count = Count(bench, relay, clients.peer.one_client)
    for number in range(HAND_OFFS):
        line.pass_on()
        all_watch(waiters + HAND_OFFS - 1 - number)
    alone = count.per(HAND_OFFS)
    time.sleep(REST_SECONDS)
    watches = bench.zookeeper.metric('zk_watch_count') - idle_watches
    left = line.length - HAND_OFFS
    count = Count(bench, relay, clients.peer.one_client)
    for _ in range(HAND_OFFS):
        line.add(await_entry=clients.peer.queues)
        all_watch(waiters + 1)
        line.pass_on()
        all_watch(waiters)
    result = count.per(HAND_OFFS)
    result['watches'] = watches
    # As many takers are left as before, though not the same ones.
    line.length = left
    line.empty()
    return {f'hand-off, {waiters} waiting': result, f'hand-off alone, {waiters} waiting': alone}


def requests(bench, make_clients, waiters):
    """All counts of one peer, over a relay of its own."""
    relay = Relay(bench.zookeeper.ports[0])
    direct = bench.zookeeper.way
    bench.zookeeper.way = relay.address
    try:
        clients = make_clients()
        try:
            result = uncontended(bench, clients, relay)
            for number in waiters:
                result.update(hand_off(bench, clients, relay, number))
        finally:
            clients.close()
    finally:
        bench.zookeeper.way = direct
        relay.end()
    return result
