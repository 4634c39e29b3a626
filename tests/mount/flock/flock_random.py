#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Processes of two mounts call flock(2) and fcntl(2) at random, and are interrupted and killed.
The locks that they report never conflict, all processes get locks, and no entry is left in the
queue. Arguments: a seed, seconds."""

import errno
import mmap
import os
import random
import signal
import sys
import time
import traceback
from fcntl import F_RDLCK, F_SETLK, F_SETLKW, F_UNLCK, F_WRLCK, LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN

from harness import check, check_equal, die_with_parent, error_name, run, until
from locker import F_OFD_SETLK, F_OFD_SETLKW, raw_flock, raw_setlkw

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else random.randrange(1 << 30)
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 8
PROCESSES = 8
# Errors that a process may get.
EXPECTED = (errno.EAGAIN, errno.EINTR, errno.EDEADLK)


class Board:
    """The locks of each process: one byte for flock and one for fcntl (0, S or X), and how often
    it got a lock. A process writes before it gives a lock up, and after it has got one. So two
    locks that conflict on the board were held at the same moment."""

    def __init__(self):
        self.memory = mmap.mmap(-1, 4096)

    def set(self, i, kind, mode):
        self.memory[2 * i + kind] = ord(mode)

    def clear(self, i):
        self.set(i, 0, '0')
        self.set(i, 1, '0')

    def count(self, i):
        at = 1024 + 4 * i
        self.memory[at:at + 4] = (self.number(i) + 1).to_bytes(4, 'little')

    def number(self, i):
        at = 1024 + 4 * i
        return int.from_bytes(self.memory[at:at + 4], 'little')

    def held(self):
        return [self.memory[2 * j:2 * j + 2] for j in range(PROCESSES)]

    def __str__(self):
        return str(self.held())

    def conflicts(self, i):
        held = self.held()
        mine = held.pop(i)
        return (b'X' in mine and any(b'X' in other or b'S' in other for other in held)) or \
               (b'S' in mine and any(b'X' in other for other in held))


class Process:
    def __init__(self, board, i, path, seed, end):
        self.board, self.i, self.path = board, i, path
        self.random = random.Random(seed)
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                die_with_parent()
                self.fd = os.open(path, os.O_RDWR)
                while time.monotonic() < end:
                    self.step()
                board.clear(i)
                status = 0
            except BaseException:
                traceback.print_exc()
            os._exit(status)

    def call(self, kind, mode, function, *args):
        try:
            function(self.fd, *args)
        except OSError as err:
            check(err.errno in EXPECTED, f'{function.__name__}{args}: {error_name(err.errno)}')
            return
        self.board.set(self.i, kind, mode)
        self.board.count(self.i)

    def step(self):
        board, i, choose = self.board, self.i, self.random
        action = choose.choice(('flock', 'flock', 'fcntl', 'fcntl', 'ofd', 'unlock', 'unlock', 'close'))
        mode = choose.choice('SX')
        wait = choose.random() < 0.6
        if action == 'flock':
            board.set(i, 0, '0')
            raw = (LOCK_SH if mode == 'S' else LOCK_EX) | (0 if wait else LOCK_NB)
            self.call(0, mode, raw_flock, raw)
        elif action in ('fcntl', 'ofd'):
            if action == 'ofd':
                self.give_back(1)   # OFD and other locks would conflict in one process
            if mode == 'S' and board.memory[2 * i + 1] == ord('X'):
                board.set(i, 1, 'S')
            command = {'fcntl': (F_SETLK, F_SETLKW), 'ofd': (F_OFD_SETLK, F_OFD_SETLKW)}[action][wait]
            self.call(1, mode, raw_setlkw, F_RDLCK if mode == 'S' else F_WRLCK, command)
            if action == 'ofd':
                self.check()
                self.give_back(1)
        elif action == 'unlock':
            self.give_back(choose.choice((0, 1)))
        else:
            board.clear(i)
            os.close(self.fd)
            self.fd = os.open(self.path, os.O_RDWR)
        self.check()
        # A process that has a lock and waits for nothing does not keep others from theirs.
        if choose.random() < 0.1:
            self.give_back(0)
            self.give_back(1)
            time.sleep(0.002)

    def check(self):
        if self.board.conflicts(self.i):
            queue = os.listdir(os.path.dirname(self.path) + '/queue')
            raise AssertionError(f'process {self.i}, {os.getpid()}, holds beside another: '
                                 f'{self.board}; the queue: {sorted(queue)}')

    def give_back(self, kind):
        self.board.set(self.i, kind, '0')
        if kind == 0:
            raw_flock(self.fd, LOCK_UN)
        else:
            raw_setlkw(self.fd, F_UNLCK)
            raw_setlkw(self.fd, F_UNLCK, F_OFD_SETLK)


def test(case):
    print(f'seed {SEED}')
    signal.signal(signal.SIGUSR1, lambda *_: None)   # the processes inherit this handler
    choose = random.Random(SEED)
    server = case.server()
    mounts = [case.mount(server, host, session='30s') for host in 'ab']
    mounts[0].mkdir('build')
    until(lambda: 'build' in mounts[1].locks(), 'b sees the lock')
    board = Board()
    end = time.monotonic() + SECONDS

    def start(i):
        return Process(board, i, mounts[i % 2].path('build', 'flock'), choose.random(), end)

    processes = [start(i) for i in range(PROCESSES)]
    killed = 0
    while time.monotonic() < end:
        i = choose.randrange(PROCESSES)
        if choose.random() < 0.1:
            # Clear its bytes first: its locks go when it ends.
            os.kill(processes[i].pid, signal.SIGSTOP)
            os.waitpid(processes[i].pid, os.WUNTRACED)
            board.clear(i)
            os.kill(processes[i].pid, signal.SIGKILL)
            check_equal(os.waitpid(processes[i].pid, 0)[1], signal.SIGKILL, f'process {i}')
            processes[i] = start(i)
            killed += 1
        else:
            os.kill(processes[i].pid, signal.SIGUSR1)
        time.sleep(choose.random() * 0.01)
    # At the end, the locks of processes that have ended pass on to the waiters.
    for process in processes:
        status = until(lambda pid=process.pid: os.waitpid(pid, os.WNOHANG), 'all end')
        check_equal(status[1], 0, f'process {process.i}')
    numbers = [board.number(i) for i in range(PROCESSES)]
    print(f'{killed} killed; locks taken: {numbers}')
    check(min(numbers) > 0, 'one never got a lock')
    until(lambda: not server.entries('build'), 'the queue is empty')


run(test)
