#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The programs of zklockfs-idioms(7), cut out of the page. Each one waits for the lock, shows its
reason, runs its command, and gives the lock back. It never runs the command without the lock: not
where nothing is mounted, not where there is no such lock. The test also shows who keeps the lock
when the program is killed, and that a program that asks at the end learns of a loss."""

import errno
import os
import re
import shutil
import subprocess
import sys

from gate import HERE, Gate, check, check_equal, evict, finished, queued, spawn, until
from harness import go_build, run

PAGE = os.path.join(HERE, '..', '..', 'fs', 'zklockfs-idioms.7.scd')
# Where the descriptor goes on to the command, which then keeps the lock.
INHERITED = {'sh', 'zsh', 'fish'}
# tests/run installs all but these.
OPTIONAL = {'Rust'}

# What runs the programs of a section; {} is the file, named as it says.
RUNNERS = {
    'sh': ('program.sh', ['bash {}', 'dash {}', 'busybox sh {}']),
    'zsh': ('program.zsh', ['zsh -f {}']),
    'fish': ('program.fish', ['fish --no-config {}']),
    'Python': ('program.py', ['python3 {}']),
    'Perl': ('program.pl', ['perl {}']),
    'Ruby': ('program.rb', ['ruby {}']),
    'PHP': ('program.php', ['php {}']),
    'Node.js': ('program.js', ['node {}']),
    'Java': ('Deploy.java', ['java -XX:TieredStopAtLevel=1 -XX:-UsePerfData {}']),
    'Go': ('program.go', ['go build -o {}.bin {}']),
    'Rust': ('program.rs', ['rustc -o {}.bin {}']),
    'C': ('program.c', ['cc -o {}.bin {}']),
}


def programs():
    """The section's name and its program, for each section of PROGRAMS."""
    with open(PAGE, encoding='utf-8') as page:
        text = re.search(r'^# PROGRAMS\n(.*?)^# ', page.read(), re.MULTILINE | re.DOTALL).group(1)
    return re.findall(r'^## (\S+)\n.*?^```\n(.*?)^```\n', text, re.MULTILINE | re.DOTALL)


class Program:
    """One program, made to use the locks of that directory."""

    def __init__(self, case, section, text, locks):
        check('/mnt/locks' in text, f'{section} names the lock')
        file, commands = RUNNERS[section]
        directory = os.path.join(case.directory, section)
        os.mkdir(directory)
        path = os.path.join(directory, file)
        with open(path, 'w', encoding='utf-8') as source:
            source.write(text.replace('/mnt/locks', locks))
        self.commands = [words.replace('{}', path).split() for words in commands]
        if '.bin' in commands[0]:
            if section == 'Go':
                go_build(case, path + '.bin', path)
            else:
                subprocess.run(self.commands[0], check=True)
            self.commands = [[path + '.bin']]


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    a.mkdir('build')
    until(lambda: 'build' in b.locks(), 'b sees the lock')
    gate = Gate(case)
    locks = case.directory + '/locks'
    empty, local = case.directory + '/empty', case.directory + '/local'
    os.mkdir(empty)
    os.makedirs(local + '/build')

    tools = os.path.join(case.directory, 'tools')
    os.mkdir(tools)
    with open(tools + '/make', 'w', encoding='utf-8') as make:
        make.write(f'#!/bin/sh\nexec {sys.executable} {HERE}/visitor.py {gate.path} "$1"\n')
    os.chmod(tools + '/make', 0o755)
    environ = {**os.environ, 'PATH': tools + ':' + os.environ['PATH']}

    def start(command, root):
        if os.path.islink(locks):
            os.unlink(locks)
        os.symlink(root, locks)
        return spawn(command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE, text=True)

    def fails(process, what):
        process.communicate(timeout=20)
        check(process.returncode > 0, f'{process.args}: {process.returncode} {what}')

    def takes_and_gives_back(command):
        process = start(command, a.directory)
        visitor = gate.arrived('deploy')
        queued(b, 'build', 1, 1)
        until(lambda: 'reason=deploying v42' in b.read('build', 'holder'), f'the reason of {command}')
        b.take('build', 'try').refused(errno.EAGAIN)
        visitor.let(0)
        finished(process, 0, command)
        queued(b, 'build', 0)

    def waits(command):
        other = b.take('build').held()
        process = start(command, a.directory)
        queued(b, 'build', 2, 1)
        gate.nobody(command)
        other.release()
        gate.arrived('deploy').let(3)
        fails(process, 'when its command fails')
        queued(b, 'build', 0)

    def is_killed(command, inherited):
        with start(command, a.directory) as process:
            visitor = gate.arrived('deploy')
            queued(b, 'build', 1, 1)
            process.kill()
            process.wait()
            if inherited:
                b.take('build', 'try').refused(errno.EAGAIN)
                visitor.let(0)
            queued(b, 'build', 0)
            if not inherited:
                visitor.let(0)

    def loses(command):
        process = start(command, a.directory)
        visitor = gate.arrived('deploy')
        queued(b, 'build', 1, 1)
        evict(b, 'build')
        queued(b, 'build', 0)
        visitor.let(0)
        fails(process, 'when the lock was lost')

    def does_nothing(command, root):
        fails(start(command, root), f'in {root}')
        gate.nobody(f'{command} in {root}')

    check_equal([section for section, _ in programs()], list(RUNNERS), 'the programs of the page')
    for section, text in programs():
        names = [words.split()[0] for words in RUNNERS[section][1]]
        if not all(map(shutil.which, names)):
            check(section in OPTIONAL, f'{names} are not installed')
            continue
        for command in Program(case, section, text, locks).commands:
            takes_and_gives_back(command)
            waits(command)
            is_killed(command, section in INHERITED)
            loses(command)
            does_nothing(command, empty)
            for words in ('', 'deploying v41\n'):    # as a local file may have of an earlier run
                with open(local + '/build/lock', 'w', encoding='utf-8') as file:
                    file.write(words)
                does_nothing(command, local)
        print('tried', section, *names)


run(test)
