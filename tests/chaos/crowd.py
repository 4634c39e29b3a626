# SPDX-License-Identifier: MIT
"""crowd.py - many threads of one process that take locks in bursts, without a pause, in turn a
few locks and many. The engine then has so much to do that it sends creates and deletes in
transactions. The mount's own counters, read before and after each burst, show whether it did.
"""

import contextlib
import os
import random
import re
import threading
import time

import history
from history import now
from taker import Lost, Taker, close

THREADS = 32
_TAKES, _SECONDS = 600, 3.0       # a burst ends with either
_FEW = 3


class Member(Taker):
    gate = None                   # where threads that take in step wait for each other
    own = None                    # a lock that it takes more often than the others do

    def burst(self, locks, goes_on, gate):
        rng = self.random
        self.gate = gate
        while goes_on():
            lock = self.own if len(locks) > _FEW and rng.random() < 0.5 else rng.choice(locks)
            if self.open(lock, 'lock' if rng.random() < 0.95 else 'shared'):
                self.use_shortly()

        gate.abort()
        self.gate = None

    def _take(self, *args):
        # This thread holds no lock here, so no other thread waits for it.
        if self.gate and not self.gate.broken:
            with contextlib.suppress(threading.BrokenBarrierError):
                self.gate.wait(_SECONDS)
        return super()._take(*args)

    def use_shortly(self):
        """Use the lock in haste: mostly only check that it is held, and now and then read the
        token, for which the mount may have to ask the ensemble."""
        try:
            if self.random.random() < 0.3:
                self.check('read' if self.random.random() < 0.2 else 'poll')
                value = self.read('naive')
                if self.mode == 'exclusive':
                    self.write('naive', value + 1)
                else:
                    self.read('naive')
            self.check('poll')
        except Lost:
            pass
        finally:
            self.release()


def _counters(mount):
    """(takes, requests) of the mount, or None if the daemon is dead."""
    try:
        # Not by Python's own files: see the eviction in faults.py.
        fd = os.open(mount + '/.zklockfs/metrics', os.O_RDONLY)
        try:
            text = os.read(fd, 65536).decode()
        finally:
            close(fd)
    except OSError:
        return None
    return tuple(int(re.search(rf'^zklockfs_{name}_total(?:{{.*}})? (\d+)$', text, re.MULTILINE)[1])
                 for name in ('takes', 'requests'))


def _burst(args, members, locks, log):
    deadline = time.monotonic() + _SECONDS
    left = [_TAKES]                # a few more do no harm

    def goes_on():
        left[0] -= 1
        return left[0] >= 0 and time.monotonic() < deadline and not os.path.exists(args.finish)
    # On many locks all threads begin together, so that the engine has much to do at a time.
    # On few locks it has much to do anyway, as the threads wait for each other.
    gate = threading.Barrier(len(members))
    if len(locks) == _FEW:
        gate.abort()
    before, c = _counters(args.mount), now()
    threads = [threading.Thread(target=member.burst, args=(locks, goes_on, gate)) for member in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after, r = _counters(args.mount), now()
    # A new daemon counts from 0.
    if before and after and after[0] >= before[0] and after[1] >= before[1]:
        log.write('burst', locks=len(locks), takes=after[0] - before[0],
                  requests=after[1] - before[1], c=c, r=r)


def run(args):
    rng = random.Random(args.seed)
    log = history.Writer(f'{args.histories}/{args.name}')
    members = [Member(args, f'{args.name}.{number}', f'{args.seed} {number}') for number in range(THREADS)]
    for number, member in enumerate(members):
        member.own = must(args.burst_locks, number)
    few = rng.random() < 0.5
    while not os.path.exists(args.finish):
        few = not few
        _burst(args, members, args.burst_locks[:_FEW] if few else args.burst_locks, log)
        pause = time.monotonic() + rng.uniform(1, 8)
        while time.monotonic() < pause and not os.path.exists(args.finish):
            time.sleep(0.05)
    # In the end each member takes one lock, and together they take all locks.
    threads = [threading.Thread(target=member.take_each, args=([must(args.burst_locks, number)],))
               for number, member in enumerate(members)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.write('exit')


def must(locks, number):
    """The lock that a thread has to get in the end."""
    return locks[number % len(locks)]
