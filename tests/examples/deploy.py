#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""deploy.sh: one at a time; who has lost the lock meanwhile is refused by fenced-store.py,
and is not told that it was a success."""

import os
import sqlite3

from gate import Gate, at_once, evict, example, finished, path, queued
from harness import check, check_equal, run, shells, until

WRITE = 'fenced-store.py "$DB" put "$TOKEN" current "$VERSION"'


def deployments(gate, a, b, shell, store):
    here, there = a.path('deploy'), b.path('deploy')
    environ = {'DB': store, 'PATH': os.path.dirname(path('deploy.sh')) + ':' + os.environ['PATH']}

    def shown():
        status, out, err = at_once('fenced-store.py', store, 'show', 'current')
        check_equal(status, 0, err)
        return out.strip()

    def deploy(where, version, *command, **more):
        return example('deploy.sh', where, version, *command, shell=shell, **environ, **more)

    def visit(version, before='', after=''):
        return 'sh', '-c', f'{before or ":"} && "$@" && {after or ":"}', 'sh', *gate.visitor(version)

    # One waits for the other, knows why, and has the higher token.
    first = deploy(here, 'v1', *visit('v1', after=WRITE))
    visitor = gate.arrived('v1')
    until(lambda: 'reason=deploying v1\n' in b.read('deploy', 'holder'), 'the reason')
    second = deploy(there, 'v2', *visit('v2', after=WRITE))
    queued(a, 'deploy', 2)
    check_equal(at_once('deploy.sh', there, 'v3', 'true', shell=shell, WAIT='0s')[0], 75, 'no time to wait')
    tokens = [int(visitor.environ['TOKEN'])]
    visitor.let()
    out, _ = finished(first, 0, 'the first')
    check_equal(out, f'deployed v1 with token {tokens[0]}\n', 'the first says')
    visitor = gate.arrived('v2')
    tokens.append(int(visitor.environ['TOKEN']))
    check(tokens[0] < tokens[1], f'tokens: {tokens}')
    check_equal((visitor.environ['VERSION'], shown()), ('v2', 'v1'), 'between the two')

    # The second loses the lock in the middle of it; the third is done before it goes on.
    third = deploy(here, 'v3', *visit('v3', after=WRITE))
    queued(a, 'deploy', 2)
    evict(a, 'deploy')
    gate.arrived('v3').let()
    finished(third, 0, 'the third')
    check_equal(shown(), 'v3', 'the third has written')
    visitor.let()
    out, err = finished(second, 1, 'the second, which is late')
    check(f'refused: token {tokens[1]} is older than' in err and 'deployed' not in out, f'{out}{err}')
    check('deploy/holder' not in err and 'reason=deploying v1' in out, 'what the second has said')
    check_equal(shown(), 'v3', 'the late one was refused')

    # Lost after all was written: it does not say that it went well.
    fourth = deploy(here, 'v4', *visit('v4', before=WRITE))
    visitor = gate.arrived('v4')
    check_equal(shown(), 'v4', 'it was the holder')
    evict(b, 'deploy')
    until(lambda: not a.queue('deploy'), 'the lock has gone')
    visitor.let()
    out, err = finished(fourth, 74, 'the fourth, which has lost')
    check('deployed' not in out and 'the lock was lost' in err, f'{out}{err}')

    # Before it began.
    check_equal(finished(deploy(here, 'v5', 'sh', '-c', 'exit 9'), 9, 'the command fails')[0], '', 'says')


def the_store(case):
    store = os.path.join(case.directory, 'store')

    def ask(wanted, *words):
        status, out, err = at_once('fenced-store.py', store, *words)
        check_equal((status, out), wanted, f'{words}: {err}')
        check(('refused' in err) == (status == 1), err)

    ask((0, ''), 'put', '5', 'a', 'five')
    ask((0, ''), 'put', '5', 'b', 'again')
    ask((1, ''), 'put', '4', 'a', 'four')
    ask((0, ''), 'put', '4294967301', 'a', 'more')
    ask((1, ''), 'put', '5', 'a', 'five')
    ask((0, 'more\n'), 'show', 'a')
    ask((1, ''), 'get', '5', 'a')
    ask((0, 'more\n'), 'get', '4294967302', 'a')
    ask((1, ''), 'put', '4294967301', 'a', 'a client that has read before')
    ask((0, 'more\n'), 'show', 'a')
    with sqlite3.connect(store) as db:
        check_equal(db.execute('SELECT * FROM texts WHERE key = ?', ('a',)).fetchall(),
                    [('a', 'more', 4294967301)], 'what stands there')


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    for mount in (a, b):
        mount.allow('evicted|lost')
    a.mkdir('deploy')
    gate = Gate(case)
    for number, shell in enumerate(shells()):
        deployments(gate, a, b, shell, os.path.join(case.directory, f'releases{number}'))
    the_store(case)


run(test)
