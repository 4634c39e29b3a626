#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""on_lost in the less simple cases: a process that holds two locks and loses one; many losers
at once; a second SIGTERM; holders of another mount; a dead guardian; `umount -lf`."""

import errno
import os
import signal
import subprocess

from harness import Stopwatch, check, check_errno, command, raw_open, run, spawn, until
from openers import end, other_name, process, runs

# Opens all lock files that it is given, says so, and stays.
HOLDER = '''
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
fds = [os.open(path, os.O_RDWR) for path in sys.argv[1:]]
print('held', flush=True)
signal.pause()
'''


def holder(*paths):
    process = spawn(['python3', '-c', HOLDER, *paths], stdout=subprocess.PIPE, text=True)
    check(process.stdout.readline() == 'held\n', 'it holds')
    return process


def holder_by_name(path):
    return os.open(path, os.O_RDWR)


def test(case):
    server = case.server(tick_ms=500)
    b = case.mount(server, 'b', session='6s')

    def mount(mode='kill'):
        a = case.mount(server, 'a', session='6s', options=[f'on_lost={mode}'])
        a.allow('.')
        return a

    def evict(lock):
        entry, = server.entries(lock)
        server.zk.delete(f'/locks/{lock}/{entry}')

    # Two locks, one lost; and a holder on another mount.
    a = mount()
    for lock in ('one', 'two'):
        b.mkdir(lock)
    both = holder(a.path('one', 'lock'), a.path('two', 'lock'))
    elsewhere = case.mount(server, 'c', session='6s')
    os.mkdir(elsewhere.path('three'))
    other = holder(elsewhere.path('three', 'lock'))
    evict('two')
    until(lambda: both.poll() is not None, 'the loser of one of two locks is stopped')
    check(other.poll() is None, 'a holder on another mount was stopped')
    other.kill()
    other.wait()

    # Many at once.
    crowd = []
    for number in range(30):
        b.mkdir(f'crowd{number}')
        crowd.append(holder(a.path(f'crowd{number}', 'lock')))
    for number in range(30):
        evict(f'crowd{number}')
    until(lambda: all(process.poll() is not None for process in crowd), 'all 30 losers are stopped')
    a.unmount()

    # A second SIGTERM leaves the lock to the timeout, and its holder to the guardian.
    a = mount()
    last = holder(a.path('one', 'lock'))
    waiter = b.take('one')
    until(lambda: len(server.entries('one')) == 2, 'the waiter queues')
    watch = Stopwatch()
    a.process.send_signal(signal.SIGTERM)
    until(lambda: not os.path.ismount(a.directory), 'the mount is off the tree')
    a.process.send_signal(signal.SIGTERM)
    until(lambda: last.poll() is not None, 'the holder is stopped')
    check(not waiter.answered(), 'the next one held before the holder was gone')
    waiter.held()
    watch.check(2, 15, 'after the second SIGTERM')
    waiter.release()
    a.check_end()

    # `umount -lf` ends the mount under its holder, which may still be at work. The holder has the
    # lock file open by its own name, or by another one.
    for way, *args in ((holder_by_name,), (other_name, case.directory + '/elsewhere')):
        a = mount('none')
        last = process(way, a.path('one', 'lock'), *args)
        waiter = b.take('one')
        until(lambda: len(server.entries('one')) == 2, 'the waiter queues')
        watch = Stopwatch()
        check(command(['umount', '-lf', a.directory])[0] == 0, 'umount -lf')
        waiter.held()
        watch.check(2, 15, f'the lock after umount -lf, {way.__name__}')
        check(runs(last), 'on_lost=none stops nobody')
        end(last)
        waiter.release()
        a.allow('ended by force')
        a.check_end(status=32)

    # With a dead guardian no lock is granted any more.
    a = mount()
    os.kill(until(lambda: a.guardian, 'the guardian runs'), signal.SIGKILL)
    a.said('guardian was killed')
    check_errno(errno.ESHUTDOWN, raw_open, a.path('one', 'lock'), os.O_RDWR)
    a.said(': there is no guardian (ESHUTDOWN)')
    a.unmount()


run(test)
