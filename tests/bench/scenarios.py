# SPDX-License-Identifier: MIT
"""scenarios.py - what is measured. Each takes a peer and the lengths of this run
and returns figures by name; a figure's ending says its unit:

    /s       more is better
    us, ms   less is better
"""

import statistics
import time

from processes import until

# A waiter has found its place, and the holder is at rest, long before this.
SETTLE_SECONDS = 0.04


class Lengths:
    def __init__(self, quick):
        self.warm = 1.0 if quick else 3.0
        self.first_warm = 3.0 if quick else 8.0   # a JVM compiles what it runs
        self.run = 1.5 if quick else 5.0
        self.hand_offs = 40 if quick else 200
        self.kills = 5 if quick else 20


def _cycles(worker, threads, locks, lengths, mode='exclusive'):
    for number in range(locks):
        worker.make(f'bench{number}')
    # The first time in a worker's life it is also warmed up.
    warm = lengths.warm if getattr(worker, 'warmed', False) else lengths.first_warm
    worker.warmed = True
    worker.start_cycles(threads, locks, warm, lengths.run, mode)
    result = worker.cycles(warm + lengths.run)
    return {'cycles/s': result['cycles'] / result['seconds'], 'acquire p50 us': result['p50'] / 1e3,
            'acquire p99 us': result['p99'] / 1e3, 'release p50 us': result['drop_p50'] / 1e3}


def uncontended(clients, lengths):
    """One thread, one lock."""
    return _cycles(clients.worker(), 1, 1, lengths)


def hot(clients, lengths):
    """16 threads of one process, one lock."""
    return _cycles(clients.worker(), 16, 1, lengths)


def many(clients, lengths):
    """64 threads of one process, each its own lock."""
    return _cycles(clients.worker(), 64, 64, lengths)


def _hand_offs(one, other, lengths):
    """From before the release until the other's take returns, holder and waiter settled."""
    one.make('handoff')
    holder, waiter, slot = one, other, 0
    holder.take(slot, 'handoff')
    holder.held(slot)
    took = []
    for _ in range(lengths.hand_offs):
        waiter.take(slot + 1, 'handoff')
        time.sleep(SETTLE_SECONDS)
        holder.drop(slot)
        before, _ = holder.dropped(slot)
        _, after = waiter.held(slot + 1)
        took.append((after - before) / 1e3)
        holder, waiter, slot = waiter, holder, slot + 1
    holder.drop(slot)
    holder.dropped(slot)
    took.sort()
    return {'p50 us': statistics.median(took), 'p90 us': took[int(0.9 * (len(took) - 1))]}


def hand_off_local(clients, lengths):
    """Two threads of one host."""
    return _hand_offs(clients.worker(), clients.worker(), lengths)


def hand_off_remote(clients, lengths):
    """Two hosts: two mounts, two JVMs, two processes."""
    return _hand_offs(clients.worker(0), clients.worker(1), lengths)


def killed(clients, lengths):
    """SIGKILL of the holder's process until the next one, on the same host, holds."""
    took = []
    waiter = clients.worker()
    waiter.make('killed')
    for _ in range(lengths.kills):
        holder = clients.fresh()
        holder.take(0, 'killed')
        holder.held(0)
        waiter.take(1, 'killed')
        time.sleep(SETTLE_SECONDS)
        killed_at = holder.kill()
        _, after = waiter.held(1, clients.peer.dead_seconds + 60)
        took.append((after - killed_at) / 1e6)
        waiter.drop(1)
        waiter.dropped(1)
    return {'p50 ms': statistics.median(took), 'max ms': max(took)}


# Those that need a lock that excludes.
EXCLUDING = ('hot', 'handoff-local', 'handoff-remote', 'killed')

SCENARIOS = {
    'uncontended': uncontended,
    'hot': hot,
    'many': many,
    'handoff-local': hand_off_local,
    'handoff-remote': hand_off_remote,
}


class Clients:
    """The workers of one peer, kept over all rounds so that they stay warm."""

    def __init__(self, peer):
        self.peer = peer
        self.kept = {}

    def worker(self, host=0):
        if host not in self.kept:
            self.kept[host] = self.peer.host(host).worker()
        return self.kept[host]

    def fresh(self, host=0):
        return self.peer.host(host).worker()

    def close(self):
        self.kept.clear()
        self.peer.close()
