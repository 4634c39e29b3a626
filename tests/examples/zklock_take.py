#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""zklock(1): what it takes, in which order, how long it waits, and what it says when a lock
is not to be had."""

import os
import signal

from gate import Gate, finished, queued
from harness import ALICE, Stopwatch, check, check_equal, command, run, spawn, until
from locking import ZKLOCK, check_run, children, entries, environment, free, start, zklock

NAMES = ('svca', 'svcb', 'svcc')


def environment_of_the_command(gate, a):
    """One lock: its token. Several: a variable for each, numbered as on the command line."""
    a.mkdir('odd $(id) `name` ü')
    process = start(a, 'svca', '--', *gate.visitor())
    visitor = gate.arrived()
    token = a.fields('svca', 'queue', a.queue('svca')[0])['token']
    check_equal((visitor.environ['ZKLOCK_TOKEN'], visitor.environ['ZKLOCK_TOKEN_1'],
                 visitor.environ['ZKLOCK_NAME_1']), (token, token, 'svca'), 'one lock')
    visitor.let(5)
    finished(process, 5, 'one lock')

    stale = environment(a, ZKLOCK_TOKEN='1', ZKLOCK_TOKEN_4='1', ZKLOCK_FD_9='x')
    process = start(a, 'svcc', 'odd $(id) `name` ü', a.path('svca'), 'svcc', '--', *gate.visitor(), env=stale)
    visitor = gate.arrived()
    found = {name: value for name, value in visitor.environ.items() if name.startswith('ZKLOCK_')}
    names = {1: 'svcc', 2: 'odd $(id) `name` ü', 3: 'svca'}
    for number, name in names.items():
        check_equal(found.pop(f'ZKLOCK_NAME_{number}'), name, 'its name')
        check_equal(found.pop(f'ZKLOCK_TOKEN_{number}'), entries(a, name)[0]['token'], f'token of {name}')
        lock_file = os.readlink(f'/proc/{visitor.pid}/fd/' + found.pop(f'ZKLOCK_FD_{number}'))
        check_equal(lock_file, a.path(name, 'flock'), f'descriptor of {name}')
    check_equal(found, {}, 'no other variables')
    visitor.let()
    finished(process, 0, 'three locks, one named twice')

    # -o: only zklock has the descriptors.
    process = start(a, '-o', 'svca', '--', *gate.visitor())
    visitor = gate.arrived()
    check('ZKLOCK_FD_1' not in visitor.environ, 'a descriptor that the command does not have')
    lock_files = [os.readlink(f'/proc/{visitor.pid}/fd/{fd}') for fd in os.listdir(f'/proc/{visitor.pid}/fd')]
    check(not [lock_file for lock_file in lock_files if lock_file.startswith(a.directory)], f'descriptors: {lock_files}')
    visitor.let()
    finished(process, 0, '-o')


def order(gate, a, b):
    """Two users name three locks in different order, again and again: neither hangs."""
    loop = 'n=0; while [ $n -lt 25 ]; do "$@" || exit; n=$((n+1)); done'
    watch = Stopwatch()
    users = [spawn(['sh', '-c', loop, 'sh', ZKLOCK, *names, '--', 'true'], env=environment(mount))
             for mount, names in ((a, NAMES), (b, reversed(NAMES)), (a, ('svcb', 'svcc', 'svca')))]
    for user in users:
        check_equal(user.wait(300), 0, 'a user of three locks')
    watch.check(0, 60, '75 times three locks')
    # The one that waits has those before it, and none behind.
    holder = b.take('svcb').held()
    process = start(a, 'svcc', 'svcb', 'svca', '--', *gate.visitor())
    queued(a, 'svcb', 2, held=1)
    check_equal(([e['state'] for e in entries(a, 'svca')], entries(a, 'svcc')), (['held'], []), 'in order')
    holder.release()
    gate.arrived().let()
    finished(process, 0, 'three locks')


def ahead(gate, a, b):
    """One runs, one waits, the rest go home: each way to take, on any host."""
    process = start(a, '--ahead', '1', 'svca', '--', *gate.visitor())
    visitor = gate.arrived()
    waiter = start(b, '--ahead', '1', 'svcb', 'svca', '--', *gate.visitor())
    queued(a, 'svca', 2)
    for mount in (a, b):
        for options in ([], ['-s'], ['-R'], ['-w', '1h']):
            check_run(mount, ['--ahead', '1', *options, 'svca', '--', 'true'], 75, str(options),
                      'svca: not free, and too many wait for it')
        check_run(mount, ['--ahead', '2', '-w', '200ms', 'svca', '--', 'true'], 75, 'two may', 'not free in time')
    check_equal(zklock(a, '--ahead', '1', '-q', '-E', '3', 'svca', '--', 'true'), (3, '', ''), 'quiet')
    visitor.let()
    finished(process, 0, 'the first one')
    gate.arrived().let()
    finished(waiter, 0, 'the second one')


def reasons(gate, a, b):
    """The reason is there while it waits; a long one whole when it holds."""
    holder = b.take('svca').held()
    process = start(a, '-r', 'deploy v42', 'svca', '--', *gate.visitor())
    queued(b, 'svca', 2)
    until(lambda: entries(b, 'svca')[1]['reason'] == 'deploy v42', 'the reason of the waiter')
    holder.release()
    visitor = gate.arrived()
    until(lambda: 'reason=deploy v42\n' in b.read('svca', 'holder'), 'the reason of the holder')
    visitor.let()
    finished(process, 0, 'a reason')

    long = 'ä' * 2000
    process = start(a, '-r', long, 'svca', '--', *gate.visitor())
    visitor = gate.arrived()
    until(lambda: entries(b, 'svca')[0]['reason'] == long, 'a long reason')
    visitor.let()
    finished(process, 0, 'a long reason')
    check_run(a, ['-r', 'x' * 4097, 'svca', '--', 'true'], 64, 'too long a reason', 'longer than 4096')

    # A hostile one changes nothing on anybody's screen; without one, the command's name.
    hostile = 'one\x1b[2J\u202e\u3164\xadtwo\nsvca: evicted\r\x07'
    process = start(a, '-r', hostile, 'svca', '--', *gate.visitor())
    visitor = gate.arrived()
    for words in (['-n', 'svca', '--', 'true'], ['ls', 'svca'], ['why', 'svca']):
        _, out, err = zklock(b, *words)
        said = out + err
        check('two' in said or 'one' in said, f'{words}: {said!r}')
        check(not set('\x1b\x07\r\u202e\u3164\xad') & set(said), f'{words}: {said!r}')
        check('\nsvca: evicted' not in said, f'{words}: {said!r}')
    visitor.let()
    finished(process, 0, 'a hostile reason')
    process = start(a, 'svca', '--', *gate.visitor())
    visitor = gate.arrived()
    check_equal(entries(a, 'svca')[0]['reason'], os.path.basename(gate.visitor()[0]), 'no reason given')
    visitor.let()
    finished(process, 0, 'no reason')


def comm(pid):
    with open(f'/proc/{pid}/comm', encoding='utf-8') as name:
        return name.read().strip()


def who(gate, a, b):
    """COMMAND is who takes and who holds, with its name and its pid; but a process that waits does
    not look like one that runs."""
    holder = b.take('svca').held()
    for options in ([], ['-R']):
        process = start(a, *options, 'svca', 'svcb', '--', *gate.visitor())
        queued(b, 'svca', 2)
        waiter = entries(b, 'svca')[1]
        name = os.path.basename(gate.visitor()[0])[:15]
        check_equal(waiter['command'], name, 'the name of a waiter')
        check_equal(children(process.pid), [waiter['pid']], 'the process that waits')
        if not options:
            check_equal(comm(waiter['pid']), 'zklock', 'while it waits')
        # To end that one is to end zklock.
        os.kill(int(waiter['pid']), signal.SIGTERM)
        finished(process, -signal.SIGTERM, 'the process that waits is ended')
        queued(b, 'svca', 1)
    holder.release()
    for options in ([], ['-R'], ['-o']):
        process = start(a, *options, 'svca', 'svcb', '--', *gate.visitor())
        visitor = gate.arrived()
        pid = process.pid if options == ['-o'] else visitor.pid
        for lock in ('svca', 'svcb'):
            check_equal([(e['pid'], e['command']) for e in entries(b, lock)], [(str(pid), name)], f'holder, {options}')
        check(f' pid={pid} ' in b.read('svca', 'holder') and f' command={name} ' in b.read('svca', 'holder'), 'holder')
        check(f'process {pid} ({name}) on a' in zklock(b, 'why', 'svca')[1], 'why')
        visitor.let(4)
        finished(process, 4, f'who holds, {options}')
        for lock in ('svca', 'svcb'):
            free(b, lock)
        last = a.read('.zklockfs', 'history').splitlines()[-1].split()
        check_equal((last[6], last[8]), (str(pid), name), f'history: {last}')


def not_to_be_had(gate, a, b):
    holder = b.take('svcb').held()
    holder.do('write', b'maintenance')
    until(lambda: 'maintenance' in a.read('svcb', 'holder'), 'its reason')
    told = f'held by process {holder.pid} (python3) on b'
    check_run(a, ['-n', *NAMES, '--', 'false'], 75, '-n', 'svcb: not free')
    check_run(a, ['-w', '0', 'svcb', '--', 'false'], 75, '-w 0', told)
    check_run(a, ['-E', '9', '-n', 'svcb', '--', 'false'], 9, '-E', ': maintenance')
    check_equal(zklock(a, '-q', '-n', 'svcb', '--', 'false'), (75, '', ''), '-q')
    watch = Stopwatch()
    check_run(a, ['-w', '700ms', *NAMES, '--', 'false'], 75, '-w', 'svcb: not free in time')
    watch.check(0.69, 5, '-w 700ms')
    # One time limit for all of them: what the second waited is not there for the third.
    other = b.take('svcc').held()
    watch = Stopwatch()
    process = start(a, '-w', '8', 'svcb', 'svcc', '--', 'false')
    queued(a, 'svcb', 2)
    holder.release()
    queued(a, 'svcc', 2)
    finished(process, 75, 'the second is not free in time')
    watch.check(7.9, 11, 'one limit for two locks')
    other.release()
    for name in NAMES:
        free(a, name)

    # Evicted while it waits.
    holder = b.take('svca').held()
    process = start(a, 'svca', '--', 'false')
    queued(a, 'svca', 2)
    entry = a.queue('svca')[1]
    check_run(b, ['evict', 'svca', entry], 0, 'evict')
    check('evicted while it waited' in finished(process, 75, 'an evicted waiter')[1], 'what it says')
    holder.release()

    # Shared beside shared, and not beside the other.
    holder = b.take('svca', 'shared').held()
    check_run(a, ['-n', '-s', 'svca', '--', 'true'], 0, '-s beside shared')
    check_run(a, ['-n', 'svca', '--', 'true'], 75, 'alone beside shared')
    holder.release()

    # -R: what a parent has is joined, and without it not.
    nested = f'{ZKLOCK} -n svca -- true; [ $? = 75 ] && exec {ZKLOCK} -n -R svca -- {ZKLOCK} -R svca -- sh -c "exit 6"'
    check_run(a, ['svca', '--', 'sh', '-c', nested], 6, 'nested')

    # Slots.
    with open(a.path('svca', 'slots'), 'w', encoding='ascii') as slots:
        slots.write('2')
    holder = b.take('svca').held()
    check_run(a, ['-n', 'svca', '--', 'true'], 0, 'the second slot')
    holder.release()


def mistakes(case, a):
    free(a, 'svca')
    for words, status, err in (
            (['svcx', '--', 'true'], 66, 'svcx: no such lock'),
            (['svca', 'svcx', '--', 'true'], 66, 'svcx: no such lock'),
            (['-R', 'svcx', '--', 'true'], 66, 'svcx: no such lock'),
            (['svca/lock', '--', 'true'], 64, 'is inside a lock'),
            (['svca/lock@30s', '--', 'true'], 64, 'is inside a lock'),
            (['', '--', 'true'], 64, 'names no lock'),
            (['/', '--', 'true'], 64, 'is not below'), ([a.directory, '--', 'true'], 64, 'names no lock'),
            (['.zklockfs', '--', 'true'], 66, 'begins with a dot'),
            (['../svca', '--', 'true'], 66, 'begins with a dot'),
            (['/etc/passwd', '--', 'true'], 64, 'is not below'),
            (['x' * 5000, '--', 'true'], 64, 'too long'),
            (['a\x1b[31m\n/b', '--', 'true'], 66, 'a?[31m?/b'),
            (['svca', '--'], 64, 'no COMMAND behind `--`'), (['--', 'true'], 64, 'no LOCK before `--`'),
            ([], 64, 'no LOCK and no COMMAND'), (['-n'], 64, 'no LOCK and no COMMAND'),
            (['svca', 'true'], 64, 'to run a command with that lock: zklock svca -- true\n'),
            (['svca', 'sh', '-c', 'a\x1b b'], 64, "zklock svca -- sh -c 'a? b'\n"),
            (['-n', 'list'], 64, '`list` is none of ls, why,'), (['list'], 64, 'zklock list -- COMMAND'),
            (['svca', 'x' * 5000], 64, 'zklock svca -- ...\n'),
            (['svca', 'rm', 'x' * 181], 64, f'zklock svca -- rm {"x" * 181}\n'),
            (['svca', 'rm', 'x' * 182, 'y'], 64, 'zklock svca -- rm ... y\n'),
            (['evict'], 64, 'too few words: zklock evict LOCK ENTRY...; an ENTRY is `holder`'),
            (['evict', 'svca'], 64, 'too few words: zklock evict LOCK ENTRY'),
            (['why'], 64, 'too few words: zklock [-m DIR] why [-s] LOCK'),
            (['ls', 'svca', 'svcb'], 64, 'too many words: zklock [-m DIR] ls [LOCK]'),
            (['ls', '-s'], 64, '-s means nothing to ls'), (['ls', '-n'], 64, '-n means nothing to ls'),
            (['-w', '5s', 'why', 'svca'], 64, '-w means nothing to why'),
            (['--at-most', '5s', 'ls'], 64, '--at-most means nothing to ls'),
            (['status', '-w'], 64, 'zklock: -w means nothing to status: zklock [-m DIR] status\n'),
            (['ls', '--wait'], 64, 'zklock: -w means nothing to ls: '),
            (['ls', '-w', '5x'], 64, 'zklock: -w means nothing to ls: '),
            (['status', '--json'], 64, 'zklock: no option is named --json: zklock [-m DIR] status\n'),
            (['--verbose', '-xs', 'svca'], 64, 'zklock: no option is named -x: try zklock --help\n'),
            (['status', '-m'], 64, 'zklock: -m needs a value: zklock [-m DIR] status\n'),
            (['-w'], 64, 'zklock: -w needs a value: try zklock --help\n'),
            (['--slots'], 64, 'zklock: --slots needs a value: try zklock --help\n'),
            (['--make=5', 'svca'], 64, 'zklock: --make takes no value: try zklock --help\n'),
            (['--at', 'svca'], 64, 'zklock: no option is named --at: try zklock --help\n'),
            (['--wiat=5s', 'svca'], 64, 'zklock: no option is named --wiat=5s (did you mean --wait?): try zklock --help\n'),
            (['why', '--shard', 'svca'], 64, 'zklock: no option is named --shard (did you mean --shared?): zklock [-m DIR] why'),
            (['stauts'], 64, '`stauts` is none of ls, why, history, status, evict (did you mean status?); to run a command '),
            (['release', 'svca'], 64, 'zklock: a lock is released when its command ends; this takes it away: zklock evict svca holder\n'),
            (['unlock', 'a b'], 64, "zklock evict 'a b' holder\n"), (['give-back'], 64, 'zklock evict LOCK holder\n'),
            (['evict', 'svca', 'holder'], 66, 'nobody holds svca\n'), (['help'], 0, ''),
            (['svca', '-n', '--', 'true'], 64, 'options stand before the locks'),
            (['-Z'], 64, '--help'),
            (['-w', '5x', 'svca', '--', 'true'], 64, "'5x' is no time: a time is"),
            (['-w', '', 'svca', '--', 'true'], 64, 'a time is'),
            (['-w', '99999999999999999999', 'svca', '--', 'true'], 64, 'a time is'),
            (['-E', '256', 'svca', '--', 'true'], 64, "'256' is no status"),
            (['-s', '-R', 'svca', '--', 'true'], 64, 'exclude each other'),
            (['--ahead', '1', '-n', 'svca', '--', 'true'], 64, 'exclude each other'),
            *((['--ahead', number, 'svca', '--', 'true'], 64, '--ahead takes a number')
              for number in ('', '0', '-1', 'x', '1x', '1048576', '9' * 30)),
            (['--ahead', '1', 'why', 'svca'], 64, '--ahead means nothing to why'),
            (['--at-least', '2m', '--at-most', '1m', 'svca', '--', 'true'], 64, '--at-least is longer'),
            (['-s', '--at-least', '2m', 'svca', 'svcb', '--', 'true'], 64, '-s and --at-least take one lock'),
            (['svca', '--', 'no-such-command'], 127, 'no-such-command: No such file'),
            (['svca', '--', 'no-such -a; true'], 127, 'No such file or directory; for a line of the shell: sh -c'),
            (['svca', 'echo', "it's", ''], 64, "zklock svca -- echo ... ''\n"),
            (['a b', '$(x)'], 64, "zklock 'a b' -- '$(x)'\n"),
            (['svca', '-c', 'a; b'], 64, "zklock svca -- sh -c 'a; b'\n"),
            (['svca', '--', '/etc/passwd'], 126, '/etc/passwd: Permission denied')):
        check_run(a, words, status, f'{words}'[:80], err)
    # What is told at once, though another lock would have to be waited for.
    holder = a.take('svca').held()
    check_run(a, ['svca', 'svcx', '--', 'true'], 66, 'a typo beside a lock that is held', 'svcx')
    holder.release()
    # Those who may not.
    _, out, err = command([ZKLOCK, 'svca', '--', 'true'], env=environment(a), user=ALICE, group=ALICE)
    check('may not take it' in err, f'a stranger: {out}{err}')
    check_equal(command([ZKLOCK, 'svca', '--', 'true'], env=environment(a), user=ALICE, group=ALICE)[0], 77, '77')

    # Which mount: several, one by its path, none, a directory that is none.
    check_run(None, ['svca', '--', 'true'], 64, 'two mounts', 'choose one by -m')
    check_run(None, [a.path('svca'), '--', 'true'], 0, 'a path says which mount')
    check_run(None, ['/srv/svca', '--', 'true'], 69, 'a path of no mount', '/srv/svca: no zklockfs is mounted there')
    check_run(None, ['-m', a.directory + '/', 'svca', '--', 'true'], 0, '-m')
    # By a symbolic link to the mount, or above it.
    above = case.directory + '/above'
    os.symlink(case.directory, above)
    link = f'{above}/{os.path.basename(a.directory)}'
    for mount, words in ((None, []), (a, []), (None, ['-m', a.directory]), (None, ['-m', link])):
        check_run(mount, [*words, link + '/svca', a.path('svcb'), '--', 'true'], 0, 'a link')
        check_run(mount, [*words, link + '/svcx/deep', '--', 'true'], 66, 'a link to no lock', 'no such lock')
    bare = case.mount_point()
    os.makedirs(bare + '/svca')
    check_run(a, ['-m', bare, 'svca', '--', 'true'], 69, 'not a mount', 'no zklockfs is mounted there')
    check_run(a, ['-m', bare + '/x', 'svca', '--', 'true'], 69, 'not there', 'No such file')
    check_equal(os.listdir(bare + '/svca'), [], 'no file was made')
    alone = ['unshare', '-m', 'sh', '-c', 'umount -l "$1" && shift && exec "$@"', 'sh']
    both = ['unshare', '-m', 'sh', '-c', 'umount -l "$1" "$2" && shift 2 && exec "$@"', 'sh']
    mounts = [mount.directory for mount in case.mounts]
    for status, wrap in ((0, [*alone, mounts[1]]), (69, [*both, *mounts])):
        got, out, err = command([*wrap, ZKLOCK, 'svca', '--', 'true'], env=environment())
        check_equal(got, status, f'{len(wrap) - 6} mounts taken away: {out}{err}')
    check('no zklockfs is mounted' in err, err)
    named_by_settings(case, alone, both, mounts)


def named_by_settings(case, alone, without, mounts):
    """The unit that has settings for the path that is meant, or is the only one. While it is not mounted, no
    other mount's lock is taken for one of its locks."""
    etc, bare = case.directory + '/etc', case.mount_point()
    check_equal(command(['cp', '-a', '/etc', etc])[0], 0, 'another /etc')
    os.makedirs(etc + '/zklockfs')
    for source, target in ((etc, '/etc'), (bare, '/mnt')):
        check_equal(command(['mount', '--bind', source, target])[0], 0, target)

    def says(names, words, text, wrap=None):
        for name in names:
            with open(f'/etc/zklockfs/{name}', 'w', encoding='ascii'):
                pass
        wrap = wrap or [*without, *mounts]
        got, _, err = command([*wrap, ZKLOCK, *words, 'svca', '--', 'true'], env=environment())
        check(got == 69 and err.endswith(text + '\n'), f'{names} {words}: {err!r} and not {text!r}')
    this = '; this mounts it: systemctl start zklockfs@'
    says(['password', 'srv-zkx2dlocks.conf'], [], 'no zklockfs is mounted here, see zklockfs(8)')
    says(['srv-locks.conf'], [], f'no zklockfs is mounted here{this}srv-locks')
    says([], ['-m', '/mnt'], '/mnt: no zklockfs is mounted there')
    says(['mnt.conf'], ['-m', '/mnt'], f'/mnt: no zklockfs is mounted there{this}mnt')
    says([], [], 'no zklockfs is mounted here, see zklockfs(8)')
    one = [*alone, mounts[1]]
    says([], [], f'/mnt has settings and is not mounted: its locks may be meant, or those of {mounts[0]}; '
         f'choose by -m or $ZKLOCKFS{this}mnt', one)
    says([], ['-m', '/mnt'], f'/mnt: no zklockfs is mounted there{this}mnt', one)
    check_equal(command([*one, ZKLOCK, '-m', mounts[0], 'svca', '--', 'true'])[0], 0, 'the chosen one')
    os.unlink('/etc/zklockfs/mnt.conf')
    check_equal(command([*one, ZKLOCK, 'svca', '--', 'true'], env=environment())[0], 0, 'srv-locks has no directory')
    for target in ('/mnt', '/etc'):
        check_equal(command(['umount', target])[0], 0, 'umount')


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    for name in NAMES:
        a.mkdir(name, 0o755)
    gate = Gate(case)
    environment_of_the_command(gate, a)
    order(gate, a, b)
    ahead(gate, a, b)
    reasons(gate, a, b)
    who(gate, a, b)
    not_to_be_had(gate, a, b)
    mistakes(case, a)


run(test)
