#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every job that a page prints: those of zklockfs-idioms(7), and the scripts of the main README,
of zklockfs(5) and of examples/kubernetes. Each waits for its lock, does its work, and gives the lock
back. None works without the lock: not while somebody else has it, not where nothing is mounted, the
daemon is dead, the name is wrong, the user may not, or the ensemble is away; and then it ends with the
status of zklockfs-idioms(7) and a word on stderr. None calls it a success after a loss."""

import errno
import re

from gate import Gate, check, check_equal, evict, queued, until
from harness import run
from printed import BROKEN, FAILED, LOST, RUNNERS, blocks, cast, does_nothing, know_the_locks, programs, read


def scripts():
    """The same script where else it is printed, and the shell that runs it here."""
    readme = re.search(r'^((?:    .*\n)*    command exec.*\n(?:    .*\n)*)', read('README.md'), re.MULTILINE).group(1)
    yield 'README', 'dash {}', re.sub('^    ', '', readme, flags=re.MULTILINE)
    idiom, _, waits, _ = blocks('zklockfs.5.md')
    yield 'zklockfs(5)', 'bash {}', idiom
    yield 'zklockfs(5), FLOCK', 'dash {}', waits + 'make deploy || exit\ncat <&9 >/dev/null || exit 74\n'
    job = re.search(r'^( *)command exec.*?(?=^ *securityContext)', read('examples', 'kubernetes', 'job.yaml'),
                    re.MULTILINE | re.DOTALL)
    job = re.sub('^' + job.group(1), '', job.group(0), flags=re.MULTILINE).replace('/mnt/zklockfs/locks', '/mnt/locks')
    check('echo "here the work is done' in job, 'what the job does')
    yield 'job.yaml', 'busybox sh {}', job.replace('echo "here the work is done', 'make deploy || exit; echo "')


def texts():
    jobs = programs('PROGRAMS')
    check_equal([language for language, _ in jobs], list(RUNNERS), 'the programs of the page')
    for language, text in jobs:
        for command in RUNNERS[language][2]:
            yield language, language, text, command
    for origin, command, text in scripts():
        yield origin, 'sh', text, command


def arrived(gate, jobs):
    """The visitor of each, in the order of the jobs."""
    visitors = {}
    for _ in jobs:
        visitor = gate.arrived()
        check(visitor.name not in visitors, f'{visitor.name} came twice')
        visitors[visitor.name] = visitor
    return [visitors[job.name] for job in jobs]


def wait(gate, a, b, jobs):
    """And then work, and give the lock back."""
    others = [b.take(job.lock).held() for job in jobs]
    for job in jobs:
        job.start(a.directory)
    for job in jobs:
        job.queued(b, 2, 1)
    gate.nobody('somebody else has the lock')
    for other in others:
        other.release()
    for job, visitor in zip(jobs, arrived(gate, jobs)):
        job.queued(b, 1, 1)
        until(lambda job=job: 'reason=deploying' in b.read(job.lock, 'holder'), f'the reason of {job.name}')
        b.take(job.lock, 'try').refused(errno.EAGAIN)
        visitor.let(0)
    for job in jobs:
        job.ends(0, 'all is well')
        queued(b, job.lock, 0)


def lose(gate, a, b, jobs):
    for job in jobs:
        job.start(a.directory)
    for job, visitor in zip(jobs, arrived(gate, jobs)):
        evict(b, job.lock)
        queued(b, job.lock, 0)
        visitor.let(0)
    for job in jobs:
        check('deployed' not in job.ends(LOST, 'the lock was lost'), f'{job.name} calls it a success')


def are_killed(gate, a, b, jobs):
    for job in jobs:
        job.start(a.directory)
    for job, visitor in zip(jobs, arrived(gate, jobs)):
        job.process.kill()
        job.process.wait()
        if job.inherited:
            b.take(job.lock, 'try').refused(errno.EAGAIN)
            visitor.let(0)
        queued(b, job.lock, 0)
        if not job.inherited:
            visitor.let(0)
        job.process.communicate()


def have_no_ensemble(gate, server, a, jobs):
    """Who waits goes on when it is back."""
    server.freeze()
    for job in jobs:
        job.start(a.directory)
    for job in jobs:
        job.waits()
    gate.nobody('the ensemble is away')
    server.thaw()
    waiting = []
    for job in jobs:
        if job.process.poll() is None:
            waiting.append(job)
        else:
            job.ends(BROKEN, 'the ensemble is away')
    check(len(waiting) > len(jobs) / 2, f'only these have waited: {[job.name for job in waiting]}')
    for visitor in arrived(gate, waiting):
        visitor.let(FAILED)
    for job in waiting:
        job.ends(FAILED, 'its command fails')


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    gate = Gate(case)
    jobs = cast(case, gate, texts())
    know_the_locks(jobs, a, b)
    wait(gate, a, b, jobs)
    lose(gate, a, b, jobs)
    are_killed(gate, a, b, jobs)
    does_nothing(case, gate, a, jobs)
    have_no_ensemble(gate, server, a, jobs)
    print('tried', *(job.name for job in jobs), sep='\n')


run(test)
