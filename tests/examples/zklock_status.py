#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The statuses of zklock(1): each means one thing, COMMAND runs with the lock or not at all, and -E
and -q are for a lock that somebody else has, and for nothing else."""

import os

from gate import HERE, finished, queued
from harness import ALICE, check, check_equal, command, run, until
from locking import ZKLOCK, check_run, environment, evict, free, start

# As in zklock(1), and what it must not hide.
CRON = ['-q', '-n', '-E', '0', '--at-least', '10m']


class Job:
    """A command that tells whether it ran."""

    def __init__(self, case):
        self.path = case.directory + '/ran'
        self.words = ['--', 'touch', self.path]

    def check(self, mount, options, lock, status, err, what, **more):
        got, out, said = command([ZKLOCK, *options, lock, *self.words], env=environment(mount), **more)
        check_equal((got, out, os.path.exists(self.path)), (status, '', False), f'{what}: {said}')
        check(err in said if err else said == '', f'{what}: it says {said!r} and not {err!r}')


def somebody_else(job, a, b):
    """Whatever status the user wants for that, the command does not run."""
    holder = b.take('svca').held()
    job.check(a, ['-n'], 'svca', 75, 'svca: not free', 'busy')
    job.check(a, CRON, 'svca', 0, '', 'the crontab line')
    for number in (0, 1, 66, 69, 74, 255):
        job.check(a, ['-n', '-q', '-E', str(number)], 'svca', number, '', f'-E {number}')
    job.check(a, ['-w', '300ms', '-E', '0'], 'svca', 0, 'not free in time', '-w')
    process = start(a, '-E', '0', 'svca', *job.words)
    queued(a, 'svca', 2)
    evict(b, 'svca', process)
    check('evicted while it waited' in finished(process, 0, 'evicted')[1], 'evicted')
    check(not os.path.exists(job.path), 'evicted: the command ran')
    holder.release()
    free(a, 'svca')


def not_here(case, job, a):
    """No lock, no permission, no mount, wrong use."""
    job.check(a, CRON, 'svcx', 66, 'svcx: no such lock', 'a typing error')
    job.check(a, CRON, 'svca', 77, 'you may not take it', 'no permission', user=ALICE, group=ALICE)
    job.check(a, [*CRON, '-w', '5x'], 'svca', 64, 'a time is', 'wrong use')
    bare = case.mount_point()
    job.check(None, [*CRON, '-m', bare], 'svca', 69, 'no zklockfs is mounted there', 'nothing mounted')


def no_ensemble(job, server, a, b):
    """Another mount may hold it, and nobody can know."""
    holder = b.take('svcb').held()
    # The mount takes itself for connected still.
    server.freeze()
    job.check(a, ['-w', '100ms', '-q', '-E', '0'], 'svca', 69, 'svca: the ensemble does not answer', 'frozen')
    server.thaw()
    a.ready()
    free(a, 'svca')
    server.stop()
    until(lambda: a.status()['state'] != 'ready', 'the mount notices')
    for options in (CRON, ['-n'], ['-w', '300ms', '-q', '-E', '0']):
        job.check(a, options, 'svca', 69, 'svca: the ensemble does not answer', f'no ensemble, {options}')
    check('the ensemble does not answer (since ' in command([ZKLOCK, '-n', 'svca', *job.words], env=environment(a))[2],
          'since when')
    server.start()
    a.ready()
    until(lambda: b.status()['state'] == 'ready', 'contact')
    holder.kill()


def no_answer(case, a):
    """What keeps it from asking in the end whether the lock was held is no loss."""
    library = case.directory + '/no_answer.so'
    check_equal(command(['gcc', '-shared', '-fPIC', '-D_GNU_SOURCE', '-o', library, HERE + '/no_answer.c'])[0], 0, 'gcc')
    a.mkdir('svcc')
    for status in (0, 3):
        process = start(a, 'svca', 'svcc', '--', 'sh', '-c', f'exit {status}',
                        env=environment(a, LD_PRELOAD=library, ASAN_OPTIONS='verify_asan_link_order=0'))
        check_equal(finished(process, status, 'held to the end'), ('', ''), 'not a word')


def dead(job, a):
    a.crash()
    job.check(a, CRON, 'svca', 69, ' is dead', 'dead')
    command(['umount', '-l', a.directory])


def had(a):
    check_run(a, ['-E', '3', 'svca', '--', 'true'], 0, 'free')
    check_run(a, ['-E', '3', 'svca', '--', 'sh', '-c', 'exit 75'], 75, 'the status of the command')


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    for mount in (a, b):
        mount.allow('.')
    for name in ('svca', 'svcb'):
        a.mkdir(name, 0o755)
    job = Job(case)
    had(a)
    somebody_else(job, a, b)
    not_here(case, job, a)
    no_ensemble(job, server, a, b)
    no_answer(case, a)
    dead(job, a)


run(test)
