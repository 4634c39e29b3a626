#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""order.py and order.sh: many on two mounts work on the same few orders, and each creates and removes the locks. No two work
on an order at a time, tokens rise over each removal, and no lock is left."""

import os

from gate import Gate, at_once, evict, example, finished, path, queued
from harness import check_equal, command, run, spawn, until
from locking import BUILD

ROUNDS = 12


def crowd(case, a, b):
    """As fast as they can: removals meet creations all the time."""
    work = case.directory + '/work'
    os.mkdir(work)
    job = 'n=$(cat "$1" 2>/dev/null); echo $((n + 1)) >"$1"; echo "${TOKEN:-$ZKLOCK_TOKEN}" >>"$1.tokens"'
    loop = 'n=0; while [ $n -lt "$1" ]; do "$2" "$3/4711" sh -c "$4" sh "$5" || exit; n=$((n + 1)); done'
    users = [spawn(['sh', '-c', loop, 'sh', str(ROUNDS), path(program), mount.path('orders'), job, work + '/4711'],
                   env=environment())
             for program in ('order.py', 'order.sh') for mount in (a, b) * 2]
    for user in users:
        check_equal(user.wait(300), 0, 'one of those who work on an order')
    with open(work + '/4711', encoding='ascii') as file:
        check_equal(int(file.read()), ROUNDS * len(users), 'no two worked on it at once')
    with open(work + '/4711.tokens', encoding='ascii') as file:
        tokens = [int(token) for token in file]
    check_equal(tokens, sorted(set(tokens)), 'tokens rise, also over a removal')
    until(lambda: locks(a) == [] == locks(b), 'no lock is left')


def environment():
    return {**os.environ, 'ZKLOCKFS': '', 'PATH': f'{BUILD}:{os.environ["PATH"]}'}


def locks(mount):
    return [name for name in os.listdir(mount.path('orders')) if os.path.isdir(mount.path('orders', name, 'queue'))]


def removal(gate, a, b):
    """The one who ends first does not remove the lock of the one who waits."""
    for first, second in (('order.py', 'order.sh'), ('order.sh', 'order.py')):
        holder = example(first, a.path('orders/7'), *gate.visitor(), **environment())
        visitor = gate.arrived()
        waiter = example(second, b.path('orders/7'), *gate.visitor(), **environment())
        queued(a, 'orders/7', 2, held=1)
        visitor.let(3)
        finished(holder, 3, first)
        queued(a, 'orders/7', 1, held=1)
        gate.arrived().let()
        finished(waiter, 0, second)
        until(lambda: locks(a) == [] == locks(b), 'no lock is left')


def trouble(case, gate, a):
    for program in ('order.py', 'order.sh'):
        holder = example(program, a.path('orders/8'), *gate.visitor(), **environment())
        visitor = gate.arrived()
        queued(a, 'orders/8', 1, held=1)
        evict(a, 'orders/8')
        if program == 'order.py':       # zklock stops it
            queued(a, 'orders/8', 0)
            visitor.let()
        finished(holder, 74, f'{program}, evicted')
        until(lambda: locks(a) == [], 'no lock is left')
        status, out, _ = at_once(program, case.mount_point() + '/9', 'echo', 'ran', **environment())
        check_equal((status, out), (69, ''), f'{program}, nothing is mounted')


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    for mount in (a, b):
        mount.allow('evicted|lost')
        mount.watched = False   # so many programs start at a time
    a.mkdir('orders')
    until(lambda: 'orders' in b.locks(), 'the other mount sees it')
    gate = Gate(case)
    crowd(case, a, b)
    removal(gate, a, b)
    trouble(case, gate, a)
    check_equal(command(['rmdir', a.path('orders')])[0], 0, 'rmdir')


run(test)
