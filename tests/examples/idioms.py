#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every program that a page prints: the jobs and services of zklockfs-idioms(7), and the scripts of
the main README, of zklockfs(5) and of examples/kubernetes. Each waits for its lock, does its work,
and gives the lock back. None works without the lock: not while somebody else has it, not where nothing
is mounted, the daemon is dead, the name is wrong, the user may not, or the ensemble is away; and then
it ends with the status of zklockfs-idioms(7) and a word on stderr. None misses a loss.

All of them do each step at the same time, each with a lock of its own."""

import errno
import os
import re
import shutil
import subprocess
import sys

from gate import HERE, Gate, broken, check, check_equal, evict, queued, spawn, until
from harness import WAIT_SECONDS, go_build, run

TOP = os.path.join(HERE, '..', '..')
BROKEN, LOST, BUSY = 69, 74, 75
FAILED = 3
# What runs the programs of a section: the file's name, what compiles it, and the commands.
RUNNERS = {
    'sh': ('program.sh', '', ['bash {}', 'dash {}', 'busybox sh {}']),
    'zsh': ('program.zsh', '', ['zsh -f {}']),
    'fish': ('program.fish', '', ['fish --no-config {}']),
    'Python': ('program.py', '', ['python3 {}']),
    'Perl': ('program.pl', '', ['perl {}']),
    'Ruby': ('program.rb', '', ['ruby {}']),
    'PHP': ('program.php', '', ['php {}']),
    'Node.js': ('program.js', '', ['node {}']),
    'Java': ('{class}.java', 'javac {}', ['java -XX:TieredStopAtLevel=1 -XX:-UsePerfData -cp {directory} {class}']),
    'Go': ('program.go', 'go {}', ['{}.bin']),
    'Rust': ('program.rs', 'rustc -o {}.bin {}', ['{}.bin']),
    'C': ('program.c', 'cc -pthread -Wall -Wextra -Werror -o {}.bin {}', ['{}.bin']),
}
# Where the descriptor goes on to the command, which then keeps the lock.
INHERITED = {'sh', 'zsh', 'fish'}
# Those with a status of their own for each case; all others end by an exception.
EXACT = {'sh', 'zsh', 'fish', 'PHP', 'C'}
# tests/run installs all but these.
OPTIONAL = {'Rust'}


def read(*parts):
    with open(os.path.join(TOP, *parts), encoding='utf-8') as file:
        return file.read()


def section(text, name):
    return re.search(rf'^# {name}\n(.*?)^# ', text, re.MULTILINE | re.DOTALL).group(1)


def programs(name):
    """Language and program, for each of that section of zklockfs-idioms(7)."""
    return re.findall(r'^## (\S+)\n.*?^```\n(.*?)^```\n', section(read('fs', 'zklockfs-idioms.7.scd'), name),
                      re.MULTILINE | re.DOTALL)


def scripts():
    """The same script where else it is printed."""
    readme = re.search(r'^((?:    .*\n)*    command exec.*\n(?:    .*\n)*)', read('README.md'), re.MULTILINE).group(1)
    yield 'README', re.sub('^    ', '', readme, flags=re.MULTILINE)
    yield 'zklockfs(5)', re.search(r'^```\n(command exec.*?)^```\n', section(read('fs', 'zklockfs.5.scd'), 'THE IDIOM'),
                                   re.MULTILINE | re.DOTALL).group(1)
    job = re.search(r'^( *)command exec.*?(?=^ *securityContext)', read('examples', 'kubernetes', 'job.yaml'),
                    re.MULTILINE | re.DOTALL)
    job = re.sub('^' + job.group(1), '', job.group(0), flags=re.MULTILINE).replace('/mnt/zklockfs/locks', '/mnt/locks')
    check('echo "here the work is done' in job, 'what the job does')
    yield 'job.yaml', job.replace('echo "here the work is done', 'make deploy || exit; echo "')


class Actor:
    """One program, with one of its runners and a lock of its own in the directory `locks`, a link."""
    count = 0

    def __init__(self, case, gate, origin, language, text, command, service=False):
        Actor.count += 1
        self.gate, self.service, self.command = gate, service, command
        self.name, self.lock = f'{origin}, {command.split()[0]}', f'build{Actor.count}'
        self.exact, self.inherited = language in EXACT, language in INHERITED
        check('/mnt/locks/build/' in text, f'{origin} names the lock')
        directory = f'{case.directory}/program{Actor.count}'
        os.mkdir(directory)
        self.locks = directory + '/locks'
        names = {'class': (re.search(r'class (\w+)', text) or ('', ''))[1], 'directory': directory}
        file, compiler, _ = RUNNERS[language]
        path = f'{directory}/{file.format(**names)}'
        with open(path, 'w', encoding='utf-8') as source:
            source.write(text.replace('/mnt/locks/build', f'{self.locks}/{self.lock}'))
        if language == 'Go':
            go_build(case, path + '.bin', path)
        elif compiler:
            subprocess.run(compiler.replace('{}', path).split(), check=True)
        self.words = command.replace('{}', path).format(**names).split()

    def start(self, root, **options):
        if os.path.islink(self.locks):
            os.unlink(self.locks)
        os.symlink(root, self.locks)
        environ = {**os.environ, 'PATH': f'{self.gate.tools}:{os.environ["PATH"]}', 'ACTOR': self.name}
        self.process = spawn(self.words, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, **options)

    def ends(self, status, what):
        """With that status, or else by an exception; with a word, unless a command has failed."""
        out, err = self.process.communicate(timeout=WAIT_SECONDS)
        got, what = self.process.returncode, f'{self.name}, {what}: '
        if status != FAILED and self.exact or status == LOST and self.service:
            check_equal(got, status, f'{what}{out}{err}')
        check((got > 0) == (status > 0) and got != BUSY, f'{what}{got} {out}{err}')
        check(status in (0, FAILED) or err, f'{what}not a word on stderr')
        return out

    def leads(self):
        line = self.process.stdout.readline()
        check(re.fullmatch(r'leading with token [0-9]+\n', line), f'{self.name}: {line!r}')

    def queued(self, mount, count, held):
        if self.process.poll() is not None:
            raise AssertionError(f'{self.name} has ended: {self.process.communicate()}')
        queued(mount, self.lock, count, held)

    def waits(self):
        """It is in its open, or has ended."""
        def there():
            tasks = f'/proc/{self.process.pid}/task'
            try:
                for task in os.listdir(tasks):
                    with open(f'{tasks}/{task}/wchan', encoding='ascii') as wchan:
                        if 'request_wait_answer' in wchan.read():
                            return True
            except FileNotFoundError:
                pass
            return self.process.poll() is not None
        until(there, f'{self.name} waits')


def cast(case, gate):
    """All programs, or those that can be run here."""
    jobs, services = programs('PROGRAMS'), programs('SERVICES')
    check_equal([language for language, _ in jobs], list(RUNNERS), 'the programs of the page')
    check_equal([language for language, _ in services], list(RUNNERS)[3:], 'the services of the page')
    texts = [(language, language, text, False) for language, text in jobs]
    texts += [(origin, 'sh', text, False) for origin, text in scripts()]
    texts += [(f'service in {language}', language, text, True) for language, text in services]
    for origin, language, text, service in texts:
        _, compiler, commands = RUNNERS[language]
        needed = [compiler.split()[0]] if compiler else [command.split()[0] for command in commands]
        if all(map(shutil.which, needed)):
            for command in commands:
                yield Actor(case, gate, origin, language, text, command, service)
        else:
            check(language in OPTIONAL, f'{needed} are not installed')
            print(f'NOT RUN: {origin}: there is no {needed[0]}')


def arrived(gate, actors):
    """The visitor of each, in the order of the actors."""
    visitors = {}
    for _ in actors:
        visitor = gate.arrived()
        check(visitor.name not in visitors, f'{visitor.name} came twice')
        visitors[visitor.name] = visitor
    return [visitors[actor.name] for actor in actors]


def takes_and_gives_back(gate, a, b, jobs):
    for actor in jobs:
        actor.start(a.directory)
    for actor, visitor in zip(jobs, arrived(gate, jobs)):
        actor.queued(b, 1, 1)
        until(lambda actor=actor: 'reason=deploying' in b.read(actor.lock, 'holder'), f'the reason of {actor.name}')
        b.take(actor.lock, 'try').refused(errno.EAGAIN)
        visitor.let(0)
    for actor in jobs:
        actor.ends(0, 'all is well')
        queued(b, actor.lock, 0)


def waits(gate, a, b, jobs, services):
    others = {actor: b.take(actor.lock).held() for actor in jobs + services}
    for actor in others:
        actor.start(a.directory)
    for actor in others:
        actor.queued(b, 2, 1)
    gate.nobody('somebody else has the lock')
    for other in others.values():
        other.release()
    for actor, visitor in zip(jobs, arrived(gate, jobs)):
        visitor.let(FAILED)
        actor.ends(FAILED, 'its command fails')
    for actor in jobs:
        queued(b, actor.lock, 0)
    for actor in services:
        actor.leads()


def loses(gate, a, b, jobs, services):
    """The services lead already."""
    for actor in jobs:
        actor.start(a.directory)
    for actor, visitor in zip(jobs + services, arrived(gate, jobs) + [None] * len(services)):
        evict(b, actor.lock)
        queued(b, actor.lock, 0)
        if visitor:
            visitor.let(0)
    for actor in jobs + services:
        check('deployed' not in actor.ends(LOST, 'the lock was lost'), f'{actor.name} calls it a success')


def is_killed(gate, a, b, jobs, services):
    for actor in jobs + services:
        actor.start(a.directory)
    for actor in services:
        actor.leads()
    for actor, visitor in zip(jobs + services, arrived(gate, jobs) + [None] * len(services)):
        actor.process.kill()
        actor.process.communicate() if not visitor else actor.process.wait()
        if actor.inherited:
            b.take(actor.lock, 'try').refused(errno.EAGAIN)
            visitor.let(0)
        queued(b, actor.lock, 0)
        if visitor and not actor.inherited:
            visitor.let(0)


def does_nothing(case, gate, a, actors):
    for state, root, user in broken(case, a):
        options = {'user': user, 'group': user, 'extra_groups': []} if user else {}
        for actor in actors:
            local = f'{root}/{actor.lock}'
            if state.startswith('local'):
                os.makedirs(local)
                with open(local + '/lock', 'w', encoding='utf-8') as file:
                    file.write(state.partition(':')[2])
            actor.start(root, **options)
        for actor in actors:
            check('leading' not in actor.ends(BROKEN, state), f'{actor.name} leads, {state}')
        gate.nobody(state)


def ensemble_away(gate, server, a, c, jobs, services):
    """Who waits goes on when the ensemble is back; who leads ends before another one can."""
    for actor in services:
        actor.start(c.directory)
    for actor in services:
        actor.leads()
    server.freeze()
    for actor in jobs:
        actor.start(a.directory)
    for actor in jobs:
        actor.waits()
    for actor in services:
        actor.ends(LOST, 'the ensemble is away')
    gate.nobody('the ensemble is away')
    server.thaw()
    waiting = []
    for actor in jobs:
        if actor.process.poll() is None:
            waiting.append(actor)
        else:
            actor.ends(BROKEN, 'the ensemble is away')
    check(len(waiting) > len(jobs) / 2, f'only these have waited: {waiting}')
    for visitor in arrived(gate, waiting):
        visitor.let(0)
    for actor in waiting:
        actor.ends(0, 'the ensemble is back')


def test(case):
    server = case.server(tick_ms=500)
    a, b, c = case.mount(server, 'a'), case.mount(server, 'b'), case.mount(server, 'c', session='6s')
    gate = Gate(case)
    gate.tool('make', f'exec {sys.executable} {HERE}/visitor.py {gate.path} "$ACTOR"')
    gate.tool('slow-daemon', 'exit 0')
    actors = list(cast(case, gate))
    jobs = [actor for actor in actors if not actor.service]
    services = [actor for actor in actors if actor.service]
    for actor in actors:
        a.mkdir(actor.lock)
        for mount in (b, c):
            until(lambda actor=actor, mount=mount: actor.lock in mount.locks(), 'all see the lock')
    takes_and_gives_back(gate, a, b, jobs)
    waits(gate, a, b, jobs, services)
    loses(gate, a, b, jobs, services)
    is_killed(gate, a, b, jobs, services)
    does_nothing(case, gate, a, actors)
    ensemble_away(gate, server, a, c, jobs, services)
    print('tried', *(actor.name for actor in actors), sep='\n')


run(test)
