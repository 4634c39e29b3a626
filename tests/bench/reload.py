#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What users notice of a reload (SIGUSR2), or of a daemon that is killed and whose supervisor starts
another one: a holder reads its descriptor without a pause, many takers wait behind it, and two
locks are handed over right when no daemon serves the mount, one from another mount to this one
and one the other way round.

    tests/bench/reload.py [--reloads N] [--crashes N] [WAITERS...]
                                                   ten and none, with 1 waiter and with 10,000

The point: no read waits for 50 ms or more over a reload."""

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'mount'))
os.environ['ZKLOCKFS_CASE_SECONDS'] = '600'

from crowd import Crowd
from harness import check, run, spawn, until

PAUSE_MS = 50
PORTION = 1000           # waiters that come at once: the lock is looked up for each of them
SETTLE_SECONDS = 0.5     # for requests that come after a reload: listings, watches
SESSION, KEPT_SESSION = '30s', '15s'    # with crashes: two may come within this time
_TAKEN_OVER = re.compile(r'has taken over from .* in (\d+) ms')


class Reader:
    """A process of workers/reader.c."""

    def __init__(self, program, lock_file):
        self.process = spawn([program, lock_file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._line('ready')

    def _line(self, what):
        line = self.process.stdout.readline()
        check(line, f'the reader has ended instead of {what}')
        return line.split()

    def _ask(self, what):
        self.process.stdin.write(what + '\n')
        self.process.stdin.flush()
        return self._line(what)

    def longest_ms(self):
        """The longest read since the last call."""
        return int(self._ask('longest')[0]) / 1000

    def wait_until_stalled(self):
        self._ask('stalled')

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class HandOff:
    """A holder of a lock, and a taker that waits for it."""

    def __init__(self, server, giver, taker, lock):
        self.fd = os.open(giver.path(lock, 'lock'), os.O_RDWR)
        self.thread = threading.Thread(target=self._take, args=(taker.path(lock, 'lock'),), daemon=True)
        self.thread.start()
        until(lambda: len(server.entries(lock)) == 2, f'{lock} is waited for')

    def _take(self, lock_file):
        fd = os.open(lock_file, os.O_RDWR)
        self.taken = time.monotonic()
        os.close(fd)

    def release(self):
        self.began = time.monotonic()
        os.close(self.fd)

    def ms(self):
        self.thread.join()
        return (self.taken - self.began) * 1000


def children(pid):
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as file:
        return set(file.read().split())


class Bench:
    def __init__(self, case, waiters, kept):
        self.waiters = waiters
        self.server = case.server()
        self.mount, self.other = (case.mount(self.server, host, session=KEPT_SESSION if kept else SESSION)
                                  for host in 'ab')
        for lock in ('w', 'in', 'out'):
            self.mount.mkdir(lock)
        program = os.path.join(case.directory, 'reader')
        subprocess.run(['cc', '-O2', '-std=gnu11', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-pthread', '-o', program,
                        os.path.join(HERE, 'workers', 'reader.c')], check=True)
        self.reader = Reader(program, self.mount.path('w', 'lock'))
        self.crowds = []
        for first in range(0, waiters, PORTION):
            self.crowds.append(Crowd(self.mount.path('w', 'lock'), min(PORTION, waiters - first)))
            wanted = str(min(first + PORTION, waiters))
            until(lambda wanted=wanted: self.mount.status()['waiters'] == wanted, f'{wanted} wait', 60)

    def end(self):
        for crowd in self.crowds:
            os.kill(crowd.pid, signal.SIGKILL)
            os.waitpid(crowd.pid, 0)
            os.close(crowd.end)
        self.reader.end()
        until(lambda: not self.server.entries('w'), 'all have gone', 120)

    def _begin(self):
        hand_offs = (HandOff(self.server, self.other, self.mount, 'in'),
                     HandOff(self.server, self.mount, self.other, 'out'))
        time.sleep(SETTLE_SECONDS)
        self.reader.longest_ms()
        return hand_offs

    @staticmethod
    def _release(hand_offs):
        """Release the locks; return the times until the waiters have them."""
        for hand_off in hand_offs:
            hand_off.release()
        return [hand_off.ms() for hand_off in hand_offs]

    def quiet(self):
        """The same without a reload."""
        hand_offs = self._begin()
        took = self._release(hand_offs)
        time.sleep(SETTLE_SECONDS)
        return self.reader.longest_ms(), *took

    def reload(self):
        """The locks are released when the other program has checked the state, and takes over."""
        hand_offs = self._begin()
        before = children(self.mount.daemon)
        told = len(_TAKEN_OVER.findall(self.mount.log()))
        os.kill(self.mount.daemon, signal.SIGUSR2)

        def has_taken_over():
            return len(_TAKEN_OVER.findall(self.mount.log())) > told

        until(lambda: children(self.mount.daemon) - before or has_taken_over(), 'the other program looks at the state')
        until(lambda: not children(self.mount.daemon) - before, 'it has done so')
        if has_taken_over():
            # On a busy machine a reload may be over before this process looks: another one counts.
            self._end(hand_offs, told)
            return self.reload()
        self.reader.wait_until_stalled()
        return self._end(hand_offs, told)

    def crash(self):
        """The locks are released when there is no daemon."""
        self.mount.rest()
        self.mount.allow_more('was ended by signal')
        hand_offs = self._begin()
        told = len(_TAKEN_OVER.findall(self.mount.log()))
        self.mount.crashes.append(time.monotonic())
        os.kill(self.mount.daemon, signal.SIGKILL)
        return self._end(hand_offs, told)

    def _end(self, hand_offs, told):
        took = self._release(hand_offs)
        says = until(lambda: _TAKEN_OVER.findall(self.mount.log())[told:], 'it takes over')
        time.sleep(SETTLE_SECONDS)
        return self.reader.longest_ms(), *took, int(says[0])


def show(what, figures):
    print(f'    {what:58} p50 {statistics.median(figures):7.1f} ms   max {max(figures):7.1f} ms', flush=True)


def show_all(what, quiet, figures):
    show(f'a holder reads: the longest read over a {what}', figures[0])
    show(f'a lock comes from another mount, released in a {what}', figures[1])
    show(f'a lock goes to another mount, released in a {what}', figures[2])
    show('the daemon says that it took', figures[3])
    later = max(max(figures[i]) - max(quiet[i]) for i in (1, 2))
    print(f'    A user sees: a call waits once, for {max(figures[0]):.0f} ms at most; a lock comes '
          f'{max(later, 0):.0f} ms later at most. No error, no place lost.')


def measure(case, waiters, reloads, crashes):
    """The longest read over a reload."""
    bench = Bench(case, waiters, crashes > 0)
    print(f'{waiters} waiting, {reloads} reloads, {crashes} crashes, '
          f'load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors')
    quiet = list(zip(*[bench.quiet() for _ in range(max(reloads, crashes))]))
    reload = list(zip(*[bench.reload() for _ in range(reloads)]))
    crash = list(zip(*[bench.crash() for _ in range(crashes)]))
    bench.end()
    show('a holder reads: the longest read, nothing happens', quiet[0])
    show('a lock comes from another mount, nothing happens', quiet[1])
    show('a lock goes to another mount, nothing happens', quiet[2])
    if reload:
        show_all('reload', quiet, reload)
    if crash:
        show_all('crash', quiet, crash)
    return max(reload[0]) if reload else 0


def test(case):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--reloads', type=int, default=10)
    parser.add_argument('--crashes', type=int, default=0)
    parser.add_argument('waiters', type=int, nargs='*', default=[1, 10000])
    arguments = parser.parse_args()
    longest = [measure(case, waiters, arguments.reloads, arguments.crashes) for waiters in arguments.waiters]
    check(max(longest) < PAUSE_MS, f'a read waited for {max(longest):.0f} ms, not less than {PAUSE_MS} ms')


run(test)
