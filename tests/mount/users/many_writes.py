#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A taker does not wait behind all the writes of another user: only a few writes of one user are
sent to the ensemble at a time; the others wait for their turn, and get it."""

import mmap
import os
import re
import signal
import subprocess
import threading

from harness import ALICE, WAIT_SECONDS, check, check_equal, check_user, patiently, run, spawn, until
from openers import end, process

THREADS = 200
TAKES = 40
# How many of the ensemble's transactions may come between the start of a take and its own one. In
# former versions all threads' writes came before it.
FEW = THREADS / 4
INTERRUPTED = 12
PROMPT = 10     # see harness.spawn()
FCHMOD = ('91', '52')   # of x86-64 and arm64
# This changes the mode by a descriptor, so that no lookup comes first.
CHANGE = '''
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
print('open', flush=True)
sys.stdin.read()
os.fchmod(fd, 0o700)
'''


def write_of(kind, path):
    """The write that a thread makes again and again. Its own descriptor holds the lock."""
    held = os.open(path + '/lock', os.O_RDWR)
    if kind == 'fsync':
        return lambda: os.fsync(held)
    file = held if kind == 'reason' else os.open(path + '/value', os.O_WRONLY)
    return lambda: os.pwrite(file, b'x' * 100, 0)


def write_for_ever(directory, kind, turns):
    """Threads that write again and again, each to a lock of its own."""
    os.nice(PROMPT)
    began = threading.Barrier(THREADS + 1)

    def serve(number):
        path = f'{directory}/{kind}{number}'
        os.mkdir(path)
        write = write_of(kind, path)
        began.wait()
        while True:
            write()
            turns[number] = 1
    for number in range(THREADS):
        threading.Thread(target=serve, args=(number,), daemon=True).start()
    began.wait()


def in_chmod(process):
    with open(f'/proc/{process.pid}/syscall', encoding='ascii') as file:
        return file.read().split()[0] in FCHMOD


def test(case):
    # Between the count and a take no writes come that the take is not to blame for.
    os.nice(-PROMPT)
    server = case.server()
    mount = case.mount(server, session='30s')
    os.umask(0)
    for lock in ('crowd', 'other'):
        mount.mkdir(lock)
        os.chmod(mount.path(lock), 0o777)

    def newest():
        return int(re.search(r'^Zxid: (\w+)', server.ask('srvr'), re.MULTILINE).group(1), 16)

    for kind in ('value', 'fsync', 'reason'):
        turns = mmap.mmap(-1, THREADS)   # shared with the writer
        writer = process(write_for_ever, mount.path('crowd'), kind, turns, uid=ALICE)
        ahead = []
        for _ in range(TAKES):
            before = newest()
            fd = os.open(mount.path('other', 'lock'), os.O_RDWR)
            ahead.append(int(os.read(fd, 64)) - before)
            os.close(fd)
        print(f'{kind}: transactions ahead of a take: {sorted(ahead)}')
        check(sorted(ahead)[TAKES // 2] < FEW, f'{kind}: transactions ahead of a take: {sorted(ahead)}')
        until(lambda: turns[:].count(1) == THREADS, 'everybody has written')
        end(writer)

    # Changes are interrupted while they wait for the ensemble, or still for their turn.
    own = [mount.path('crowd', f'value{number}') for number in range(INTERRUPTED)]
    commands = [spawn(['python3', '-c', CHANGE, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                      user=ALICE, group=ALICE) for path in own]
    for command in commands:
        check_equal(command.stdout.readline(), b'open\n', 'its word')
    server.freeze()
    for command in commands:
        command.stdin.close()
    until(lambda: all(in_chmod(command) for command in commands), 'all of them wait')
    for command in commands:
        command.terminate()
    for command in commands:
        check_equal(command.wait(WAIT_SECONDS), -signal.SIGTERM, 'interrupted')
    server.thaw()
    mount.ready()
    for path in own:
        check_user(0, ALICE, patiently, os.chmod, path, 0o711)


run(test)
