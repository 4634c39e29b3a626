# SPDX-License-Identifier: MIT
"""scale.py - one mount with very many waiters, very many locks, very many mounts."""

import os
import statistics
import subprocess
import time

from processes import BenchError, until
from relay import Relay

REST_SECONDS = 3.0


def _list_ms(path):
    """A plain ls: its time, and how many names it printed."""
    began = time.monotonic()
    out = subprocess.run(['ls', path], stdout=subprocess.PIPE, check=True).stdout
    return (time.monotonic() - began) * 1e3, out.count(b'\n')


def _lists_ms(path, wanted):
    took = []
    for _ in range(5):
        ms, names = _list_ms(path)
        if names != wanted:
            raise BenchError(f'ls {path} gave {names} names and not {wanted}')
        took.append(ms)
    return statistics.median(took)


def waiting(bench, clients, waiters):
    """Very many opens of one lock wait on one mount; then each holds once, in turn."""
    host = clients.peer.host(0)
    mount, worker, visitors = host.mount, clients.worker(), clients.fresh()
    lock = f'w{len(str(waiters))}'     # short: 10,000 entries of a longer name are more than a mount's limit of bytes
    worker.make(lock)
    queue = f'{mount.directory}/{lock}/queue'
    worker.take(0, lock)
    worker.held(0)
    before_kib = mount.memory_kib()
    watches = bench.zookeeper.metric('zk_watch_count')
    entries = bench.zookeeper.metric('zk_ephemerals_count')
    began = time.monotonic()
    for slot in range(waiters):
        visitors.visit(slot, lock)
    # has() also reads a refusal, which raises an error.
    until(lambda: not visitors.has(('held', 0)) and
          bench.zookeeper.metric('zk_ephemerals_count') == entries + waiters, 'all stand in the queue', 120)
    queued = time.monotonic() - began
    until(lambda: _list_ms(queue)[1] == waiters + 1, 'all are listed')
    kib = mount.memory_kib()
    watches = bench.zookeeper.metric('zk_watch_count') - watches
    cpu = mount.cpu_seconds()
    time.sleep(REST_SECONDS)
    cpu = mount.cpu_seconds() - cpu
    listed = _lists_ms(queue, waiters + 1)
    worker.drop(0)
    began = worker.dropped(0)[0]
    grants = sorted(visitors.held(slot, 300)[1] for slot in range(waiters))
    for slot in range(waiters):
        visitors.dropped(slot)
    until(lambda: bench.zookeeper.metric('zk_ephemerals_count') == entries - 1, 'the queue is empty', 120)
    return {'enqueue us': queued * 1e6 / waiters, 'grant us': (grants[-1] - began) / 1e3 / waiters,
            'ls queue ms': listed, 'RSS MiB': kib / 1024, 'KiB per waiter': (kib - before_kib) / waiters,
            'threads': mount.threads(), 'watches': watches, 'CPU % while waiting': 100 * cpu / REST_SECONDS}


def locks(clients, count):
    """Very many locks in one directory."""
    mount = clients.peer.host(0).mount
    top = mount.directory + '/wide'
    os.mkdir(top)
    empty = len(os.listdir(top))
    began = time.monotonic()
    for number in range(count):
        os.mkdir(f'{top}/lock{number}')
    made = time.monotonic() - began
    return {'mkdir us': made * 1e6 / count, 'ls ms': _lists_ms(top, empty + count), 'RSS MiB': mount.memory_kib() / 1024}


def mounts(clients, count, seconds):
    """Many hosts, each with one process that takes the same lock again and again."""
    workers = [clients.peer.host(number).worker() for number in range(count)]
    workers[0].make('bench0')
    for worker in workers:
        worker.start_cycles(1, 1, 1.0, seconds)
    results = [worker.cycles(seconds + 60) for worker in workers]
    counts = [result['cycles'] for result in results]
    return {'cycles/s': sum(counts) / seconds, 'acquire p50 us': statistics.median(r['p50'] for r in results) / 1e3,
            'fewest': min(counts), 'most': max(counts)}


def sessions(clients, count, seconds):
    """The same with many sessions of one process, as in the plain recipe."""
    worker = clients.worker()
    worker.make('bench0')
    worker.start_cycles(count, 1, 1.0, seconds)
    result = worker.cycles(seconds + 60)
    return {'cycles/s': result['cycles'] / seconds, 'acquire p50 us': result['p50'] / 1e3,
            'fewest': result['least'], 'most': result['most']}


def idle(bench, make_clients, seconds):
    """A mount without users: its requests, and its processor time."""
    relay = Relay(bench.zookeeper.ports[0])
    bench.zookeeper.way, direct = relay.address, bench.zookeeper.way
    try:
        clients = make_clients()
        try:
            mount = clients.peer.host(0).mount
            time.sleep(1)
            before = relay.counts()[0]
            cpu = mount.cpu_seconds()
            time.sleep(seconds)
            after = relay.counts()[0]
            cpu = mount.cpu_seconds() - cpu
        finally:
            clients.close()
    finally:
        bench.zookeeper.way = direct
        relay.end()
    sent = after - before
    return {'heartbeats/s': sent.pop('heartbeat', 0) / seconds, 'pings/s': sent.pop('ping', 0) / seconds,
            'other requests': sum(sent.values()), 'CPU %': 100 * cpu / seconds}
