#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""leader.py and leader.c: one leads, and steps down when it has lost the lock, before
another one leads; with --yield also when it is wanted. No command is left alone: it gets
SIGTERM with its leader, and dies with it."""

import os
import re

from gate import Gate, evict, path
from harness import Stopwatch, check, check_equal, command, run, spawn, until


class Hosts:
    """The same program on two mounts; what it says goes to files."""

    def __init__(self, case, gate, server, program, polite):
        self.case, self.gate, self.server, self.program, self.polite = case, gate, server, program, polite
        self.mounts = {name: case.mount(server, name, session='6s') for name in ('a', 'b')}
        for mount in self.mounts.values():
            mount.allow('.')
        self.mounts['a'].mkdir('lead')
        self.started = 0

    def start(self, name, polite=False):
        self.started += 1
        log = os.path.join(self.case.directory, f'leader{self.started}')
        with open(log, 'w', encoding='ascii') as out:
            process = spawn([*self.program, *([self.polite, '1'] if polite else []),
                             self.mounts[name].path('lead'), *self.gate.visitor(name)], stdout=out)
        process.said = lambda: open(log, encoding='ascii').read()   # noqa: SIM115
        return process

    def queue(self, count):
        until(lambda: len(self.server.entries('lead')) == count, f'{count} in the queue')


def loses(hosts, gate):
    one = hosts.start('a')
    leading = gate.arrived('a')
    other = hosts.start('b')
    hosts.queue(2)
    tokens = [int(leading.environ['TOKEN'])]
    check_equal(one.said(), f'leading with token {tokens[0]}\n', 'it leads')

    # Evicted: its command ends, the next one leads, and it queues again.
    evict(hosts.mounts['b'], 'lead')
    leading.gone()
    leading = gate.arrived('b')
    until(lambda: 'stepped down: lost\n' in one.said(), 'it notices')
    hosts.queue(2)
    tokens.append(int(leading.environ['TOKEN']))

    # No contact: before the session can have ended.
    hosts.server.freeze()
    watch = Stopwatch()
    leading.gone()
    watch.check(1, 7, 'a leader without contact stops its command')
    until(lambda: 'stepped down: lost\n' in other.said(), 'it notices')
    hosts.server.thaw()
    leading = gate.arrived()
    tokens.append(int(leading.environ['TOKEN']))
    check(tokens == sorted(set(tokens)), f'tokens: {tokens}')

    # Killed alone: its command dies with it, and the other leads.
    hosts.queue(2)
    first, second = (one, other) if leading.name == 'a' else (other, one)
    first.kill()
    first.wait()
    leading.gone()
    leading = gate.arrived('b' if leading.name == 'a' else 'a')

    # Stopped, as a supervisor does it: its command, too, and then it ends itself.
    third = hosts.start('a')
    hosts.queue(2)
    second.terminate()
    leading.gone()
    check_equal(second.wait(60), 143, 'status of a command that was stopped')
    leading = gate.arrived('a')
    second = third

    # The command ends by itself, and by a signal.
    leading.let(5)
    check_equal(second.wait(60), 5, 'status of the command')
    third = hosts.start('a')
    leading = gate.arrived('a')
    os.kill(leading.pid, 9)
    check_equal(third.wait(60), 137, 'status of a command that was killed')
    hosts.queue(0)


def yields(hosts, gate):
    polite = hosts.start('a', polite=True)
    leading = gate.arrived('a')
    watch = Stopwatch()
    other = hosts.start('b', polite=True)

    def terms(name, process):
        """As they say it: a command may be stopped before it has come to the gate."""
        return [(int(token), name) for token in re.findall(r'leading with token (\d+)\n', process.said())]
    until(lambda: len(terms('b', other)) == 2, 'the other one leads again')
    watch.check(2, 20, 'three terms')
    tokens, names = zip(*sorted(terms('a', polite) + terms('b', other)))
    check_equal(len(set(tokens)), len(tokens), 'each has a token of its own')
    # The first one may lead again before the other one has come.
    first = names.index('b') - 1
    check_equal(names[first:first + 4], ('a', 'b', 'a', 'b'), 'they take turns')
    for process in (polite, other):
        process.kill()
        process.wait()
    leading.gone()
    gate.close()
    hosts.queue(0)
    check('stepped down: wanted by others\n' in polite.said(), polite.said())
    check('lost' not in polite.said() + other.said(), 'it was lost')


def test(case):
    binary = os.path.join(case.directory, 'leader')
    status, _, err = command(['cc', '-Wall', '-Wextra', '-Werror', '-o', binary, path('leader.c')])
    check_equal((status, err), (0, ''), 'cc')
    for program, polite in (([path('leader.py')], '--yield'), ([binary], '-y')):
        gate = Gate(case)
        hosts = Hosts(case, gate, case.server(tick_ms=500), program, polite)
        loses(hosts, gate)
        yields(hosts, gate)


run(test)
