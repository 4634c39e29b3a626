#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""zklock(1): a lock that is lost, by eviction and with the server; a command, and all that it
has started, is stopped; limits for how long a lock is held at most and at least."""

import errno
import os
import re
import signal
import time

from gate import Gate, finished, queued
from harness import Stopwatch, check, check_equal, command, refused, run, state_of, until
from locking import ZKLOCK, alive, check_run, children, entries, environment, evict, free, start, zklock

STUBBORN = 'trap "" TERM; "$@" & while :; do wait; done'


def lost_by_eviction(gate, a, b):
    """The command and what it has started are gone before zklock is, whatever they ignore."""
    process = start(a, 'svca', 'svcb', '--', 'sh', '-c', '"$@"; :', 'sh', *gate.visitor())
    visitor = gate.arrived()
    evict(b, 'svcb', process)
    visitor.gone()
    _, err = finished(process, 74, 'lost by eviction')
    check(re.search(r'svcb: the lock is lost: evicted by uid 0 pid \d+ \(.*\) on b; the command is stopped\n', err), err)
    check(not alive(visitor.pid), 'a child of the command')
    free(a, 'svca')

    # One that ignores SIGTERM, and a child of it that has left the session.
    process = start(a, '-k', '300ms', 'svca', '--', 'sh', '-c', STUBBORN, 'sh', 'setsid', *gate.visitor())
    visitor = gate.arrived()
    watch = Stopwatch()
    evict(b, 'svca', process)
    finished(process, 74, 'a stubborn command')
    watch.check(0.3, 5, 'a grace of 300 ms')
    check(not alive(visitor.pid), 'a child in a session of its own')

    # A script hears of it before its command does: it does not go on with the next one. And each of its
    # processes hears of it, also where zklock has not a descriptor for each.
    script = 'sleep 600 & command=$!; for i in $(seq 300); do sleep 600 & done; "$@" & wait $command; echo next'
    for files in 1024, 64:
        process = start(a, '-k', '600s', 'svca', '--', 'sh', '-c', script, 'sh', *gate.visitor(),
                        prefix=('prlimit', f'--nofile={files}'))
        visitor = gate.arrived()
        evict(b, 'svca', process)
        check_equal(finished(process, 74, 'a script')[0], '', f'a script, with {files} descriptors')
        visitor.gone()

    # A filter of system calls refuses those by which one process is told from another.
    for calls in ['pidfd_open', 'openat2', 'close_range'], ['pidfd_send_signal']:
        for error in errno.EPERM, errno.ENOSYS:
            process = start(a, '-k', '300ms', 'svca', '--', 'sh', '-c', STUBBORN, 'sh', 'setsid', *gate.visitor(),
                            prefix=refused([], calls, error))
            visitor = gate.arrived()
            evict(b, 'svca', process)
            check('cannot be stopped' not in finished(process, 74, f'without {calls}')[1], f'without {calls}')
            check(not alive(visitor.pid), f'a child, without {calls}')

    # SIGTERM, and time for good order; none of it with -k 0.
    tidy = 'trap "echo tidied; exit 3" TERM; "$@" & wait; wait'
    process = start(a, '-k', '20s', 'svca', '--', 'sh', '-c', tidy, 'sh', *gate.visitor())
    visitor = gate.arrived()
    evict(b, 'svca', process)
    check_equal(finished(process, 74, 'a tidy command')[0], 'tidied\n', 'a tidy command')
    process = start(a, '-k', '0', 'svca', '--', 'sh', '-c', tidy, 'sh', *gate.visitor())
    visitor = gate.arrived()
    evict(b, 'svca', process)
    check_equal(finished(process, 74, '-k 0')[0], '', '-k 0')
    # Stopped processes too.
    process = start(a, '-k', '20s', 'svca', '--', *gate.visitor())
    visitor = gate.arrived()
    os.kill(visitor.pid, signal.SIGSTOP)
    evict(b, 'svca', process)
    finished(process, 74, 'a stopped command')


STUB = 'int fsync(int fd) { return 0; } int fdatasync(int fd) { return 0; }'


def lost_at_the_end(case, gate, a, b):
    """A command that ended well, but the lock had gone: no success is reported, also by a library that makes
    fsync(2) a stub, as libeatmydata does."""
    stub = case.directory + '/stub.so'
    check_equal(command(['sh', '-c', 'echo "$0" | gcc -shared -fPIC -o "$1" -x c -', STUB, stub])[0], 0, 'gcc')
    for preload in {}, {'LD_PRELOAD': stub}:
        lost_while_stopped(gate, a, b, preload)
    # With a status of its own that is passed on.
    process = start(a, '-k', '20s', 'svca', '--', *gate.visitor())
    visitor = gate.arrived()
    os.kill(process.pid, signal.SIGSTOP)
    visitor.let(7)
    os.kill(process.pid, signal.SIGCONT)
    finished(process, 7, 'a status')


def lost_while_stopped(gate, a, b, preload):
    process = start(a, '-k', '20s', 'svca', '--', 'sh', '-c', 'trap "" TERM; "$@"', 'sh', *gate.visitor(),
                    env=environment(a, **preload, ASAN_OPTIONS='verify_asan_link_order=0'))
    visitor = gate.arrived()
    os.kill(process.pid, signal.SIGSTOP)    # it cannot see the loss
    evict(b, 'svca', process)
    free(b, 'svca')
    [shell] = children(process.pid)
    visitor.let(0)
    until(lambda: state_of(shell) == 'Z', 'the command has ended')
    os.kill(process.pid, signal.SIGCONT)
    finished(process, 74, f'lost while zklock stood still, with {preload}')


def killed(gate, a, b):
    """zklock is killed: the command has the lock still. With -o it is killed as well."""
    process = start(a, 'svca', '--', *gate.visitor())
    visitor = gate.arrived()
    process.kill()
    process.wait()
    check_run(b, ['-n', 'svca', '--', 'true'], 75, 'beside a command that goes on')
    visitor.let()
    free(a, 'svca')
    process = start(a, '-o', 'svca', '--', *gate.visitor())
    visitor = gate.arrived()
    process.kill()
    process.wait()
    visitor.gone()
    free(a, 'svca')
    # While it waits: the place is gone with it, and so are those it has.
    holder = b.take('svcb').held()
    process = start(a, 'svca', 'svcb', '--', 'true')
    queued(a, 'svcb', 2)
    process.kill()
    process.wait()
    queued(b, 'svcb', 1)
    free(b, 'svca')
    holder.release()


def lost_while_waiting(gate, a, b):
    """Of two locks the first is lost while the second is waited for: it takes both again."""
    holder = b.take('svcb').held()
    process = start(a, 'svca', 'svcb', '--', *gate.visitor())
    queued(a, 'svcb', 2)
    first = entries(a, 'svca')[0]['token']
    evict(b, 'svca', process)
    free(b, 'svca')
    holder.release()
    visitor = gate.arrived()
    check(int(visitor.environ['ZKLOCK_TOKEN_1']) > int(first), 'the lost lock was taken again')
    check_equal([e['state'] for e in entries(b, 'svca')], ['held'], 'it is held')
    visitor.let()
    finished(process, 0, 'both in the end')


def at_most(a, b):
    watch = Stopwatch()
    process = start(a, '--at-most', '2s', '-k', '200ms', 'svca', '--',
                    'sh', '-c', 'trap "" TERM; sleep 1000 & echo $!; while :; do wait; done')
    pid = int(process.stdout.readline())
    finished(process, 124, 'too long')
    watch.check(2.2, 15, 'at most 2 s, and 200 ms of grace')
    check(not alive(pid), 'a child of the command')
    free(b, 'svca')
    check_run(a, ['--at-most', '1m', 'svca', '--', 'sh', '-c', 'exit 4'], 4, 'in time')
    # A process that it may not stop, or that /proc hides: the lock is given up all the same, and that is said.
    other = 'echo $$; exec setpriv --reuid=1001 --clear-groups sleep 60 >/dev/null 2>&1'
    hide = ['unshare', '-m', 'sh', '-c', 'mount -t proc -o hidepid=4 proc /proc && exec "$@"', 'sh']
    for prefix, caps in ([], '-kill'), (hide, '-kill,-sys_ptrace'):
        process = start(a, '--at-most', '2s', '-k', '0', 'svca', '--', 'sh', '-c', other,
                        prefix=[*prefix, 'setpriv', f'--inh-caps={caps}', f'--bounding-set={caps}'])
        pid = int(process.stdout.readline())
        _, err = finished(process, 124, 'a process of another user')
        check('1 of its processes run for another user and cannot be stopped' in err, err)
        check(alive(pid), 'it was not stopped')
        free(b, 'svca')
        os.kill(pid, signal.SIGKILL)


def at_least(gate, a, b):
    """The mount keeps the lock when the command ends, and when zklock is killed with it."""
    watch = Stopwatch()
    check_run(a, ['--at-least', '10s', '-r', 'nightly', 'svca', 'svcb', '--', 'sh', '-c', 'exit 3'], 3, 'quick')
    watch.check(0, 9.9, 'it does not wait')
    check_run(b, ['-n', 'svca', '--', 'true'], 75, 'kept')
    for lock in 'svca', 'svcb':
        until(lambda lock=lock: re.search('kept until 20.*, released: nightly', b.read(lock, 'holder')), 'why it is kept')
    check_run(b, ['-w', '60s', 'svca', 'svcb', '--', 'true'], 0, 'free in the end')
    watch.check(10, 30, 'kept for 10 s')

    # Of several locks none is kept when one cannot be had, nor when zklock is ended while it waits.
    holder = b.take('svcb').held()
    check_run(a, ['-n', '--at-least', '1h', 'svca', 'svcb', '--', 'true'], 75, 'the second is held')
    free(b, 'svca')
    process = start(a, '--at-least', '1h', 'svca', 'svcb', '--', 'true')
    queued(b, 'svcb', 2)
    process.terminate()
    finished(process, -signal.SIGTERM, 'ended while it waits')
    free(b, 'svca')
    holder.release()

    # A shared hold, and one that is joined.
    check_run(a, ['-s', '--at-least', '1h', 'svca', '--', 'true'], 0, 'shared')
    check_run(b, ['-n', '-s', 'svca', '--', 'true'], 0, 'beside a shared one')
    out = check_run(b, ['why', 'svca'], 75, 'why it is kept')
    line = re.search(r': kept until (?:20..-..-.. )?..:..:.., released: true\n  it was released, .* now: zklock (.*)\n$', out)
    check_equal(zklock(b, *line[1].split())[::2], (0, ''), f'as why says: {out}')
    free(b, 'svca')
    check_run(a, ['svca', '--', ZKLOCK, '-R', '--at-least', '1h', 'svca', '--', 'true'], 0, 'joined')
    until(lambda: 'kept until' in b.read('svca', 'holder'), 'the joined hold is kept')
    evict(b, 'svca')
    free(b, 'svca')

    # Where all processes end with zklock: process 1 of a container, a service of systemd.
    check_equal(command(['unshare', '-pf', '--mount-proc', ZKLOCK, '--at-least', '1h', 'svca', '--', 'true'],
                        env=environment(a))[0], 0, 'as process 1')
    check_run(b, ['-n', 'svca', '--', 'true'], 75, 'kept after the container')
    evict(b, 'svca')
    free(b, 'svca')

    # zklock and its command are killed.
    watch = Stopwatch()
    process = start(a, '--at-least', '10s', 'svca', '--', *gate.visitor())
    visitor = gate.arrived()
    process.kill()
    process.wait()
    os.kill(visitor.pid, signal.SIGKILL)
    visitor.gone()
    check_run(b, ['-n', 'svca', '--', 'true'], 75, 'kept after a crash')
    check_run(b, ['-w', '60s', 'svca', '--', 'true'], 0, 'free in the end')
    watch.check(10, 30, 'kept for 10 s')

    # A command that is longer than that has the lock to its end.
    process = start(a, '--at-least', '10ms', 'svca', '--', *gate.visitor())
    visitor = gate.arrived()
    check_run(b, ['-n', 'svca', '--', 'true'], 75, 'held by the command')
    visitor.let()
    finished(process, 0, 'longer than that')
    free(b, 'svca')


def lost_with_the_server(gate, server, a):
    """Before the session can have ended; and a waiter is told that no server answers."""
    process = start(a, 'svca', '--', *gate.visitor())
    visitor = gate.arrived()
    server.freeze()
    watch = Stopwatch()
    visitor.gone()
    watch.check(1, 7, 'without contact the command is stopped')
    _, err = finished(process, 74, 'lost with the server')
    check('svca: the lock is lost: no contact with the ensemble' in err, err)
    watch = Stopwatch()
    check_run(a, ['-n', 'svca', '--', 'true'], 69, 'the ensemble is away', 'the ensemble does not answer')
    check_run(a, ['-w', '500ms', 'svca', '--', 'true'], 69, 'the ensemble is away', 'the ensemble does not answer')
    watch.check(0.4, 12, 'told')
    check_equal(zklock(a, 'why', 'svca')[0], 69, 'why')
    server.thaw()
    a.ready()
    check_run(a, ['-w', '60s', 'svca', '--', 'true'], 0, 'it answers again')

    # The end, while nobody answers: success is reported when that is certain.
    process = start(a, 'svca', '--', *gate.visitor())
    visitor = gate.arrived()
    server.freeze()
    visitor.let(0)
    time.sleep(0.3)     # what must not happen: it reports a success that nobody can know of
    check(process.poll() is None, 'success without an answer')
    server.thaw()
    finished(process, 0, 'the answer came')


def mount_ends(case, gate, server):
    """Nobody is left who could say why, but that says enough."""
    for end in (lambda mount: mount.send(signal.SIGTERM), lambda mount: mount.crash()):
        mount = case.mount(server, 'c', session='6s', options=['drain=0s'])
        mount.allow('.')
        process = start(mount, 'svca', '--', *gate.visitor())
        visitor = gate.arrived()
        end(mount)
        visitor.gone()
        err = finished(process, 74, 'the mount ends')[1]
        check(re.search(r'svca: the lock is lost: the mount (has ended|is shutting down)', err), err)
        if mount.checked:
            check_equal(command(['umount', '-l', mount.directory])[0], 0, 'umount')
        else:
            mount.check_end()
        until(lambda: not server.entries('svca'), 'the session is over')


def test(case):
    server = case.server(tick_ms=500)
    a, b = case.mount(server, 'a', session='6s'), case.mount(server, 'b', session='6s')
    for mount in (a, b):
        mount.allow('.')
    for name in ('svca', 'svcb'):
        a.mkdir(name)
    gate = Gate(case)
    mount_ends(case, gate, server)
    lost_by_eviction(gate, a, b)
    lost_at_the_end(case, gate, a, b)
    killed(gate, a, b)
    lost_while_waiting(gate, a, b)
    at_most(a, b)
    at_least(gate, a, b)
    lost_with_the_server(gate, server, a)


run(test)
