#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The clients of other projects that share a queue with zklockfs, each as a row of a table: what it does
to two mounts, and they to it, is in foreign.py.

    families.py [SECONDS]       so long a race of each row; 0.5 by default, 3 is the long form
"""

import errno
import itertools
import os
import select
import subprocess
import sys
import time
import uuid

import by_logic
import foreign
from harness import check, check_equal, check_errno, raw_open, run, spawn, until

SEMAPHORE = os.path.join(foreign.HERE, '..', '..', 'examples', 'clients', 'semaphore.sh')

STARTERS = {'curator': foreign.curator_kinds, 'kazoo': foreign.kazoo_kinds, 'go': foreign.go_zookeeper,
            'java': foreign.java_recipe, 'c': lambda case, server: by_logic.Recipe(server),
            'ruby': lambda case, server: by_logic.Ruby(server)}
BY_LOGIC = 'c', 'ruby'

BOTH, THEIRS_FIRST, NO = 'both', 'theirs first', 'no'
# By the mount's clients=: the lock, of which the first word tells the worker the kind; the worker; whether
# its shared mode holds together with ours.
ROWS = {
    'curator': {
        'mutex-1': ('curator', NO),
        'zklockfs-2': ('curator', BOTH),
        'zklockfs-3': ('kazoo', BOTH),
        'go-4': ('go', NO),
        'recipe-5': ('java', NO),
        'recipe-6': ('c', NO),
    },
    'curator-rw': {
        'rw-7': ('curator', BOTH),
        'curatorrw-8': ('kazoo', BOTH),
    },
    'kazoo': {
        'lock-10': ('kazoo', NO),
        'rw-11': ('kazoo', THEIRS_FIRST),
    },
    'kazoo-rw': {
        'rw-12': ('kazoo', BOTH),
    },
    'ruby': {
        'ruby-13': ('ruby', BOTH),
    },
}


def in_a_hurry(lock):
    """Not ZooKeeper's recipe in Java: it may miss what happens right behind its listing."""
    return not lock.startswith('recipe-5')


def row(server, mounts, worker, lock, shares, seconds):
    """All that can be tried while nobody dies."""
    a, b = mounts
    hurries = in_a_hurry(lock)
    for mode in ('exclusive',) if shares == NO else ('exclusive', 'shared'):
        foreign.waits_for_us(server, a, worker, lock=lock, mode=mode, hurries=hurries)
        foreign.we_wait(server, a, worker, lock=lock, mode=mode)
    foreign.waits_for_us(server, a, worker, 'shared', lock=lock,
                         mode='shared' if shares == THEIRS_FIRST else 'exclusive', hurries=hurries)
    foreign.we_wait(server, a, worker, 'shared', lock=lock)
    foreign.order_is_kept(server, a, worker, lock=lock, other=b, hurries=hurries)
    if shares == BOTH:
        foreign.we_share_first(server, a, worker, lock)
    if shares != NO:
        foreign.they_share_first(server, a, worker, lock)
    foreign.they_follow_a_kill(server, a, worker, lock, hurries)
    if hurries:
        foreign.nobody_meets(mounts, [(worker, shares != NO)], lock, seconds, shares != NO)


class Part:
    """Some rows of one family, with workers and mounts of their own."""

    def __init__(self, clients, *locks, then=None):
        self.clients, self.then = clients, then
        self.rows = {lock: ROWS[clients][lock] for lock in locks or ROWS[clients]}

    def __call__(self, case):
        server, seconds = case.servers[0], float(sys.argv[1]) if len(sys.argv) > 1 else 0.5
        mounts = [case.mount(server, host, options=['clients=' + self.clients]) for host in 'ab']
        third = case.mount(server, 'c', options=['clients=' + self.clients, 'nokeeper'])
        for mount in mounts:
            mount.allow('client')
        names = sorted({name for name, _ in self.rows.values()})
        workers = {name: STARTERS[name](case, server) for name in names}
        doomed = {name: None if name in BY_LOGIC else STARTERS[name](case, server) for name in names}
        for lock in self.rows:
            mounts[0].mkdir(lock)
            if lock.startswith('ruby'):
                mounts[0].mkdir(lock + '/keep999999999')
        dead = [foreign.killed_holders(server, mounts[0], third, workers[name], doomed[name], lock, 100 + number,
                                       in_a_hurry(lock))
                for number, (lock, (name, _)) in enumerate(self.rows.items())]
        killed = time.monotonic_ns()
        third.crash()
        for worker in filter(None, doomed.values()):
            worker.kill()
        for lock, (name, shares) in self.rows.items():
            began = time.monotonic()
            row(server, mounts, workers[name], lock, shares, seconds)
            print(f'clients={self.clients} {lock} {name}: {time.monotonic() - began:.1f} s')
        if self.then:
            self.then(case, server, mounts, workers, seconds)
        for followed in dead:
            followed(killed)


# ---- what only some can do ----

def semaphore(case, server, mounts, workers, _):
    """examples/clients/semaphore.sh takes leases of Curator's semaphore, which has two of them."""
    mount, worker, leases = mounts[0], workers['curator'], 'semaphore/leases'
    for part in ('', '/locks', '/leases'):
        mount.mkdir('semaphore' + part)

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


def everybody(case, server, mounts, workers, seconds):
    """One lock, all kinds at once. Curator's session is a new one, in the rows of other workers."""
    mounts[0].mkdir('zklockfs-all')
    curator = foreign.curator_kinds(case, server)
    foreign.nobody_meets(mounts, [(curator, True), (workers['kazoo'], True), (workers['go'], False)],
                         'zklockfs-all', max(seconds, 1), True)


def late_reader(_, server, mounts, workers, __):
    """Since 5.5.0 a writer of Curator that also reads makes an entry with the number of its own: by hand,
    while Debian's Curator holds. Then it gives up the first one."""
    worker, lock = workers['curator'], 'rw-late'
    mounts[0].mkdir(lock)
    worker.take(1, lock)
    worker.held(1)
    number = server.entries(lock)[0][-10:]
    ours = mounts[0].take(lock)
    foreign.queued(server, lock, 2)
    reader = server.zk.create(f'{foreign.ROOT}/{lock}/_c_{uuid.uuid4()}-__READ__{number}', ephemeral=True)
    worker.drop(1)
    worker.dropped(1)
    foreign.queued(server, lock, 2)
    check(not ours.answered(foreign.PATIENCE_SECONDS), 'we hold beside a late reader')
    server.zk.delete(reader)
    ours.held().release()
    foreign.queued(server, lock, 0)


def curators_own(*args):
    late_reader(*args)
    latch_sleeps(*args)


def plain_beside_readers(_, server, mounts, workers, __):
    """kazoo's Lock ignores readers, also kazoo's: a fact that the manual tells."""
    worker, lock = workers['kazoo'], 'lock-readers'
    mounts[0].mkdir(lock)
    ours = mounts[0].take(lock, 'shared').held()
    worker.take(1, lock)
    worker.held(1)
    check_equal(len(server.entries(lock)), 2, 'both hold')
    worker.drop(1)
    worker.dropped(1)
    ours.release()


def latch_sleeps(_, server, mounts, workers, __):
    """Why Curator's LeaderLatch has no family: a change of the data of the entry before its own, which is
    no delete, leaves it without a watch. Should it wake up one day, it may have one."""
    worker, lock = workers['curator'], 'latch-1'
    mounts[0].mkdir(lock)
    first = server.zk.create(f'{foreign.ROOT}/{lock}/_c_{uuid.uuid4()}-latch-', ephemeral=True, sequence=True)
    worker.take(1, lock)
    foreign.queued(server, lock, 2)
    until(lambda: first in map(str.strip, server.ask('wchc').splitlines()), 'it watches')
    server.zk.set(first, b'changed')
    server.zk.delete(first)
    foreign.queued(server, lock, 1)
    foreign.stays_out(worker, 1)


def strangers(case):
    """Mounts of different families refuse each other, unless their names are the same."""
    server = case.servers[0]
    mounts = {clients: case.mount(server, clients, options=['clients=' + clients]) for clients in ROWS}
    for mount in mounts.values():
        mount.allow('client')
    for number, (one, other) in enumerate(itertools.permutations(ROWS, 2)):
        lock = f'pair{number}'
        mounts[one].mkdir(lock)
        for lock_file in ('lock', 'shared'):
            same = lock_file == 'lock' and {one, other} == {'kazoo', 'kazoo-rw'}
            holder = mounts[one].take(lock, lock_file).held()
            check_errno(errno.EAGAIN if same else errno.EPROTO, raw_open, mounts[other].path(lock, 'try'),
                        os.O_RDWR)
            holder.release()
            foreign.queued(server, lock, 0)


def test(case):
    server = case.server()
    foreign.build(case)
    mount = case.mount(server)
    mount.unmount()     # the root is there now
    case.at_once(Part('curator', 'mutex-1', 'zklockfs-2', then=semaphore),
                 Part('curator', 'zklockfs-3', 'go-4', then=everybody),
                 Part('curator', 'recipe-5', 'recipe-6'),
                 Part('curator-rw', then=curators_own),
                 Part('kazoo'), Part('kazoo-rw', then=plain_beside_readers), Part('ruby'),
                 strangers)


run(test)
