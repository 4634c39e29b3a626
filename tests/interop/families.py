#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The clients of other projects that share a queue with zklockfs, each as a row: what it does to two
mounts, and they to it, is in foreign.py.

    families.py [SECONDS] [ROW...]      so long a race (1), only these rows
"""

import errno
import os
import select
import subprocess
import sys
import time

import foreign
from harness import check, check_equal, check_errno, run, spawn

SEMAPHORE = os.path.join(foreign.HERE, '..', '..', 'examples', 'clients', 'semaphore.sh')
CURATOR, KAZOO = 'Kinds', 'kinds'       # the workers

# Lock: the worker, and whether it has a shared mode that holds together with ours.
ROWS = {
    'zklockfs-curator': (CURATOR, True),
    'zklockfs-kazoo': (KAZOO, True),
    'mutex-curator': (CURATOR, False),
}


def row(server, mounts, worker, lock, shares, seconds):
    """All that can be tried while nobody dies."""
    a, b = mounts
    modes = ('exclusive', 'shared') if shares else ('exclusive',)
    for mode in modes:
        foreign.waits_for_us(server, a, worker, lock=lock, mode=mode)
        foreign.we_wait(server, a, worker, lock=lock, mode=mode)
    foreign.waits_for_us(server, a, worker, 'shared', lock=lock)
    foreign.we_wait(server, a, worker, 'shared', lock=lock)
    foreign.order_is_kept(server, a, worker, lock=lock, other=b)
    if shares:
        foreign.both_share(server, a, worker, lock)
    foreign.they_follow_a_kill(server, a, worker, lock)
    foreign.nobody_meets(mounts, [worker], seconds, lock, shares)


def semaphore(case, server, mount, worker):
    """examples/clients/semaphore.sh takes leases of Curator's semaphore, which has two of them."""
    for part in ('', '/locks', '/leases'):
        mount.mkdir('semaphore' + part)
    leases = 'semaphore/leases'

    def script():
        process = spawn([SEMAPHORE, mount.path('semaphore'), '2', 'sh', '-c', 'echo in; read -r _'],
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        case.cleanups.callback(process.kill)
        return process

    def ends(process):
        process.communicate('\n', timeout=60)
        check_equal(process.returncode, 0, 'the script')

    # Theirs, ours, then one of each, which wait for a lease in turn.
    worker.take(1, 'semaphore')
    worker.held(1)
    first = script()
    check_equal(first.stdout.readline(), 'in\n', 'a second lease')
    foreign.queued(server, leases, 2)
    second = script()
    foreign.queued(server, leases, 3)
    worker.take(2, 'semaphore')
    foreign.queued(server, 'semaphore/locks', 2)
    foreign.stays_out(worker, 2)
    check(not select.select([second.stdout], [], [], 0)[0], 'a third lease')
    worker.drop(1)
    worker.dropped(1)
    check_equal(second.stdout.readline(), 'in\n', 'their lease is ours')
    foreign.queued(server, leases, 3)
    foreign.stays_out(worker, 2)
    ends(first)
    worker.held(2)
    ends(second)
    worker.drop(2)
    worker.dropped(2)
    foreign.queued(server, leases, 0)
    # The lock above stays closed for us.
    check_errno(errno.EPROTO, os.open, mount.path('semaphore', 'try'), os.O_RDWR)


def test(case):
    words = sys.argv[1:]
    seconds = float(words.pop(0)) if words else 1
    rows = {lock: ROWS[lock] for lock in words or ROWS}
    server = case.server()
    mounts = case.mount(server, 'a'), case.mount(server, 'b')
    for mount in mounts:
        mount.allow('does not wait|client')
    starters = {CURATOR: foreign.curator_kinds, KAZOO: foreign.kazoo_kinds}
    workers = {name: start(case, server) for name, start in starters.items()}
    doomed = {name: start(case, server) for name, start in starters.items()}
    third = case.mount(server, 'c', options=['nokeeper'])
    dead = [foreign.killed_holders(server, mounts[0], third, workers[name], doomed[name], lock, 100 + number)
            for number, (lock, (name, _)) in enumerate(rows.items())]
    killed = time.monotonic_ns()
    third.crash()
    for worker in doomed.values():
        worker.kill()
    for lock, (name, shares) in rows.items():
        began = time.monotonic()
        mounts[0].mkdir(lock)
        row(server, mounts, workers[name], lock, shares, seconds)
        print(f'{lock}: {time.monotonic() - began:.1f} s')
    semaphore(case, server, mounts[0], workers[CURATOR])

    # One lock, everybody at once.
    foreign.nobody_meets(mounts, workers.values(), seconds, 'zklockfs-all', True)
    for followed in dead:
        followed(killed)


run(test)
