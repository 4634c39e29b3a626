#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What questions of one user cost other users. Many takers of this user wait for a lock, and many
threads ask about the lock, one question after the other, as fast as they are answered. Meanwhile
another user takes a lock of this mount, and one of a second mount, which gets no questions: the
second one shows what the busy machine itself costs.

    tests/bench/questions.py [--waiters N] [--threads N] [--seconds S] [KIND...]

KIND may also be a write: the first user then makes locks, changes modes, values and reasons,
confirms holds, or takes and gives back locks (nobody waits then).

The points: with 5,000 waiters and 1,000 threads a take becomes 3 times as slow at most (p50 and
p99), beside the time without questions or that on the other mount, whichever is longer; `try` is
never refused, and no heartbeat waits."""

import argparse
import json
import math
import os
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'mount'))
os.environ['ZKLOCKFS_CASE_SECONDS'] = '900'

from harness import ALICE, BOB, check, run, spawn, until

KINDS = ('holder', 'pollpri', 'stat', 'ls', 'mix')
WRITES = ('mkdir', 'chmod', 'value', 'reason', 'fsync', 'cycle', 'writes')
SLOWER = 3
BEAT_LATE_MS = 700     # compared with the time without questions


class Asker:
    """A process of workers/asker.c."""

    def __init__(self, program, uid, kind, path, count, seconds=None):
        args = [program, str(uid), kind, path, str(count)] + ([str(seconds)] if seconds else [])
        self.process = spawn(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._line('ready')

    def _line(self, what):
        line = self.process.stdout.readline().strip()
        check(line, f'the asker has ended instead of {what}')
        return line

    def go(self):
        self.process.stdin.write('go\n')
        self.process.stdin.flush()
        return self

    def figures(self):
        return json.loads(self._line('its figures'))

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Lease:
    """The least that was left of the lease."""

    def __init__(self, mount):
        self.mount, self.least, self.over = mount, 1 << 60, False
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self):
        while not self.over:
            self.least = min(self.least, int(self.mount.status()['lease_left'][:-2]))
            time.sleep(0.05)

    def end(self):
        self.over = True
        self.thread.join()
        return self.least


def cpu_seconds(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


class Bench:
    def __init__(self, case, arguments):
        self.case, self.arguments = case, arguments
        self.program = os.path.join(case.directory, 'asker')
        subprocess.run(['cc', '-O2', '-std=gnu11', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-pthread',
                        '-o', self.program, os.path.join(HERE, 'workers', 'asker.c')], check=True)
        self.server = case.server()
        self.mount = case.mount(self.server, session='30s')
        self.beside = case.mount(self.server, 'b', session='30s')
        self.quiet = None

    def lock(self, name, mount=None):
        mount = mount or self.mount
        if not os.path.exists(mount.path(name)):
            mount.mkdir(name)
            os.chmod(mount.path(name), 0o777)
            os.chmod(mount.path(name, 'lock'), 0o666)
        return mount.path(name)

    def measure(self, kind):
        """Measure takes during questions of this kind; None: without questions."""
        crowd, own = self.lock('crowd'), self.lock('own')
        seconds = self.arguments.seconds
        asker = Asker(self.program, ALICE, kind or 'holder', crowd, self.arguments.threads, seconds + 3)
        count = self.arguments.waiters if not kind or kind in KINDS else 0
        waiters = Asker(self.program, ALICE, 'wait', crowd + '/lock', count).go()
        until(lambda: self.mount.status()['waiters'] == str(count), 'all wait', 120)
        taker = Asker(self.program, BOB, 'take', own, 1, seconds)
        beside = Asker(self.program, BOB, 'take', self.lock('beside', self.beside), 1, seconds)
        if kind:
            asker.go()
            time.sleep(1)
        cpu, lease = cpu_seconds(self.mount.daemon), Lease(self.mount)
        taker.go()
        beside.go()
        figures = taker.figures()
        figures['beside'] = beside.figures()
        for figure in ('p50 us', 'p99 us', 'max us'):
            figures.setdefault(figure, math.inf)   # no take at all
        figures['CPU %'] = 100 * (cpu_seconds(self.mount.daemon) - cpu) / seconds
        figures['lease ms'] = lease.end()
        figures['questions'] = asker.figures() if kind else {'done': 0, 'failed': {}, 'seconds': 1, 'least': 0}
        for process in (taker, beside, asker, waiters):
            process.kill()
        until(lambda: not self.server.entries('crowd'), 'all have gone', 120)
        self.show(kind or 'nobody asks', figures)
        return figures

    def show(self, kind, figures):
        questions = figures['questions']
        beside = figures['beside']
        print(f"{kind:12} take p50 {figures['p50 us']:8.0f} us  p99 {figures['p99 us']:8.0f} us  max "
              f"{figures['max us']:8.0f} us  beside p50 {beside['p50 us']:8.0f} us  p99 {beside['p99 us']:8.0f} us  takes {figures['done']:5}  refused {figures['failed'] or 'none'}  "
              f"lease >= {figures['lease ms'] / 1000:.1f} s  CPU {figures['CPU %']:3.0f} %  "
              f"questions/s {questions['done'] / questions['seconds']:7.0f}  "
              f"least of a thread {questions['least']}  unanswered {questions['failed'] or 'none'}", flush=True)

    def points(self, kind, figures):
        wrong = []
        for figure in ('p50 us', 'p99 us'):
            usual = max(self.quiet[figure], figures['beside'][figure])
            if figures[figure] > SLOWER * usual:
                wrong.append(f'{figure} is {figures[figure] / usual:.1f} times as long')
        if figures['failed']:
            wrong.append(f"takes were refused: {figures['failed']}")
        if figures['lease ms'] < self.quiet['lease ms'] - BEAT_LATE_MS:
            wrong.append('heartbeats were late')
        for what in wrong:
            print(f'{kind}: {what}')
        return not wrong


def test(case):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--waiters', type=int, default=5000)
    parser.add_argument('--threads', type=int, default=1000)
    parser.add_argument('--seconds', type=float, default=10)
    parser.add_argument('kinds', nargs='*', metavar='KIND', help=', '.join(KINDS + WRITES))
    arguments = parser.parse_args()
    bench = Bench(case, arguments)
    bench.measure(None)   # to warm up: the server compiles code that it runs for the first time
    bench.quiet = bench.measure(None)
    good = [bench.points(kind, bench.measure(kind)) for kind in arguments.kinds or KINDS]
    check(all(good), 'some points are not met')


run(test)
