#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cron-once.sh: of many hosts one runs the job, also when another comes late; a job that failed
is run again."""

import os
import subprocess

from gate import Gate, at_once, evict, example, finished, path, queued
from harness import check, check_equal, run, shells, until


SCRIPT = 'cron-once.sh'


def once(gate, a, b, shell):
    here, there = a.path('nightly'), b.path('nightly')

    def start(where, name, period):
        return example(SCRIPT, where, *gate.visitor(name), shell=shell, PERIOD=period)

    def late(where, period, status, what):
        got = at_once(SCRIPT, where, *gate.visitor(what), shell=shell, PERIOD=period)
        check_equal(got, (status, '', ''), f'{shell}: {what}')
        gate.nobody(what)

    # One works, the others leave; also when the script is killed and the job is not.
    job = start(here, 'job', 'one')
    visitor = gate.arrived('job')
    for where in (here, there):
        late(where, 'one', 75, 'beside it')
    job.kill()
    job.wait()
    late(there, 'one', 75, 'while the job runs')
    visitor.let()
    queued(a, 'nightly', 0)

    # It was not noted as done. The next one does it, then nobody.
    job = start(there, 'again', 'one')
    gate.arrived('again').let(3)
    finished(job, 3, 'a job that fails')
    queued(a, 'nightly', 0)
    job = start(here, 'better', 'one')
    visitor = gate.arrived('better')
    until(lambda: f'{gate.path} better\n' in b.read('nightly', 'holder'), 'the reason')
    visitor.let()
    finished(job, 0, 'a job that works')
    queued(b, 'nightly', 0)
    for where in (here, there):
        late(where, 'one', 0, 'too late')

    # All at the same time.
    jobs = [start(where, 'crowd', 'two') for where in (here, there) * 3]
    gate.arrived('crowd').let()
    results = [job.communicate(timeout=60) + (job.returncode,) for job in jobs]
    check(all(result in (('', '', 0), ('', '', 75)) for result in results), f'{shell}: {results}')
    gate.nobody('a second one of the crowd')
    queued(a, 'nightly', 0)

    # Lost in the middle: it does not count as done.
    job = start(here, 'loser', 'three')
    visitor = gate.arrived('loser')
    evict(b, 'nightly')
    queued(a, 'nightly', 0)
    visitor.let()
    check('the lock was lost' in finished(job, 74, 'who has lost the lock')[1], 'says')
    check_equal(a.read('nightly', 'value'), 'two\n', 'what is done')

    # The day, when nothing else is said.
    def today():
        return subprocess.check_output(['date', '+%F'], text=True)
    before = today()
    check_equal(at_once(SCRIPT, here, 'true', shell=shell)[0], 0, 'today')
    check(a.read('nightly', 'value') in (before, today()), 'the day it was done')


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    for mount in (a, b):
        mount.allow('evicted|lost')
    a.mkdir('nightly')
    gate = Gate(case)
    for shell in shells():
        once(gate, a, b, shell)
        check_equal(at_once(SCRIPT, a.path('nightly'), shell=shell)[0], 64, 'usage')
    # As cron runs it: by its first line.
    check(os.access(path(SCRIPT), os.X_OK), 'it can be executed')


run(test)
