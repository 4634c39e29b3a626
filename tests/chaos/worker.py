#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""worker.py - a user of the locks that writes down all it sees.

It takes a lock by one of the doors, shows its token to the fenced store and
increments the stores, and gives the lock back. It believes nothing: that it
holds the lock is true only where a check of the descriptor said so.

Manners of using the plain counter:
  careful   looks at the descriptor now and then and right before it writes, and
            gives up on EIO
  naive     reads, works, writes, as most scripts do
  probing   as naive, but threads look at the descriptor all the time, those before
            still unanswered or not: who asks a stopped daemon after the lock has
            passed on must not be told that it holds it
The fenced store is written even when the lock is lost: to refuse that is its job.

A sentry is a worker that holds a slow lock for seconds at a time.
"""

import argparse
import errno
import os
import random
import signal
import sys
import threading
import time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'mount')]

import history
import stores
from harness import raw_open
from history import now

DEAD = (errno.ENOTCONN, errno.ECONNABORTED, errno.ENOENT)   # the daemon, for now


class Lost(Exception):
    pass


class Worker:
    def __init__(self, args):
        self.args = args
        self.random = random.Random(args.seed)
        self.log = history.Writer(args.history)
        self.stores = {
            lock: {'careful': stores.Plain(f'{args.stores}/{lock}.careful'),
                   'naive': stores.Plain(f'{args.stores}/{lock}.naive'),
                   'fenced': stores.Fenced(f'{args.stores}/{lock}.fenced')}
            for lock in args.locks}
        self.fd = self.lock = self.token = self.last_ok = None

    # ---- single steps, each written down ----

    def open(self, lock, door, interrupt=0.0):
        """True: held."""
        self.lock = lock
        self.log.write('open', lock=lock, door=door, signal=interrupt > 0, c=now())
        # No handler of Python's raises, and libc's open is called itself: an open
        # that succeeded is never forgotten, an interrupted one never repeated.
        signal.setitimer(signal.ITIMER_REAL, interrupt)
        c = now()
        try:
            self.fd = raw_open(f'{self.args.mount}/{lock}/{door}', os.O_RDWR)
        except OSError as err:
            self.log.write('fail', errno=err.errno, c=c, r=now())
            if err.errno in DEAD:
                time.sleep(0.05)
            return False
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self.log.write('held', c=c, r=now())
        self.token = self.last_ok = None
        return True

    def check(self, how='read'):
        """Is the lock still ours? If not: Lost, after making sure of `for ever`."""
        if not self._check(how):
            self._check('read')
            self._check('write')
            raise Lost

    def _check(self, how):
        code = token = None
        c = now()
        try:
            if how == 'read':
                text = os.pread(self.fd, 64, 0)
                token = int(text)
            elif how == 'write':
                os.write(self.fd, b'at work')
            else:
                os.fsync(self.fd)
        except OSError as err:
            code = err.errno
        r = now()
        self.log.write('check', how=how, errno=code or 0, token=token, c=c, r=r)
        if code:
            return False
        self.last_ok = max(c, self.last_ok or 0)
        if self.token is None:
            self.token = token
        return True

    def fence(self, op, *value):
        c = now()
        result = getattr(self.stores[self.lock]['fenced'], op)(self.token, *value)
        refused = result is None or result is False
        self.log.write('fence', op=op, ok=not refused, value=value[0] if value else result, c=c, r=now())
        return None if refused else result

    def read(self, name):
        c = now()
        value = self.stores[self.lock][name].read()
        self.log.write('read', store=name, value=value, c=c, r=now())
        return value

    def write(self, name, value):
        c = now()
        self.stores[self.lock][name].write(value)
        self.log.write('write', store=name, value=value, checked=self.last_ok, c=c, r=now())

    def release(self):
        self.log.write('release', c=now())
        os.close(self.fd)
        self.fd = None

    # ---- a round ----

    def work(self, seconds, manner):
        """What takes the time. The careful keep an eye on the lock."""
        probes = []
        try:
            self._work(seconds, manner, probes)
        finally:
            for probe in probes:
                probe.join()

    def _work(self, seconds, manner, probes):
        deadline = time.monotonic() + seconds
        # A long hold ends early when all come to an end.
        while (left := deadline - time.monotonic()) > 0 and not os.path.exists(self.args.finish):
            time.sleep(min(left, 0.05))
            if manner == 'careful':
                self.check(self.random.choices(('read', 'write', 'fsync'), (8, 1, 1))[0])
            elif manner == 'probing' and self.random.random() < 0.2:
                probes.append(threading.Thread(target=self._check, args=('read',)))
                probes[-1].start()

    def use(self, seconds, manners=(7, 3, 0)):
        manner = self.random.choices(('careful', 'naive', 'probing'), manners)[0]
        name = 'careful' if manner == 'careful' else 'naive'
        fenced = None
        try:
            self.check()
            fenced = self.fence('read')
            value = self.read(name)
            self.work(seconds, manner)
            if manner == 'careful':
                self.check()
            self.write(name, value + 1)
            if fenced is not None:
                self.fence('write', fenced + 1)
                fenced = None
            self.check(self.random.choices(('read', 'write', 'fsync'), (8, 1, 1))[0])
        except Lost:
            if fenced is not None:
                self.fence('write', fenced + 1)
        finally:
            self.release()

    def round(self):
        rng = self.random
        slow = [lock for lock in self.args.locks if lock.startswith('slow')]
        if self.args.sentry:
            # Holds so long that a fault of any length fits in, and another one waits
            # to take over as soon as ZooKeeper lets it.
            if self.open(rng.choice(slow), 'lock'):
                self.use(rng.uniform(4.0, 12.0), (1, 1, 3))
            return
        if rng.random() < 0.05:
            if self.open(rng.choice(slow), rng.choice(('try', 'lock@300ms', 'lock@2s'))):
                self.use(rng.uniform(0.5, 3.0), (1, 1, 1))
            return
        lock = rng.choices([lock for lock in self.args.locks if not lock.startswith('slow')], (3, 2))[0]
        kind = rng.choices(('lock', 'timed', 'try', 'signal'), (50, 20, 15, 15))[0]
        door = {'timed': f'lock@{rng.choice((20, 100, 500, 2000))}ms', 'try': 'try'}.get(kind, 'lock')
        if self.open(lock, door, rng.uniform(0.001, 0.3) if kind == 'signal' else 0.0):
            self.use(rng.uniform(0.1, 0.5) if rng.random() < 0.05 else rng.uniform(0.0, 0.02))

    def run(self):
        while not os.path.exists(self.args.finish):
            self.round()
            time.sleep(self.random.uniform(0.002, 0.04))
        for lock in self.args.locks:
            c = now()
            while not self.open(lock, 'lock'):
                time.sleep(0.05)
            self.log.write('done', lock=lock, c=c, r=now())
            self.use(0.0)
        self.log.write('exit')


def main():
    parser = argparse.ArgumentParser()
    for name in ('mount', 'history', 'stores', 'finish', 'seed'):
        parser.add_argument('--' + name, required=True)
    parser.add_argument('--sentry', action='store_true')
    parser.add_argument('--locks', required=True, type=lambda text: text.split(','))
    signal.signal(signal.SIGALRM, lambda *_: None)
    Worker(parser.parse_args()).run()


if __name__ == '__main__':
    main()
