# SPDX-License-Identifier: MIT
"""processes.py - starting programs, waiting for them, talking to the workers."""

import json
import os
import select
import subprocess
import time

WAIT_SECONDS = 300   # far longer than any step takes, also on a busy machine


class BenchError(Exception):
    """An error that ends one measurement and not the whole run."""


def until(condition, what, seconds=WAIT_SECONDS):
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise BenchError(f'not within {seconds} s: {what}')
        time.sleep(0.005)


def start(args, log, **options):
    """Start a program in the background, with its output in a file. It ends with our pid namespace
    at the latest."""
    with open(log, 'ab') as words:
        return subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=words, stderr=words, **options)


def run(args, **options):
    result = subprocess.run(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, check=False, **options)
    if result.returncode:
        raise BenchError(f'{args[0]} ended with {result.returncode}: {result.stdout}')
    return result.stdout


def end(process, seconds=10):
    """SIGTERM, and SIGKILL if the process does not end."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


class Worker:
    """A process that takes and drops locks on command: workers/actor.h."""

    def __init__(self, name, args, log):
        self.name, self.log = name, log
        with open(log, 'ab') as words:
            self.process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=words)
        self.pid = self.process.pid
        self.rest = b''
        self.answers = {}            # key -> the rest of the line
        self.wait('ready')

    # ---- lines ----

    def _tell(self, line):
        try:
            self.process.stdin.write(line.encode() + b'\n')
            self.process.stdin.flush()
        except OSError as err:
            raise BenchError(f'{self.name}: {err}') from err

    def _note(self, line):
        words = line.split(' ', 2)
        if words[0] == 'failed':
            raise BenchError(f'{self.name}: {line}')
        if words[0] in ('held', 'dropped'):
            self.answers[words[0], int(words[1])] = words[2]
        else:
            self.answers[words[0]] = line[len(words[0]) + 1:]

    def _read(self, seconds):
        """Note the answers that have come; False when the time is over."""
        if not select.select([self.process.stdout], [], [], max(seconds, 0))[0]:
            return False
        data = os.read(self.process.stdout.fileno(), 1 << 16)
        if not data:
            with open(self.log, encoding='utf-8', errors='replace') as words:
                raise BenchError(f'{self.name} has ended: {words.read()[-2000:]}')
        *lines, self.rest = (self.rest + data).split(b'\n')
        for line in lines:
            self._note(line.decode())
        return True

    def wait(self, key, seconds=WAIT_SECONDS):
        deadline = time.monotonic() + seconds
        while key not in self.answers:
            if not self._read(deadline - time.monotonic()):
                raise BenchError(f'{self.name}: no {key} within {seconds} s')
        return self.answers.pop(key)

    def has(self, key):
        while key not in self.answers and self._read(0):
            pass
        return key in self.answers

    # ---- commands ----

    def make(self, lock):
        self._tell(f'make {lock}')
        self.wait('made')

    def take(self, slot, lock, mode='exclusive'):
        self._tell(f'take {slot} {lock} {mode}')

    def held(self, slot, seconds=WAIT_SECONDS):
        """(before, after) of the take, in nanoseconds."""
        return tuple(map(int, self.wait(('held', slot), seconds).split()))

    def drop(self, slot):
        self._tell(f'drop {slot}')

    def dropped(self, slot, seconds=WAIT_SECONDS):
        return tuple(map(int, self.wait(('dropped', slot), seconds).split()))

    def visit(self, slot, lock, mode='exclusive'):
        """Take the lock, and drop it as soon as it is held; for C workers only."""
        self._tell(f'visit {slot} {lock} {mode}')

    def start_cycles(self, threads, locks, warm, seconds, mode='exclusive', pause_us=0):
        self._tell(f'cycles {threads} {locks} {mode} {int(warm * 1000)} {int(seconds * 1000)} {pause_us}')

    def cycles(self, seconds):
        return json.loads(self.wait('cycles', seconds + WAIT_SECONDS))

    def count(self):
        self._tell('count')
        return int(self.wait('count'))

    # ---- the end ----

    def kill(self):
        """Send SIGKILL; return the time at which it was sent."""
        now = time.monotonic_ns()
        self.process.kill()
        self.process.wait()
        return now

    def quit(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
