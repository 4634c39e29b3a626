# SPDX-License-Identifier: MIT
"""taker.py - takes locks, uses them, and records all that it sees.

It takes a lock by one of the lock files, shows its token to the fenced store and
increments the stores, and gives the lock back. It counts a lock as held only where
a check of the descriptor has said so.

Manners of using the plain counters:
  careful   looks at the descriptor now and then and right before it writes, and
            gives up on EIO
  naive     reads, works, writes, as most scripts do
  probing   as naive, but threads look at the descriptor again and again, also while
            earlier looks have no answer: a look that asks a stopped daemon, after the
            lock has passed on, must not be told that the lock is held
The fenced store is written even when the lock is lost: the store has to refuse that.
A sharer of the lock looks at the counters again and again: they must not change.
A lock with slots, which several may hold at a time, protects nothing here.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import random
import select
import signal
import sys
import threading
import time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'mount')]

import history
import stores
from harness import libc, raw_open
from history import now

DEAD = (errno.ENOTCONN, errno.ECONNABORTED, errno.ENOENT)   # the daemon may be dead for now
_CHILDREN = 0.05       # the part of the holds that start a child
_WORD = {'exclusive': fcntl.LOCK_EX, 'shared': fcntl.LOCK_SH}


def raw_flock(fd, operation):
    """flock(2) itself: fcntl.flock() goes on after EINTR."""
    if libc.flock(fd, operation) < 0:
        raise OSError(ctypes.get_errno(), 'flock')


def close(fd):
    """Close the descriptor. It is closed also if a dead daemon causes an error."""
    with contextlib.suppress(OSError):
        os.close(fd)


class Lost(Exception):
    pass


class Taker:
    stores = {}        # of all takers of the process: a crowd has many

    def __init__(self, args, name, seed):
        self.args = args
        self.random = random.Random(seed)
        self.log = history.Writer(f'{args.histories}/{name}')
        self.fd = self.lock = self.mode = self.token = self.last_ok = None
        self.by_flock = False

    def store(self, name):
        if (self.lock, name) not in self.stores:
            make = stores.Fenced if name == 'fenced' else stores.Plain
            self.stores[self.lock, name] = make(f'{self.args.stores}/{self.lock}.{name}')
        return self.stores[self.lock, name]

    # ---- single steps, each recorded ----

    def open(self, lock, lock_file, interrupt=0.0):
        """Open a lock file. Returns whether the lock is held."""
        mode = 'shared' if lock_file.startswith('shared') else 'exclusive'
        self.log.write('open', lock=lock, lock_file=lock_file, mode=mode, signal=interrupt > 0, c=now())
        path = f'{self.args.mount}/{lock}/{lock_file}'
        return self._take(lock, mode, interrupt, lambda: raw_open(path, os.O_RDWR))

    def flock(self, lock, mode, at_once=False, interrupt=0.0):
        """The same by flock(2). For a held lock this is a conversion, which first gives it back."""
        converts = self.fd is not None
        if converts:
            self.log.write('release', c=now())
        self.log.write('open', lock=lock, lock_file='flock', mode=mode, at_once=at_once,
                       signal=interrupt > 0, converts=converts, c=now())

        def call():
            fd = self.fd
            if fd is None:
                fd = raw_open(f'{self.args.mount}/{lock}/flock', os.O_RDWR)
            try:
                raw_flock(fd, _WORD[mode] | (fcntl.LOCK_NB if at_once else 0))
            except OSError:
                # Nothing is left of the former lock, whatever the error.
                self.fd = None
                close(fd)
                raise
            return fd
        held = self._take(lock, mode, interrupt, call)
        self.by_flock = held
        return held

    def _take(self, lock, mode, interrupt, call):
        self.lock, self.mode, self.by_flock = lock, mode, False
        # No Python handler of a signal raises, and libc's calls are made directly: no success
        # is forgotten, and no interrupted call is repeated.
        if interrupt:
            signal.setitimer(signal.ITIMER_REAL, interrupt)
        c = now()
        try:
            self.fd = call()
        except OSError as err:
            self.log.write('fail', errno=err.errno, c=c, r=now())
            if err.errno in DEAD:
                time.sleep(0.05)
            return False
        finally:
            if interrupt:
                signal.setitimer(signal.ITIMER_REAL, 0)
        self.log.write('held', c=c, r=now())
        self.token = self.last_ok = None
        return True

    def check(self, how='read'):
        """Raise Lost if the lock is lost, after more checks, which must not succeed either."""
        if not self._check(how):
            for again in ('read', 'write', 'poll') + (('flock',) if self.by_flock else ()):
                self._check(again)
            raise Lost

    def _ask(self, how):
        """The token, if that is the answer."""
        if how == 'read':
            return int(os.pread(self.fd, 64, 0))
        if how == 'write':
            os.write(self.fd, b'at work')
        elif how == 'fsync':
            os.fsync(self.fd)
        elif how == 'flock':
            raw_flock(self.fd, _WORD[self.mode] | fcntl.LOCK_NB)
        else:
            poll = select.poll()
            poll.register(self.fd, select.POLLIN)
            if poll.poll(0)[0][1] & select.POLLERR:
                raise OSError(errno.EIO, 'poll')
        return None

    def _check(self, how):
        code = token = None
        c = now()
        try:
            token = self._ask(how)
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

    def check_somehow(self):
        self.check(self.random.choices(('read', 'write', 'fsync', 'poll'), (6, 1, 1, 2))[0])

    def fence(self, op, *value):
        c = now()
        result = getattr(self.store('fenced'), op)(self.token, *value)
        refused = result is None
        self.log.write('fence', op=op, ok=not refused, value=value[0] if value else result, c=c, r=now())
        return None if refused else result

    def read(self, name):
        c = now()
        value = self.store(name).read()
        self.log.write('read' if self.mode == 'exclusive' else 'look', store=name, value=value, c=c, r=now())
        return value

    def write(self, name, value):
        c = now()
        self.store(name).write(value)
        self.log.write('write', store=name, value=value, checked=self.last_ok, c=c, r=now())

    def count_value(self):
        """Count in the file `value`. False if its error says that the lock is lost."""
        code, number, c = 0, None, now()
        try:
            fd = os.open(f'{self.args.mount}/{self.lock}/value', os.O_RDWR)
            try:
                number = int(os.pread(fd, 32, 0) or b'0') + 1
                os.pwrite(fd, b'%d' % number, 0)
            finally:
                close(fd)
        except OSError as err:
            code = err.errno
        self.log.write('value', number=number, errno=code, token=self.token, c=c, r=now())
        return code != errno.EIO

    def release(self):
        self.log.write('release', c=now())
        close(self.fd)
        self.fd = None

    # ---- using a lock ----

    @staticmethod
    def child():
        """Run another program meanwhile, as most scripts do: exec closes the open files."""
        os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)

    def work(self, seconds, each=lambda: None):
        deadline = time.monotonic() + seconds
        if self.random.random() < _CHILDREN:
            self.child()
        # A long hold ends early when the run comes to its end.
        while (left := deadline - time.monotonic()) > 0 and not os.path.exists(self.args.finish):
            time.sleep(min(left, 0.05))
            each()

    def use(self, seconds, manners=(7, 3, 0)):
        """One hold, which is given back."""
        manner = self.random.choices(('careful', 'naive', 'probing'), manners)[0]
        try:
            if self.lock in self.args.slots:
                self.check()
                self.work(seconds, self.check_somehow if manner == 'careful' else lambda: None)
                self.check_somehow()
            elif self.mode == 'shared':
                self._look(seconds)
            else:
                self._count(seconds, manner)
        except Lost:
            pass
        finally:
            self.release()

    def use_blindly(self, seconds):
        try:
            value = self.read('naive')
            time.sleep(seconds)
            self.check('poll')
            self.write('naive', value + 1)
        except Lost:
            pass
        finally:
            self.release()

    def _count(self, seconds, manner):
        name = 'careful' if manner == 'careful' else 'naive'
        fenced = None
        probes = []

        def probe():
            if self.random.random() < 0.2:
                probes.append(threading.Thread(target=self._check, args=('read',)))
                probes[-1].start()
        try:
            self.check()
            fenced = self.fence('read')
            value = self.read(name)
            self.work(seconds, {'careful': self.check_somehow, 'probing': probe}.get(manner, lambda: None))
            if manner == 'careful':
                self.check()
            if self.lock in self.args.values and not self.by_flock and self.random.random() < 0.2:
                if not self.count_value():
                    self.check()
            self.write(name, value + 1)
            if fenced is not None:
                self.fence('write', fenced + 1)
                fenced = None
            self.check_somehow()
        except Lost:
            if fenced is not None:
                self.fence('write', fenced + 1)
            raise
        finally:
            for each in probes:
                each.join()

    def _look(self, seconds):
        def look():
            self.read('careful')
            self.read('naive')
            self.check_somehow()
        self.check()
        self.fence('share')
        look()
        self.work(seconds, look)
        look()

    # ---- the end ----

    def take_each(self, locks):
        """Take each lock once more, after the faults."""
        for lock in locks:
            c = now()
            while not self.open(lock, 'lock'):
                time.sleep(0.05)
            self.log.write('done', lock=lock, c=c, r=now())
            self.use(0.0)
        self.log.write('exit')
