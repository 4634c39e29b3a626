#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""zklock --make: a lock that is not there is created, by many at once from two mounts, and while others remove it."""

import os
import re
import stat

from gate import Gate, finished, queued
from harness import ALICE, check, check_equal, command, run, spawn, until
from locking import ZKLOCK, check_run, environment, free, start, zklock

CROWD = 12


def like_mkdir(case, a, b):
    """Owner and modes of each directory are those of mkdir -p -m, whoever creates them."""
    a.mkdir('open')
    os.chmod(a.path('open'), 0o777)
    until(lambda: 'open' in b.locks(), 'the other mount sees it')
    for number, (mask, mode, user) in enumerate(((0o22, None, 0), (0o77, None, 0), (0o22, '770', 0), (0o27, '777', ALICE),
                                                 (0o777, '0', 0))):
        one, other = f'open/x{number}/deep/one', f'open/y{number}/deep/one'
        options = {'user': user, 'group': user, 'extra_groups': []} if user else {}
        words = ['-m', mode] if mode else []
        status, _, err = command(['sh', '-c', 'umask "$1"; shift; exec "$@"', 'sh', f'{mask:o}',
                                  'mkdir', '-p', *words, b.path(other)], **options)
        check_equal((status, err), (0, ''), 'mkdir -p')
        options.update(env=environment(a))
        words = ['--mode', mode] if mode else []
        # Who may not take it, or not list what is above, has created it all the same.
        command(['sh', '-c', 'umask "$1"; shift; exec "$@"', 'sh', f'{mask:o}', ZKLOCK, '--make', *words, one, '--', 'true'],
                **options)
        for depth in range(2, 5):
            found = [os.stat(a.path(*path.split('/')[:depth])) for path in (one, other)]
            check_equal(*[(stat.S_IMODE(of.st_mode), of.st_uid, of.st_gid) for of in found],
                        f'umask {mask:o}, mode {mode}, {depth} deep')
    # One that is there is left as it is.
    a.mkdir('there', 0o750)
    check_run(a, ['--make', '--mode', '777', 'there', '--', 'true'], 0, 'a lock that is there')
    check_equal(stat.S_IMODE(os.stat(a.path('there')).st_mode), 0o750, 'its mode')


def crowd(case, a, b):
    """All hosts ask at once, for a lock whose parents are missing, too; and nobody is in the other's way."""
    counter = case.directory + '/counter'
    with open(counter, 'w', encoding='ascii') as file:
        file.write('0')
    script = 'n=$(cat "$1"); echo "${ZKLOCK_TOKEN:?}" >>"$1.tokens"; echo $((n + 1)) >"$1"'
    makers = [start(mount, '--make', f'fleet/{name}/nightly', '--', 'sh', '-c', script, 'sh', counter)
              for name in ('r1', 'r1', 'r1') for mount in (a, b) * (CROWD // 6)]
    for maker in makers:
        finished(maker, 0, 'one of a crowd of makers')
    with open(counter, encoding='ascii') as file:
        check_equal(file.read().strip(), str(len(makers)), 'no two held it at once')
    with open(counter + '.tokens', encoding='ascii') as file:
        tokens = [int(token) for token in file]
    check_equal(tokens, sorted(set(tokens)), 'their tokens')


def removed_meanwhile(case, a, b):
    """Each removes the lock behind it, and the next one creates it: no two at once, and nobody fails."""
    counter = case.directory + '/removed'
    with open(counter, 'w', encoding='ascii') as file:
        file.write('0')
    script = ('n=0; while [ $n -lt 15 ]; do "$1" --make orders/42 "svc$2" -- sh -c \'n=$(cat "$1"); echo $((n + 1)) >"$1"\' '
              'sh "$3" || exit; rmdir "$4" 2>/dev/null; n=$((n + 1)); done')
    users = [spawn(['sh', '-c', script, 'sh', ZKLOCK, name, counter, mount.path('orders', '42')], env=environment(mount))
             for mount, name in ((a, 'a'), (a, 'b'), (b, 'a'), (b, 'b'))]
    for user in users:
        check_equal(user.wait(300), 0, 'one that removes and creates')
    with open(counter, encoding='ascii') as file:
        check_equal(file.read().strip(), '60', 'no two held it at once')


def semaphore(gate, a, b):
    """All create it with three slots, so three run, whoever was the first."""
    words = ['--make', '--slots', '3', 'pool', '--', *gate.visitor()]
    jobs = [start(mount, *words) for mount in (a, b) * 3]
    inside = [gate.arrived() for _ in range(3)]
    queued(a, 'pool', 6, held=3)
    gate.nobody('a fourth one')
    for _ in range(3):
        inside.pop(0).let()
        inside.append(gate.arrived())
    for visitor in inside:
        visitor.let()
    for job in jobs:
        finished(job, 0, 'a user of the semaphore')
    check_equal(a.read('pool', 'slots'), '3\n', 'slots')
    check_run(b, ['--make', '--slots', '4', 'pool', '--', 'true'], 64, 'other slots', f'the lock has 3 slots, and --slots says 4; its owner can change the lock: echo 4 >{b.path("pool", "slots")}\n')
    check_equal(a.read('pool', 'slots'), '3\n', 'slots')
    check_run(b, ['--make', 'pool', '--', 'true'], 0, 'whatever slots it has')
    check_run(b, ['--make', 'alone', '--', 'true'], 0, 'a lock of one slot')
    check_run(b, ['--make', '--slots', '2', 'alone', '--', 'true'], 64, 'other slots', 'the lock has 1 slot, and --slots says 2;')


def without(a):
    """What a lock that is missing is told with creates it."""
    for lock in ('team/report', 'a $(b) c'):
        _, _, err = zklock(a, lock, '--', 'true')
        line = re.search(r': no such lock; this creates it: (mkdir -p .*), or zklock --make$', err, re.MULTILINE)[1]
        check_equal(command(['sh', '-c', line]), (0, '', ''), line)
        check_run(a, [lock, '--', 'true'], 0, 'the lock is there')
    check_run(a, ["it's", '--', 'true'], 66, 'a word that is not easily said', 'mkdir -p ..., or')


def mistakes(a):
    status, _, err = command([ZKLOCK, '--make', 'new/lock1', '--', 'true'], env=environment(a), user=ALICE, group=ALICE,
                             extra_groups=[])
    check_equal((status, 'you may not create it: the directory above' in err), (77, True), err)
    for words, status, err in (
            (['--mode', '770', 'svc', '--', 'true'], 64, '--mode and --slots need --make'),
            (['--slots', '2', 'svc', '--', 'true'], 64, '--mode and --slots need --make'),
            *((['--make', '--mode', mode, 'svc', '--', 'true'], 64, '--mode takes an octal number from 0 to 777')
              for mode in ('', '8', '1777', 'u+x', '-1', '7' * 30)),
            *((['--make', '--slots', number, 'svc', '--', 'true'], 64, '--slots takes a number from 1 to 10000')
              for number in ('', '0', '10001', '-1', 'x', '9' * 30)),
            (['--make', 'a/0123456789', '--', 'true'], 64, 'no lock can have this name'),
            (['--make', 'a/b\n', '--', 'true'], 64, 'no lock can have this name'),
            (['--make', 'svca/holder/x', '--', 'true'], 66, 'Not a directory'),
            (['--make', 'svca/lock', '--', 'true'], 64, "is inside a lock: 'lock' is a file of each lock: name its directory"),
            (['why', '--make', 'svca'], 64, '--make means nothing to why'),
            (['why', '--slots', '2', 'svca'], 64, '--slots means nothing to why')):
        check_run(a, words, status, f'{words}'[:80], err)
    check(not os.path.exists(a.path('svc')), 'nothing was created')


def ways(gate, a, b):
    """With each way to take."""
    for number, options in enumerate(([], ['-s'], ['-R'], ['-o'], ['-n'], ['--ahead', '2'], ['--at-least', '100ms'])):
        lock = f'ways/w{number}'
        process = start(a, '--make', *options, lock, f'{lock}b' if options != ['-s'] else lock, '--', *gate.visitor())
        visitor = gate.arrived()
        queued(b, lock, 1, held=1)
        visitor.let()
        finished(process, 0, f'{options}')
        free(b, lock)
    # Nobody waits for it longer than it says.
    holder = b.take('ways/w0').held()
    check_run(a, ['--make', '-w', '100ms', 'ways/w0', '--', 'true'], 75, 'a lock that is there and held', 'not free in time')
    holder.release()


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    for mount in (a, b):
        mount.allow('mkdir|fail')
        mount.watched = False   # so many programs start at a time
    a.mkdir('svca')
    gate = Gate(case)
    like_mkdir(case, a, b)
    crowd(case, a, b)
    until(lambda: 'fleet' in b.locks(), 'the other mount sees it')
    removed_meanwhile(case, a, b)
    semaphore(gate, a, b)
    without(a)
    ways(gate, a, b)
    mistakes(a)


run(test)
