#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""maintenance.sh: work goes on side by side; a window waits for what came before it, and
keeps out what comes after. A loss is told at the end."""

from gate import Gate, at_once, evict, example, finished, queued
from harness import check, check_equal, run, shells


def window(gate, a, b, shell):
    def start(kind, mount, name):
        return example('maintenance.sh', kind, mount.path('db'), *gate.visitor(name), shell=shell)

    jobs = [start('work', a, 'work 1')]
    first = gate.arrived('work 1')
    jobs.append(start('work', b, 'work 2'))
    second = gate.arrived('work 2')
    queued(a, 'db', 2, held=2)
    jobs.append(start('window', b, 'window'))
    queued(a, 'db', 3)
    jobs.append(start('work', a, 'work 3'))
    queued(b, 'db', 4, held=2)
    gate.nobody('before the work is done')
    first.let()
    queued(b, 'db', 3, held=1)
    gate.nobody('before all work is done')
    second.let(6)
    maintenance = gate.arrived('window')
    queued(b, 'db', 2, held=1)
    jobs.append(start('work', b, 'work 4'))
    queued(b, 'db', 3, held=1)
    gate.nobody('while the window is open')
    maintenance.let()
    last = [gate.arrived(), gate.arrived()]
    check_equal(sorted(visitor.name for visitor in last), ['work 3', 'work 4'], 'the workers after it')
    queued(a, 'db', 2, held=2)
    for visitor in last:
        visitor.let()
    check_equal([job.wait(60) for job in jobs], [0, 6, 0, 0, 0], 'status of the commands')
    queued(a, 'db', 0)

    # Lost meanwhile: it does not say that it went well.
    for kind in ('work', 'window'):
        job = start(kind, a, kind)
        visitor = gate.arrived(kind)
        evict(b, 'db')
        queued(a, 'db', 0)
        visitor.let()
        _, err = finished(job, 74, f'{kind} that has lost the lock')
        check('the lock was lost' in err, err)


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    for mount in (a, b):
        mount.allow('evicted|lost')
    a.mkdir('db')
    gate = Gate(case)
    for shell in shells():
        window(gate, a, b, shell)
    check_equal(at_once('maintenance.sh', 'lunch', a.path('db'), 'echo', 'ran')[:2], (64, ''), 'usage')


run(test)
