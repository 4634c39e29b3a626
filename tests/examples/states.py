#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each program of examples/ that runs a command under a lock, and each line for crontab(5) that a page
prints, where it cannot have the lock: the command does not run, there is a word on stderr, and the status is
that of zklockfs-idioms(7). Above all it is 75, or what zklock -E says, where somebody else has the lock, and
nowhere else: a job that all hosts leave to each other is done by none."""

import os
import shutil
import subprocess
import sys

from gate import EXAMPLES, HERE, Gate, broken, queued
from harness import WAIT_SECONDS, check, check_equal, run, spawn
from locking import BUILD
from printed import blocks, crontab

BROKEN, BUSY, DENIED = 69, 75, 77
# What each is given: {} is the lock, and the command follows. Those that wait without a limit
# never find a lock busy; those that see errno tell what is wrong.
COMMANDS = {
    'cron-once.sh': ['{}'],
    'deploy.sh': ['{}', 'v1'],
    'licence.sh': ['{}'],
    'maintenance.sh work': ['{}'],
    'maintenance.sh window': ['{}'],
    'leader.py': ['{}'],
    'leader': ['{}'],
    'sale.py': ['shop.db', 'buy', 'order', '{}'],
}
WAIT = {name for name in COMMANDS if name.split()[0] in ('maintenance.sh', 'leader.py', 'leader', 'sale.py')}
SEE_ERRNO = {'leader.py', 'leader', 'sale.py'}

# What stands in a line for crontab(5) for its job, and in a script for what is done.
WORK = 'backup --all'


def lines():
    """By a name: what a page prints, to be run by a shell; and what its status is when the lock is busy,
    or None if it waits."""
    found = crontab()
    check(len(found) >= 3 and any(line.startswith('zklock') for line in found), f'lines: {found}')
    for line in found:
        yield line, line, 0 if '-E 0' in line else BUSY
    _, busy, _, value = blocks('zklockfs.5.md')
    yield 'zklockfs(5), FLOCK', busy[busy.index('command'):].replace('/build/', '/nightly/') + WORK, BUSY
    yield 'zklockfs(5), value', value.replace('build/', '/mnt/locks/nightly/').replace('deploy v42', WORK), None


class Programs:
    """Copies that every user can run."""

    def __init__(self, case, gate):
        self.directory, self.gate = case.directory + '/examples', gate
        shutil.copytree(EXAMPLES, self.directory)
        subprocess.run(['cc', '-o', self.directory + '/leader', self.directory + '/leader.c'], check=True)
        subprocess.run([self.directory + '/sale.py', self.directory + '/shop.db', 'stock', '9'], check=True)
        for name in ('', '/shop.db'):
            os.chmod(self.directory + name, 0o777)

    def start(self, name, lock, wait='0s', **options):
        program, *words = name.split()
        words += [word.replace('{}', lock).replace('shop.db', self.directory + '/shop.db') for word in COMMANDS[name]]
        return spawn([f'{self.directory}/{program}', *words, *self.gate.visitor(name)], stdin=subprocess.DEVNULL,
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                     env={**os.environ, 'WAIT': wait}, **options)

    def run_line(self, text, root, **options):
        environ = {**os.environ, 'PATH': f'{self.gate.tools}:{BUILD}:{os.environ["PATH"]}', 'ZKLOCKFS': root}
        return spawn(['sh', '-c', text.replace('/mnt/locks', root)], stdin=subprocess.DEVNULL,
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ, **options)

    def end_lines(self, processes, state):
        """None takes it for a lock that somebody else has."""
        for name, process in processes.items():
            out, err = process.communicate(timeout=2 * WAIT_SECONDS)
            check(process.returncode not in (0, BUSY) and err, f'{name}, {state}: {process.returncode} {out}{err}')
        self.gate.nobody(state)

    def end(self, processes, state, status_of):
        """All of them end, with their status, and have not run the command."""
        for name, process in processes.items():
            out, err = process.communicate(timeout=2 * WAIT_SECONDS)
            wanted = status_of(name)
            check_equal(process.returncode, wanted, f'{name}, {state}: {out}{err}')
            check(err or wanted == BUSY, f'{name}, {state}: not a word on stderr')
            check('Traceback' not in err, f'{name}, {state}: {err}')
        self.gate.nobody(state)


def are_broken(case, mount, programs):
    for state, root, user in broken(case, mount):
        options = {'user': user, 'group': user, 'extra_groups': []} if user else {}
        lock = root + '/nightly'
        if state.startswith('local'):
            os.makedirs(lock)
            for name in ('lock', 'lock@0s', 'flock', 'shared', 'value', 'holder'):
                with open(f'{lock}/{name}', 'w', encoding='utf-8') as file:
                    file.write(state.partition(':')[2])
        # flock(1) cannot know a local file.
        started = {name: programs.run_line(text, root, **options) for name, text, _ in lines()
                   if not (state.startswith('local') and text.startswith('flock'))}
        programs.end_lines(started, state)
        programs.end({name: programs.start(name, lock, **options) for name in COMMANDS}, state,
                     lambda name, state=state: DENIED if state == 'no permission' and name in SEE_ERRNO else BROKEN)
    programs.end({name: programs.start(name, mount.path('nightly'), wait='30') for name in ('deploy.sh', 'licence.sh')},
                 'a time without a unit', lambda name: BROKEN)


def is_busy(mount, programs):
    other = mount.take('nightly').held()
    programs.end({name: programs.start(name, mount.path('nightly')) for name in COMMANDS if name not in WAIT},
                 'busy', lambda name: BUSY)
    for name, text, status in lines():
        if status is not None:
            process = programs.run_line(text, mount.directory)
            out, err = process.communicate(timeout=WAIT_SECONDS)
            check_equal(process.returncode, status, f'{name}, busy: {out}{err}')
    programs.gate.nobody('busy')
    other.release()
    queued(mount, 'nightly', 0)


def ensemble_away(server, mount, programs):
    """Before the mount knows it, and when it does."""
    server.freeze()
    for wait in ('0s', '3s'):
        programs.end({name: programs.start(name, mount.path('nightly'), wait) for name in COMMANDS if name not in WAIT},
                     f'the ensemble is away, {wait}', lambda name: BROKEN)
    programs.end_lines({name: programs.run_line(text, mount.directory) for name, text, status in lines()
                        if status is not None}, 'the ensemble is away')
    server.thaw()
    mount.ready()
    queued(mount, 'nightly', 0)


def test(case):
    server = case.server()
    mount = case.mount(server, 'a')
    mount.mkdir('nightly')
    gate = Gate(case)
    gate.tool('backup', f'exec {sys.executable} {HERE}/visitor.py {gate.path} backup')
    programs = Programs(case, gate)
    is_busy(mount, programs)
    are_broken(case, mount, programs)
    ensemble_away(server, mount, programs)


run(test)
