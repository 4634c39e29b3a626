#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ten reloads in a row under jobs that take a lock on two mounts and count their tokens: there are
never two holders, tokens rise, and no job gets an error, also beside reads and writes of other
kinds. A holder that reads all the time waits only for a moment, also with 2,000 waiters. In the end
the daemon ends like a daemon that was never reloaded."""

import multiprocessing
import os
import signal
import time

from crowd import Crowd
from harness import SLOWNESS, Stopwatch, check, check_equal, die_with_parent, run, until

RELOADS = 10
PAUSE_SECONDS = 0.5 * SLOWNESS


class Child:
    """A process that runs a function with a pipe, which tells it to stop. stop() returns the
    function's result."""

    def __init__(self, function, *args):
        self.conn, theirs = multiprocessing.Pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                die_with_parent()
                signal.alarm(0)
                os.closerange(3, theirs.fileno())
                theirs.send('started')
                theirs.send(function(theirs, *args))
            finally:
                os._exit(0)
        theirs.close()
        self.conn.recv()

    def stop(self):
        self.conn.send('stop')
        result = self.conn.recv()
        os.waitpid(self.pid, 0)
        return result


def job(conn, lock_file, store):
    """Takes the lock and writes its token into the store, again and again. Tells how often, and
    what was wrong: a token that does not rise, or another holder at the same time."""
    wrong, count = [], 0
    inside = store + '.inside'
    while not conn.poll():
        try:
            fd = os.open(lock_file, os.O_RDWR)
            token = int(os.read(fd, 64))
            os.close(os.open(inside, os.O_CREAT | os.O_EXCL))
            with open(store, encoding='ascii') as file:
                before = int(file.read())
            with open(store, 'w', encoding='ascii') as file:
                file.write(str(token))
            os.unlink(inside)
            os.close(fd)
            if token <= before:
                wrong.append(f'{token} after {before}')
            count += 1
        except (OSError, ValueError) as err:
            wrong.append(repr(err))
            break
    return count, wrong


def reader(conn, lock_file):
    """Reads the token again and again. Tells the longest time that a read took, and how much counts of
    those that took too long: see Stopwatch, which may not be asked before each read."""
    fd = os.open(lock_file, os.O_RDWR)
    token, longest, counted, watch = os.pread(fd, 64, 0), 0, 0, Stopwatch()
    conn.send('reads')
    while not conn.poll(0.001):
        if watch.seconds() > 0.1:
            watch = Stopwatch()
        began = time.monotonic()
        if os.pread(fd, 64, 0) != token:
            return -1, 0
        took = time.monotonic() - began
        longest = max(longest, took)
        if took > PAUSE_SECONDS:
            counted = max(counted, min(took, watch.counted()))
    return longest, counted


def start_reader(mount):
    child = Child(reader, mount.path('held', 'lock'))
    check_equal(child.conn.recv(), 'reads', 'the reader')
    return child


def check_pause(pause, what):
    longest, counted = pause
    print(f'{what}: longest read {longest * 1000:.1f} ms')
    check(longest >= 0, 'another token was read')
    check(counted < PAUSE_SECONDS, f'a read took {longest} s, of which {counted} s count')


def busy(conn, mount, name):
    """Makes a lock, reads and writes its files, and removes it, again and again."""
    wrong, count = [], 0
    path = os.path.join(mount, name)
    while not conn.poll():
        try:
            os.mkdir(path)
            os.chmod(path, 0o700 + count % 8)
            with open(path + '/slots', 'w', encoding='ascii') as file:
                file.write('3\n')
            with open(path + '/slots', encoding='ascii') as file:
                if file.read() != '3\n':
                    wrong.append('slots')
            fd = os.open(path + '/lock', os.O_RDWR)
            with open(path + '/value', 'w', encoding='ascii') as file:
                file.write(f'value {count}')
            os.write(fd, b'a reason')
            os.fsync(fd)
            with open(path + '/value', encoding='ascii') as file:
                if file.read() != f'value {count}':
                    wrong.append('value')
            if name not in os.listdir(mount) or not os.listdir(path + '/queue'):
                wrong.append('listings')
            os.close(fd)
            with open(os.path.join(mount, '.zklockfs', 'locks'), encoding='utf-8') as file:
                file.read()
            os.rmdir(path)
            count += 1
        except (OSError, ValueError) as err:
            wrong.append(repr(err))
            break
    return count, wrong


def written(path):
    with open(path, encoding='ascii') as file:
        return file.read()


def jobs(case, server, mounts):
    store = case.directory + '/store'
    with open(store, 'w', encoding='ascii') as file:
        file.write('0')
    lock_files = [(mount, lock_file) for mount in mounts for lock_file in ('lock', 'lock@1h')]
    children = [Child(job, mount.path('build', lock_file), store) for mount, lock_file in lock_files]
    children += [Child(busy, mounts[0].directory, f'busy{i}') for i in range(3)]
    watcher = start_reader(mounts[0])
    for _ in range(RELOADS):
        before = written(store)
        mounts[0].reload()
        until(lambda last=before: written(store) not in ('', last), 'the jobs go on')
    results = [child.stop() for child in children]
    pause = watcher.stop()
    print(f'takes {[count for count, _ in results]}')
    check_pause(pause, f'{RELOADS} reloads')
    check_equal([wrong for _, wrong in results], [[]] * len(results), 'what went wrong')
    check(all(count > 0 for count, _ in results), 'a job never had it')


def crowd(case, server, mount):
    holder = mount.take('crowd').held()
    crowds = [Crowd(mount.path('crowd', 'lock'), 500) for _ in range(4)]
    until(lambda: len(server.entries('crowd')) == 2001, '2,000 wait', 60 * SLOWNESS)
    before = server.entries('crowd')
    watcher = start_reader(mount)
    mount.reload()
    pause = watcher.stop()
    check_pause(pause, '2,000 wait')
    check_equal(server.entries('crowd'), before, 'the queue')
    os.kill(crowds[3].pid, signal.SIGKILL)
    os.waitpid(crowds[3].pid, 0)
    until(lambda: len(server.entries('crowd')) == 1501, 'the entries of killed takers are gone')
    holder.release()
    check_equal(sum(crowd.served() for crowd in crowds[:3]), 1500, 'takers that were served')


def test(case):
    server = case.server()
    mounts = [case.mount(server, host, session='30s') for host in ('a', 'b')]
    for name in ('build', 'held', 'crowd'):
        mounts[0].mkdir(name)
    jobs(case, server, mounts)
    crowd(case, server, mounts[0])
    mounts[0].process.send_signal(signal.SIGTERM)
    mounts[0].check_end()


run(test)
