#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""licence.sh: as many programs run as there are slots, on two mounts; the next one starts
when one ends or is killed, or when there are more slots. A loss is told at the end."""

import os
import signal

from gate import Gate, at_once, evict, example, finished, queued
from harness import check, check_equal, command, run, shells


def pool(gate, a, b, shell):
    def slots(number):
        check_equal(command([*shell, '-c', 'echo "$1" >"$2"', 'sh', str(number), a.path('pool', 'slots')])[0],
                    0, 'slots')

    def busy(mount):
        return at_once('licence.sh', mount.path('pool'), 'echo', 'ran', shell=shell, WAIT='0s')[:2]

    slots(3)
    jobs = [example('licence.sh', mount.path('pool'), *gate.visitor(), shell=shell)
            for mount in (a, b) * 4]
    inside = [gate.arrived() for _ in range(3)]
    queued(b, 'pool', 8, held=3)
    gate.nobody('a fourth one')
    check_equal(len(a.read('pool', 'holder').splitlines()), 3, 'lines of holder')
    for mount in (a, b):
        check_equal(busy(mount), (75, ''), 'all are taken')

    # One ends, one is killed.
    inside.pop().let(4)
    inside.append(gate.arrived())
    queued(b, 'pool', 7, held=3)
    killed = inside.pop(0)      # a visitor whose connection ends goes by itself
    os.kill(killed.pid, signal.SIGKILL)
    inside.append(gate.arrived())
    queued(b, 'pool', 6, held=3)
    gate.nobody('a fourth one')

    # More, and less: that takes none away, and lets nobody in until enough have ended.
    slots(5)
    inside += [gate.arrived(), gate.arrived()]
    queued(a, 'pool', 6, held=5)
    slots(4)
    inside.pop().let()
    queued(a, 'pool', 5, held=4)
    gate.nobody('a fifth one')
    inside.pop().let()
    inside.append(gate.arrived())
    queued(a, 'pool', 4, held=4)
    for visitor in inside:
        visitor.let()
    check_equal(sorted(job.wait(60) for job in jobs), [0, 0, 0, 0, 0, 0, 4, 128 + signal.SIGKILL], 'status of the programs')
    queued(a, 'pool', 0)
    check_equal(busy(b), (0, 'ran\n'), 'all are free')

    # One loses its licence.
    job = example('licence.sh', a.path('pool'), *gate.visitor(), shell=shell)
    visitor = gate.arrived()
    evict(b, 'pool')
    queued(a, 'pool', 0)
    visitor.let()
    _, err = finished(job, 74, 'who has lost it')
    check('the licence was lost' in err, err)


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    for mount in (a, b):
        mount.allow('evicted|lost')
    a.mkdir('pool')
    gate = Gate(case)
    for shell in shells():
        pool(gate, a, b, shell)


run(test)
