#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""kazoo_locks.py - kazoo's locks, one client for all threads; the commands of actor.h.

    kazoo_locks.py lock SERVERS [ROOT]         Lock
    kazoo_locks.py readwrite SERVERS [ROOT]    WriteLock, and ReadLock for shared ones
    ... +patterns                              these also wait for names with `lock-`

Debian's Python, for Debian's kazoo.
"""

import json
import os
import sys
import threading
import time

from kazoo.client import KazooClient

SESSION_SECONDS = 15

output = threading.Lock()


def say(line):
    with output:
        sys.stdout.write(line + '\n')
        sys.stdout.flush()


def guarded(function, *args):
    """A thread that ends everything when it fails."""
    def run():
        try:
            function(*args)
        except BaseException as err:
            say(f'failed {err!r}')
            os._exit(1)
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


class Actor:
    def __init__(self, kind, servers, root='/bench'):
        self.kind, _, patterns = kind.partition('+')
        self.patterns = ['lock-'] if patterns else []
        self.root = root + '/'
        self.client = KazooClient(servers, timeout=SESSION_SECONDS)
        self.client.start(timeout=300)
        self.slots = {}

    def lock(self, name, mode):
        kind = self.client.Lock
        if self.kind == 'readwrite':
            kind = self.client.ReadLock if mode == 'shared' else self.client.WriteLock
        return kind(self.root + name, extra_lock_patterns=self.patterns)

    def make(self, name):
        self.client.ensure_path(self.root + name)
        say('made')

    def hold(self, slot, name, mode, told):
        lock = self.lock(name, mode)
        before = time.monotonic_ns()
        lock.acquire()
        after = time.monotonic_ns()
        say(f'held {slot} {before} {after}')
        told.wait()
        before = time.monotonic_ns()
        lock.release()
        after = time.monotonic_ns()
        say(f'dropped {slot} {before} {after}')

    def take(self, slot, name, mode):
        told = self.slots[slot] = threading.Event()
        guarded(self.hold, slot, name, mode, told)

    def drop(self, slot):
        self.slots.pop(slot).set()

    def cycler(self, lock, go, window, pause, takes, drops):
        go.wait()
        gone = 0
        while gone < window[1]:
            began = time.monotonic_ns()
            lock.acquire()
            held = time.monotonic_ns()
            lock.release()
            gone = time.monotonic_ns()
            if began >= window[0] and gone <= window[1]:
                takes.append(held - began)
                drops.append(gone - held)
            if pause:
                time.sleep(pause)

    def cycles(self, threads, locks, mode, warm_ms, run_ms, pause_us):
        go, window, threads_started, results = threading.Event(), [0, 0], [], []
        for number in range(int(threads)):
            lock = self.lock(f'bench{number % int(locks)}', mode)
            results.append(([], []))
            threads_started.append(guarded(self.cycler, lock, go, window, int(pause_us) / 1e6,
                                           *results[-1]))
        window[0] = time.monotonic_ns() + int(warm_ms) * 1000000
        window[1] = window[0] + int(run_ms) * 1000000
        go.set()
        for thread in threads_started:
            thread.join()
        takes = sorted(value for each, _ in results for value in each)
        drops = sorted(value for _, each in results for value in each)
        counts = [len(each) for each, _ in results]

        def part(values, p):
            return values[int(p * (len(values) - 1))] if values else 0
        say('cycles ' + json.dumps({
            'cycles': len(takes), 'seconds': int(run_ms) / 1e3,
            'p50': part(takes, 0.5), 'p90': part(takes, 0.9), 'p99': part(takes, 0.99),
            'max': part(takes, 1), 'drop_p50': part(drops, 0.5),
            'least': min(counts), 'most': max(counts)}))


def main(actor=None):
    actor = actor or Actor(*sys.argv[1:])
    say('ready')
    for line in sys.stdin:
        words = line.split()
        if words[0] == 'quit':
            break
        getattr(actor, words[0])(*words[1:])
    os._exit(0)


if __name__ == '__main__':
    threading.stack_size(256 << 10)
    guarded(main).join()
