#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""zklock(1) on mounts that stop losers by themselves (on_lost): whatever the command dies of, the end
is that of a loss."""

import signal
import subprocess
import sys

from gate import Gate, finished
from harness import WAIT_SECONDS, Stopwatch, check, check_equal, run
from locking import evict, free, start

STUBBORN = 'trap "" TERM; "$@" & while :; do wait; done'


def guarded(case, server, gate, b):
    """A mount that stops losers by itself: whichever of the two acts, the command ends."""
    c = case.mount(server, 'c', session='8s', options=['on_lost=term'])
    c.allow('.')
    process = start(c, '-k', '20s', 'svca', '--', 'sh', '-c', '"$@"; :', 'sh', *gate.visitor())
    visitor = gate.arrived()
    evict(b, 'svca', process)
    visitor.gone()
    finished(process, 74, 'on_lost=term')
    # It stops the command before the lock is lost. That is a loss, though SIGTERM ends many a service
    # without a fault. With -o it tells zklock, and kills it when that takes 2 s.
    tidy = ['sh', '-c', 'trap "exit 0" TERM; "$@" & wait', 'sh']
    for options, words in (([], []), ([], tidy), (['-o'], tidy)):
        process = start(c, '-k', '20s', *options, 'svca', '--', *words, *gate.visitor())
        visitor = gate.arrived()
        server.freeze()
        end = finished_or_killed(process, f'on_lost=term without contact, {options}')
        check(end == 74 or options, f'it was killed, which has no reason here: {end}')
        server.thaw()
        visitor.gone()
        for mount in (b, c):
            mount.ready()
    # The contact comes back when it is being stopped already: no success is reported.
    slow = 'import signal, sys; signal.signal(signal.SIGTERM, lambda *_: print("told", flush=True)); ' \
           'print("runs", flush=True); sys.stdin.readline()'
    process = start(c, 'svca', '--', sys.executable, '-c', slow, stdin=subprocess.PIPE)
    check_equal(process.stdout.readline(), 'runs\n', 'a command')
    server.freeze()
    check_equal(process.stdout.readline(), 'told\n', 'SIGTERM')
    server.thaw()
    for mount in (b, c):
        mount.ready()
    finished_or_killed(process, 'contact before the end', '\n')
    # The mount does not wait for the grace.
    watch = Stopwatch()
    process = start(c, '-k', '1h', 'svca', '--', 'sh', '-c', STUBBORN, 'sh', *gate.visitor())
    visitor = gate.arrived()
    evict(b, 'svca', process)
    finished_or_killed(process, 'on_lost=term, and a stubborn command')
    watch.check(0, 15, 'the end of a stubborn command')
    free(b, 'svca')
    visitor.conn.close()
    # Whoever has it open when the command is dead already is killed, too: zklock is mostly faster.
    d = case.mount(server, 'd', session='8s', options=['on_lost=kill'])
    d.allow('.')
    process = start(d, 'svca', '--', *gate.visitor())
    visitor = gate.arrived()
    server.freeze()
    visitor.gone()
    finished_or_killed(process, 'on_lost=kill')
    server.thaw()
    for mount in (b, c, d):
        mount.ready()
    # The command has closed the file, and zklock alone has it open: the mount leaves zklock to stop the command.
    alone = 'import os, time; os.closerange(3, 99); print("runs", flush=True); time.sleep(1000)'
    process = start(d, '-k', '0', 'svca', '--', sys.executable, '-c', alone)
    check_equal(process.stdout.readline(), 'runs\n', 'a command that closes the file')
    server.freeze()
    finished(process, 74, 'the command has closed the file')
    server.thaw()
    for mount in (b, c, d):
        mount.ready()


def finished_or_killed(process, what, typed=None):
    """Of a loss in any case: by its status and what it says, or by the mount."""
    _, err = process.communicate(typed, timeout=WAIT_SECONDS)
    check(process.returncode in (74, -signal.SIGKILL), f'{what}: {process.returncode}: {err}')
    check(process.returncode != 74 or 'svca: the lock is lost' in err, f'{what}: {err}')
    print(f'{what}: {process.returncode}')
    return process.returncode


def test(case):
    server = case.server(tick_ms=500)
    b = case.mount(server, 'b', session='6s')
    b.allow('.')
    b.mkdir('svca')
    guarded(case, server, Gate(case), b)


run(test)
