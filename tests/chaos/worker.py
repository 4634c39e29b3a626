#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""worker.py - a user of the locks, of one of these roles:

  worker   takes various locks, by various lock files
  sentry   holds a slow lock for seconds at a time
  crowd    many threads that take locks in bursts, see crowd.py
  asker    takes nothing: asks about the locks all the time, and keeps files open
  kazoo, curator    another client, see foreigner.py
"""

import argparse
import contextlib
import os
import signal
import time

import crowd
import foreigner
from taker import Taker, close


def limited(lock_file, rng):
    """Some lock files get a longest time, which may be shorter than the work; some get a least time,
    which may be longer."""
    limits = [f'{word}={rng.randint(20, most)}ms' for word, most in (('most', 300), ('least', 200))
              if rng.random() < 0.04]
    if len(limits) == 2:    # they may contradict each other
        limits.pop()
    return lock_file + (',' if '@' in lock_file else '@') + limits[0] if limits else lock_file


class Worker(Taker):
    def patrol(self):
        """Hold so long that a fault of any length fits in, while another sentry waits to
        get the lock as soon as ZooKeeper gives it away."""
        rng = self.random
        lock = rng.choice(self._named('slow'))
        way = rng.choices(('lock', 'shared', 'flock'), (6, 2, 2))[0]
        if way == 'flock':
            held = self.flock(lock, rng.choice(('exclusive', 'shared')))
        else:
            held = self.open(lock, way)
        if held:
            self.use(rng.uniform(4.0, 24.0), (1, 1, 3))

    def _named(self, beginning):
        return [lock for lock in self.args.locks if lock.startswith(beginning)]

    def round(self):
        rng = self.random
        if rng.random() < 0.05:
            if self.open(rng.choice(self._named('slow')), rng.choice(('try', 'lock@300ms', 'shared@2s'))):
                self.use(rng.uniform(0.5, 3.0), (1, 1, 1))
            return
        if rng.random() < 0.1:
            self._burst()
            return
        lock = rng.choices(('hot', 'warm', 'seats', 'fleeting', 'zklockfs-mixed'), (40, 25, 20, 5, 10))[0]
        # A lock in use cannot be removed.
        long = rng.random() < 0.05 and lock != 'fleeting'
        seconds = rng.uniform(0.1, 0.5) if long else rng.uniform(0.0, 0.02)
        way = rng.choices(('lock_file', 'timed', 'try', 'flock', 'convert'), (50, 18, 12, 15, 5))[0]
        interrupt = rng.uniform(0.001, 0.3) if rng.random() < 0.15 else 0.0
        shared = rng.random() < 0.25
        mode = 'shared' if shared else 'exclusive'
        if way == 'convert':
            self._convert(lock, mode, seconds)
            return
        if way == 'flock':
            held = self.flock(lock, mode, rng.random() < 0.3, interrupt)
        else:
            lock_file = 'shared' if shared else 'lock'
            if way == 'timed':
                lock_file += f'@{rng.choice((20, 100, 500, 2000))}ms'
            held = self.open(lock, limited('try' if way == 'try' else lock_file, rng), interrupt)
        if held:
            self.use(seconds)

    def _burst(self):
        """The same lock again and again, without a look at the token: with reuse most of it asks nobody."""
        lock = self.random.choice(('hot', 'warm'))
        for _ in range(self.random.randrange(3, 30)):
            if not self.open(lock, 'lock'):
                return
            self.use_blindly(self.random.choice((0.0, 0.0, 0.001, 0.01)))

    def _convert(self, lock, mode, seconds):
        """From one mode to the other and back is two more holds."""
        if not self.flock(lock, mode):
            return
        for _ in range(2):
            mode = 'shared' if mode == 'exclusive' else 'exclusive'
            if not self.flock(lock, mode, self.random.random() < 0.3):
                return
        self.use(seconds)

    def ask_something(self, kept):
        rng = self.random
        lock = f'{self.args.mount}/{rng.choice(self.args.locks)}'
        way = rng.randrange(5)
        if way == 0:
            for name in os.listdir(lock + '/queue'):
                os.stat(f'{lock}/queue/{name}')
        elif way == 1:
            os.stat(f'{lock}/queue/{rng.randrange(1 << 31):010}-exclusive-1-nobody')
        else:
            kept.append(os.open(f"{lock}/{('holder', 'value', 'flock')[way - 2]}", os.O_RDONLY))
            os.read(kept[-1], 65536)
        while len(kept) > 50:
            close(kept.pop(rng.randrange(len(kept))))

    def inquire(self):
        kept = []
        while not os.path.exists(self.args.finish):
            for _ in range(self.random.randrange(100)):
                with contextlib.suppress(OSError):   # by faults
                    self.ask_something(kept)
            time.sleep(self.random.uniform(0.0, 0.2))
        for fd in kept:
            close(fd)
        self.log.write('exit')

    def run(self, role):
        if role == 'asker':
            self.inquire()
            return
        while not os.path.exists(self.args.finish):
            if role == 'sentry':
                self.patrol()
            else:
                self.round()
            time.sleep(self.random.uniform(0.002, 0.04))
        self.take_each(self.args.locks)


def main():
    parser = argparse.ArgumentParser()
    for name in ('mount', 'histories', 'name', 'stores', 'finish', 'seed', 'role', 'servers'):
        parser.add_argument('--' + name, required=True)
    for name in ('locks', 'slots', 'values', 'burst-locks', 'foreign-locks', 'ports'):
        parser.add_argument('--' + name, required=True, type=lambda text: text.split(','))
    args = parser.parse_args()
    signal.signal(signal.SIGALRM, lambda *_: None)
    if args.role == 'crowd':
        crowd.run(args)
    elif args.role in foreigner.KINDS:
        foreigner.Foreigner(args).run()
    else:
        Worker(args, args.name, args.seed).run(args.role)


if __name__ == '__main__':
    main()
