#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A process that takes a lock again at once gets its own entry again (rules 28 and 43):
without a request, never beside another holder, with a token of its own where it asks for one, and so
that nobody who comes meets a lock that nobody holds. It goes on over reloads and crashes."""

import errno
import os
import re
import signal
import subprocess
import sys

from harness import check, check_equal, errno_of, run, until
from openers import evict

WORKER = """
import os, sys
lock_file, mark, mode = sys.argv[1:]
cycles, tokens = 0, []
print('begins', flush=True)
while not os.path.exists(mark + '.over'):
    lock = os.open(lock_file, os.O_RDWR)
    os.close(os.open(mark, os.O_CREAT | os.O_EXCL))     # nobody else is at work
    if mode == 'tokens' and cycles % 3 == 0:
        tokens.append(int(os.pread(lock, 64, 0)))
    os.unlink(mark)
    os.close(lock)
    cycles += 1
assert tokens == sorted(set(tokens)), tokens
print(cycles, *tokens, flush=True)
"""


class Worker:
    """Takes and gives back a lock until it is told to end."""
    def __init__(self, case, mount, lock, mode=''):
        self.mark = f'{case.directory}/{lock}.mark'
        self.process = subprocess.Popen([sys.executable, '-c', WORKER, mount.path(lock, 'lock'), self.mark, mode],
                                        stdout=subprocess.PIPE, text=True)
        case.cleanups.callback(self.process.wait)
        case.cleanups.callback(self.process.kill)
        check_equal(self.process.stdout.readline(), 'begins\n', 'the worker')

    def end(self):
        """How often it held, and the tokens that it has read."""
        open(self.mark + '.over', 'w', encoding='ascii').close()
        out, _ = self.process.communicate()
        check_equal(self.process.returncode, 0, 'the worker')
        cycles, *tokens = map(int, out.split())
        check(cycles > 0, 'no hold')
        return cycles, tokens


def reuses(mount):
    return mount.metric('reuses_total')


def reach(mount, count):
    wanted = reuses(mount) + count
    until(lambda: reuses(mount) >= wanted, f'{count} more takes without a request')


def alone(case, mount, plain):
    """Most takes ask nobody; somebody who looks or comes finds a free lock."""
    mount.mkdir('alone')
    worker = Worker(case, mount, 'alone')
    reach(mount, 300)
    cycles, _ = worker.end()
    requests = mount.metric('requests_total')
    check(requests < 3 * cycles, f'{requests} requests for {cycles} takes')
    until(lambda: errno_of(os.open, plain.path('alone', 'try'), os.O_RDWR) == 0, 'the lock is free for others')
    # Nothing is in the way of what follows a burst.
    for _ in range(20):
        for _ in range(3):
            os.close(os.open(mount.path('alone', 'lock'), os.O_RDWR))
        check_equal(mount.read('alone', 'holder'), '', 'who holds')
    for _ in range(3):
        os.close(os.open(mount.path('alone', 'lock'), os.O_RDWR))
    check_equal(errno_of(os.rmdir, mount.path('alone')), 0, 'rmdir right behind a hold')
    check_equal(reuses(plain), 0, 'takes without a request by a mount with noreuse')


def crowded(case, mounts):
    """Two on this mount and one on another, and each gets its turn; tokens rise."""
    mounts[0].mkdir('crowded')
    until(lambda: 'crowded' in mounts[1].locks(), 'the other mount sees it')
    workers = [Worker(case, mounts[0], 'crowded', 'tokens')]
    reach(mounts[0], 1)     # later somebody may wait all the time
    workers += [Worker(case, mount, 'crowded', 'tokens') for mount in mounts]
    until(lambda: all(mount.metric('grants_total') > 300 for mount in mounts), 'each has its turns')
    tokens = [token for worker in workers for token in worker.end()[1]]
    check_equal(len(set(tokens)), len(tokens), 'tokens of their own')


def another_process(case, mount):
    """The daemon is replaced, and is killed, while a program goes round."""
    mount.mkdir('process')
    worker = Worker(case, mount, 'process', 'tokens')
    for change in (mount.reload, mount.adopt, mount.reload):
        reach(mount, 20)
        change()
    reach(mount, 20)
    worker.end()


def limits(mount):
    """A reason and a time limit are those of one hold."""
    mount.mkdir('limits')
    for turn in range(40):
        with open(mount.path('limits', 'lock@most=1h' if turn % 2 else 'lock'), 'r+b', buffering=0) as lock:
            if turn % 5 == 0:
                lock.write(f'turn {turn}\n'.encode())
            said = mount.read('limits', 'holder')
            check((f'reason=turn {turn}' in said) == (turn % 5 == 0), f'turn {turn}: {said}')


def evicted(case, mount, other):
    """Who is evicted has lost the lock, whichever of its holds it was."""
    mount.mkdir('evicted')
    until(lambda: 'evicted' in other.locks(), 'the other mount sees it')
    for _ in range(5):
        os.close(os.open(mount.path('evicted', 'lock'), os.O_RDWR))
    lock = os.open(mount.path('evicted', 'lock'), os.O_RDWR)
    until(lambda: other.queue('evicted'), 'its entry is there')
    evict(other, 'evicted')
    until(lambda: errno_of(os.pread, lock, 1, 0) == errno.EIO, 'the loss')
    os.close(lock)


def shown_elsewhere(case, mount, other):
    """Another mount shows the token of a hold that lasts, and never one token of two holds."""
    mount.mkdir('shown')
    until(lambda: 'shown' in other.locks(), 'the other mount sees it')
    worker = Worker(case, mount, 'shown')
    wanted, seen = reuses(mount) + 300, set()
    while reuses(mount) < wanted or not seen:
        seen |= set(re.findall(r' held_since=(\S+) .*token=(\S+)', other.read('shown', 'holder')))
    worker.end()
    check(all(token == '-' for since, token in seen if since == '-'), f'tokens of holds that may go on: {seen}')
    lock = os.open(mount.path('shown', 'lock'), os.O_RDWR)
    until(lambda: f' token={int(os.pread(lock, 64, 0))} ' in other.read('shown', 'holder'), 'its token is shown')
    os.close(lock)


def test(case):
    server = case.server()
    mount, other = (case.mount(server, host) for host in 'ab')
    plain = case.mount(server, 'c', options=('noreuse',))
    alone(case, mount, plain)
    shown_elsewhere(case, mount, other)
    crowded(case, (mount, other))
    another_process(case, mount)
    limits(mount)
    evicted(case, mount, other)
    for each in (mount, other, plain):
        each.allow('is evicted|evicted by|is lost|killed|goes on')
    directory = os.open(mount.directory, os.O_RDONLY)   # so the mount lasts, and the daemon ends on its own
    mount.process.send_signal(signal.SIGTERM)
    mount.check_end()   # it waits for no reader of a token
    os.close(directory)


run(test)
