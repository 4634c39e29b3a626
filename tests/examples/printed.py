# SPDX-License-Identifier: MIT
"""printed.py - what the tests of printed programs share: the programs, cut out of the pages as man(1) shows them, and
how each is compiled and run. Each has a lock of its own, so all of them do a step at the same time.

    jobs = [Printed(case, gate, language, language, text, command) ...]
    does_nothing(case, gate, mount, jobs)      in each state in which there is no lock
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys

from gate import HERE, broken, check, check_equal, queued, spawn, until
from harness import WAIT_SECONDS, go_build

TOP = os.path.join(HERE, '..', '..')
sys.path.insert(0, os.path.join(TOP, 'tests', 'style'))

from manual import by_man, indented, made

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
    'Java': ('{class}.java', 'javac {}', ['java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -cp {directory} {class}']),
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


def shown(page):
    """The page as man(1) shows it: fs/pages/zklockfs.5.md."""
    return by_man(made(TOP, page))


def programs(name):
    """Language and program, for each of that section of zklockfs-idioms(7)."""
    text = shown('fs/pages/zklockfs-idioms.7.md')
    section = re.search(rf'^{name}\n(.*?)^(?=\S)', text, re.MULTILINE | re.DOTALL).group(1)
    return [(language, indented(body)[0])
            for language, body in re.findall(r'^ {3}(\S+)\n(.*?)(?=^ {3}\S|\Z)', section, re.MULTILINE | re.DOTALL)]


def blocks(page):
    """The scripts of another page that take a lock."""
    return [text for text in indented(shown(f'fs/pages/{page}')) if 'command exec 9<>' in text]


def table(page, section):
    """The rows of a section's first table, without its head."""
    part = read(page).split(f'# {section}\n')[1].split('\n#')[0].replace('`', '')
    return [line.strip('| ').split(' | ') for line in re.findall(r'^\|.*', part, re.MULTILINE)][2:]


def crontab():
    """The lines for crontab(5) that any page prints."""
    texts = [read('README.md'), read('examples', 'cron-once.sh')]
    texts += [shown(f'fs/pages/{name}') for name in os.listdir(os.path.join(TOP, 'fs/pages')) if name.endswith('.md')]
    return sorted({line for text in texts for line in re.findall(r'^[# ]*0 3 \* \* \*  ?root  ?((?:flock|zklock) .*)$',
                                                                 text, re.MULTILINE)})


class Printed:
    """One program, with one of its runners and a lock of its own in the directory `locks`, a link."""
    count = 0

    def __init__(self, case, gate, origin, language, text, command, service=False):
        Printed.count += 1
        self.gate, self.service, self.command = gate, service, command
        self.name, self.lock = f'{origin}, {command.split()[0]}', f'build{Printed.count}'
        self.exact, self.inherited = language in EXACT, language in INHERITED
        check('/mnt/locks/build/' in text, f'{origin} names the lock')
        directory = f'{case.directory}/program{Printed.count}'
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
        def in_the_call(pid):
            for task in os.scandir(f'/proc/{pid}/task'):
                with open(task.path + '/wchan', encoding='ascii') as wchan:
                    if 'request_wait_answer' in wchan.read():
                        return True
                with open(task.path + '/children', encoding='ascii') as children:
                    if any(map(in_the_call, children.read().split())):
                        return True
            return False

        def there():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                return in_the_call(self.process.pid) or self.process.poll() is not None
            return False
        until(there, f'{self.name} waits')


def runnable(origin, language, command):
    needed = (RUNNERS[language][1] or command).split()[0]
    if shutil.which(needed):
        return True
    check(language in OPTIONAL, f'{needed} is not installed')
    print(f'NOT RUN: {origin}: there is no {needed}')
    return False


def cast(case, gate, texts, service=False):
    """Those of (origin, language, program, command) that can be run here."""
    gate.tool('make', f'exec {sys.executable} {HERE}/visitor.py {gate.path} "$ACTOR"')
    gate.tool('slow-daemon', 'exit 0')
    return [Printed(case, gate, origin, language, text, command, service)
            for origin, language, text, command in texts if runnable(origin, language, command)]


def know_the_locks(actors, first, *mounts):
    for actor in actors:
        first.mkdir(actor.lock)
    for mount in (first, *mounts):
        mount.watched = False   # so many programs start at a time
        until(lambda mount=mount: {actor.lock for actor in actors} <= set(mount.locks()), 'all see the locks')


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
