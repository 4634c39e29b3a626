#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A descriptor has POLLPRI while a taker waits behind the holder. Only programs that poll for
POLLPRI cause requests to the ensemble, and they are woken when a taker comes. A missing answer is
no error."""

import ctypes
import os
import select
import signal
import subprocess
import threading

from harness import Stopwatch, check, check_equal, command, errno_of, libc, run, spawn, until

PRI = select.POLLPRI
BOTH = select.POLLIN | select.POLLOUT
LOST = select.POLLERR | select.POLLHUP | PRI


# Gives the lock back when another taker waits, and takes it again.
POLITE = '''
import os, select, sys
for turn in range(10):
    fd = os.open(sys.argv[1], os.O_RDWR)
    print(os.pread(fd, 64, 0).decode().strip(), flush=True)
    if turn < 9:
        select.select([], [], [fd])
    os.close(fd)
'''


def ready(fd, wanted, timeout_ms=0):
    poll = select.poll()
    poll.register(fd, wanted)
    return dict(poll.poll(timeout_ms)).get(fd, 0)


class PollFd(ctypes.Structure):
    _fields_ = [('fd', ctypes.c_int), ('events', ctypes.c_short), ('revents', ctypes.c_short)]


def raw_poll(fd, wanted, timeout_ms):
    """poll(2) itself: Python's poll() calls it again after EINTR."""
    one = PollFd(fd, wanted, 0)
    return libc.poll(ctypes.byref(one), 1, timeout_ms), one.revents


class Poller:
    """A thread that polls until an event comes, far longer than a test waits."""

    def __init__(self, what, *args):
        self.got = []
        threading.Thread(target=lambda: self.got.append(what(*args)), daemon=True).start()

    def woken(self):
        until(lambda: self.got, 'the poller is woken')
        return self.got[0]


def wait_epoll(fd):
    with select.epoll() as epoll:
        epoll.register(fd, select.EPOLLPRI)
        return epoll.poll(100)


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a', session='60s'), case.mount(server, 'b', session='60s')
    for mount in (a, b):
        mount.allow('lost')
    a.mkdir('build')
    lock_file = a.path('build', 'lock')
    fd = os.open(lock_file, os.O_RDWR)

    def queued(count):
        until(lambda: len(server.entries('build')) == count, f'{count} in the queue')

    # No waiter; then a waiter, on each mount; then none again. All ways of polling see it.
    for mount in (a, b):
        check_equal(ready(fd, PRI), 0, 'nobody waits')
        check_equal(ready(fd, PRI | BOTH), BOTH, 'nobody waits')
        pollers = [Poller(ready, fd, PRI, 100000), Poller(select.select, [], [], [fd], 100),
                   Poller(wait_epoll, fd)]
        until(lambda: len(os.listdir('/proc/self/task')) >= 4, 'they poll')
        check_equal([poller.got for poller in pollers], [[], [], []], 'woken by nobody')
        waiter = mount.take('build')
        check_equal([poller.woken() for poller in pollers],
                    [PRI, ([], [], [fd]), [(fd, select.EPOLLPRI)]], f'a waiter on {mount.host}')
        check_equal(ready(fd, PRI | BOTH), PRI | BOTH, 'it waits still')
        check_equal(ready(fd, BOTH), BOTH, 'not asked for')
        waiter.kill()
        until(lambda: ready(fd, PRI) == 0, 'it has gone')

    # The lock's children are watched only as long as somebody polls.
    def watches():
        return server.metric('zk_watch_count')

    def passer_by():
        waiter = b.take('build')
        queued(2)
        waiter.kill()
        queued(1)

    passer_by()
    until(lambda: ready(fd, PRI) == 0, 'it has gone')
    before = watches()
    check_equal(ready(fd, PRI), 0, 'nobody waits')
    check_equal(watches(), before, 'watches after a poll that did not wait')
    check_equal(ready(fd, PRI, 50), 0, 'nobody comes')
    check_equal(watches(), before + 1, 'watches of one that polled')
    passer_by()
    until(lambda: watches() == before, 'nobody polls, nobody watches')

    # Without an answer it is not known whether a taker waits. POLLERR would mean a loss.
    server.freeze()
    watch = Stopwatch()
    check_equal(ready(fd, BOTH, 5000), BOTH, 'not asked for')
    watch.check(0, 0.5, 'a poll for other things while the server hangs')
    watch = Stopwatch()
    check_equal(ready(fd, PRI | BOTH), BOTH, 'no answer')
    watch.check(1, 4, 'a poll while the server hangs')
    signal.signal(signal.SIGALRM, lambda *_: None)
    alarm = signal.alarm(0)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    watch = Stopwatch()
    count, events = raw_poll(fd, PRI, 10000)
    watch.check(0.1, 1.5, 'an interrupted poll')
    check((count, events) in ((-1, 0), (0, 0)), f'an interrupted poll gave {count}, {events}')
    server.thaw()
    signal.alarm(alarm)
    a.ready()
    until(lambda: errno_of(os.fsync, fd) == 0, 'the server answers again')

    # A reader does not wait for readers, but a writer does.
    os.close(fd)
    queued(0)
    fd = os.open(a.path('build', 'shared'), os.O_RDWR)
    other = b.take('build', 'shared').held()
    poller = Poller(ready, fd, PRI, 100000)
    third = b.take('build', 'shared').held()
    check_equal(ready(fd, PRI), 0, 'readers beside a reader')
    check(not poller.got, 'woken by a reader')
    writer = b.take('build')
    check_equal(poller.woken(), PRI, 'a writer')
    for taker in (other, third, writer):
        taker.kill()
    queued(1)
    os.close(fd)
    queued(0)

    # All openers that share a hold are told, also after one of them has closed.
    fds = [os.open(a.path('build', 'reentrant'), os.O_RDWR) for _ in range(3)]
    check_equal(ready(fds[0], PRI, 50), 0, 'nobody comes')
    pollers = [Poller(ready, fd, PRI, 100000) for fd in fds[1:]]
    check_equal(ready(fds[1], PRI, 50), 0, 'nobody comes')
    os.close(fds[0])
    waiter = b.take('build')
    check_equal([poller.woken() for poller in pollers], [PRI, PRI], 'both are told')
    waiter.kill()
    queued(1)
    os.close(fds[1])

    # The lock is lost while its holder polls.
    until(lambda: ready(fds[2], PRI) == 0, 'nobody waits')
    poller = Poller(ready, fds[2], PRI, 100000)
    check_equal(ready(fds[2], PRI, 50), 0, 'nobody comes')
    entry, = server.entries('build')
    server.zk.delete('/locks/build/' + entry)
    check_equal(poller.woken(), LOST, 'a lost lock file')
    check_equal(ready(fds[2], PRI | BOTH), LOST | BOTH, 'a lost lock file')
    os.close(fds[2])
    take_turns(a, b)


def take_turns(a, b):
    first = spawn(['python3', '-c', POLITE, a.path('build', 'lock')], stdout=subprocess.PIPE,
                  text=True)
    status, out, err = command(['python3', '-c', POLITE, b.path('build', 'lock')])
    check_equal(status, 0, err)
    other, _ = first.communicate(timeout=60)
    tokens = [int(word) for word in out.split()], [int(word) for word in other.split()]
    order = sorted([(token, 0) for token in tokens[0]] + [(token, 1) for token in tokens[1]])
    check_equal(len(order), 20, 'turns')
    check(all(one[1] != two[1] for one, two in zip(order, order[1:])), f'no turns: {order}')


run(test)
