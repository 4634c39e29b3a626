# SPDX-License-Identifier: MIT
"""scenarios.py - the measurements. Each takes the clients of a peer and the lengths of this
run, and returns figures by name; the end of a figure's name is its unit:

    /s       more is better
    us, ms   less is better
    flights  less is better: how many times the way from a client to its server, if a distance
             was set
"""

import concurrent.futures
import os
import statistics
import time

from processes import run

PAUSE_US = 500
# Longer than the kernel remembers names: the usual take is that of a program which comes now and then.
USUAL_PAUSE_US = 1500000
LISTED = 1000
AMONG = (2, 3, 5, 10)
USUAL_WARM, USUAL_RUN, USUAL_LOCKS = 3.5, 9, 4


class Lengths:
    def __init__(self, quick):
        self.warm = 1.0 if quick else 1.5
        self.first_warm = 3.0 if quick else 6.0   # a JVM compiles what it runs
        self.run = 1.5 if quick else 3.0
        self.hand_offs = 40 if quick else 100
        self.kills = 5 if quick else 10


def _cycles(worker, threads, locks, lengths, mode='exclusive', pause_us=0):
    for number in range(locks):
        worker.make(f'bench{number}')
    # The first measurement of a worker has a longer time to warm up.
    warm = lengths.warm if getattr(worker, 'warmed', False) else lengths.first_warm
    worker.warmed = True
    worker.start_cycles(threads, locks, warm, lengths.run, mode, pause_us)
    result = worker.cycles(warm + lengths.run)
    return {'cycles/s': result['cycles'] / result['seconds'], 'acquire p50 us': result['p50'] / 1e3,
            'acquire p99 us': result['p99'] / 1e3, 'release p50 us': result['drop_p50'] / 1e3}


def _flights(clients, figures, microseconds):
    delay = clients.peer.bench.place.delay_seconds
    if delay:
        figures['flights'] = microseconds / 1e6 / delay
    return figures


def uncontended(clients, lengths):
    """One thread, one lock."""
    figures = _cycles(clients.worker(), 1, 1, lengths)
    return _flights(clients, figures, figures['acquire p50 us'])


def rested(clients, lengths):
    """One thread, one lock, and time after a release for all that still belongs to it."""
    figures = _cycles(clients.worker(), 1, 1, lengths, pause_us=PAUSE_US)
    del figures['cycles/s']
    return figures


def usual(clients, lengths):
    """A take each 1.5 s, of each of four locks by a thread of its own."""
    del lengths
    worker = clients.worker()
    for number in range(USUAL_LOCKS):
        worker.make(f'bench{number}')
    worker.start_cycles(USUAL_LOCKS, USUAL_LOCKS, USUAL_WARM, USUAL_RUN, pause_us=USUAL_PAUSE_US)
    result = worker.cycles(USUAL_WARM + USUAL_RUN)
    return _flights(clients, {'acquire p50 us': result['p50'] / 1e3}, result['p50'] / 1e3)


def hot(clients, lengths):
    """16 threads of one process, one lock."""
    return _cycles(clients.worker(), 16, 1, lengths)


def hot_remote(clients, lengths):
    """One lock, 8 threads of each of two hosts."""
    workers = [clients.worker(0), clients.worker(1)]
    workers[0].make('bench0')
    for worker in workers:
        worker.start_cycles(8, 1, lengths.warm, lengths.run)
    results = [worker.cycles(lengths.warm + lengths.run) for worker in workers]
    return {'cycles/s': sum(result['cycles'] / result['seconds'] for result in results),
            'acquire p50 us': statistics.median(result['p50'] for result in results) / 1e3}


def among(clients, lengths):
    """One lock goes round among 2, 3, 5 and 10 hosts, with one thread each."""
    figures = {}
    workers = [clients.worker(host) for host in range(AMONG[-1])]
    workers[0].make('bench0')
    for hosts in AMONG:
        for worker in workers[:hosts]:
            worker.start_cycles(1, 1, lengths.warm, lengths.run)
        results = [worker.cycles(lengths.warm + lengths.run) for worker in workers[:hosts]]
        figures[f'{hosts} hosts cycles/s'] = sum(result['cycles'] / result['seconds'] for result in results)
    return figures


def many(clients, lengths):
    """64 threads of one process, each its own lock."""
    return _cycles(clients.worker(), 64, 64, lengths)


def shared(clients, lengths):
    """16 threads of one process share one lock."""
    return _cycles(clients.worker(), 16, 1, lengths, 'shared')


def fair(clients, lengths):
    """16 threads of one host take a lock again and again; how long does a thread of another host
    wait?"""
    crowd, one = clients.worker(0), clients.worker(1)
    crowd.make('bench0')
    seconds = lengths.warm + lengths.run
    crowd.start_cycles(16, 1, lengths.warm, lengths.run)
    one.start_cycles(1, 1, lengths.warm, lengths.run)
    theirs, result = crowd.cycles(seconds), one.cycles(seconds)
    return {'p50 us': result['p50'] / 1e3, 'p99 us': result['p99'] / 1e3, 'max us': result['max'] / 1e3,
            'all cycles/s': (theirs['cycles'] + result['cycles']) / result['seconds']}


def _hand_offs(one, other, settle_seconds, lengths):
    """The times from before a release until the other's take returns. Holder and waiter have come
    to rest before."""
    one.make('handoff')
    holder, waiter, slot = one, other, 0
    holder.take(slot, 'handoff')
    holder.held(slot)
    took = []
    for _ in range(lengths.hand_offs):
        waiter.take(slot + 1, 'handoff')
        time.sleep(settle_seconds)
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
    return _hand_offs(clients.worker(), clients.worker(), clients.peer.settle(), lengths)


def hand_off_remote(clients, lengths):
    """Two hosts: two mounts, two JVMs, two processes."""
    figures = _hand_offs(clients.worker(0), clients.worker(1), clients.peer.settle(), lengths)
    return _flights(clients, figures, figures['p50 us'])


def lists(clients, lengths):
    """ls and ls -l of 1,000 locks, of which the kernel remembers none."""
    del lengths
    mount = getattr(clients.peer.host(0), 'mount', None)
    if not mount:
        return {}
    top = mount.directory + '/listed'
    os.makedirs(top, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: os.makedirs(f'{top}/lock{number}', exist_ok=True), range(LISTED)))
    figures = {}
    for command in ('ls', 'ls -l'):
        time.sleep(1.2)
        began = time.monotonic()
        run([*command.split(), top])
        figures[f'{command} ms'] = (time.monotonic() - began) * 1e3
    return figures


def killed(clients, lengths):
    """The time from SIGKILL of the holder's process until the next one, on the same host, holds.
    If that takes the time of a session or a TTL, it is measured only once."""
    took = []
    slow = clients.peer.dead_seconds > 0
    if slow and clients.killed:
        return {}
    clients.killed = True
    waiter = clients.worker()
    waiter.make('killed')
    for _ in range(1 if slow else lengths.kills):
        holder = clients.fresh()
        holder.take(0, 'killed')
        holder.held(0)
        waiter.take(1, 'killed')
        time.sleep(clients.peer.settle())
        killed_at = holder.kill()
        _, after = waiter.held(1, clients.peer.dead_seconds + 60)
        took.append((after - killed_at) / 1e6)
        waiter.drop(1)
        waiter.dropped(1)
    return {'p50 ms': statistics.median(took), 'max ms': max(took)}


# Scenarios that need a lock that excludes.
EXCLUDING = ('hot', 'hot-remote', 'among', 'shared', 'fair', 'handoff-local', 'handoff-remote', 'killed')

SCENARIOS = {
    'uncontended': uncontended,
    'rested': rested,
    'usual': usual,
    'hot': hot,
    'hot-remote': hot_remote,
    'among': among,
    'many': many,
    'shared': shared,
    'handoff-local': hand_off_local,
    'handoff-remote': hand_off_remote,
    'killed': killed,
    'lists': lists,
    'fair': fair,
}
# Measured on every storage, with one server and with three; the others do not depend on these.
EVERYWHERE = ('uncontended', 'hot', 'many', 'handoff-local', 'handoff-remote')
# Measured where the servers are far away.
FAR = ('uncontended', 'usual', 'hot-remote', 'among', 'handoff-remote', 'lists')


class Clients:
    """The workers of one peer, kept over all rounds so that they stay warm."""

    def __init__(self, peer):
        self.peer = peer
        self.kept = {}
        self.killed = False      # killed() has been measured

    def worker(self, host=0):
        if host not in self.kept:
            self.kept[host] = self.peer.host(host).worker()
        return self.kept[host]

    def fresh(self, host=0):
        return self.peer.host(host).worker()

    def close(self):
        self.kept.clear()
        self.peer.close()
