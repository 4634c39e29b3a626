#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""on_lost (rule 5): the opener and its descendants that have the lock file open are gone before the
next one holds, also when the daemon is stopped or dead. No other process is touched."""

import functools
import os
import re
import signal
import subprocess
import sys

from harness import SLOWNESS, WAIT_SECONDS, Stopwatch, Successor, check, check_equal, command, run, spawn, state_of, until

SECONDS = round(12 * max(1, SLOWNESS))  # of a session: a guardian without a processor is late, not wrong

# The holder's shell, one child that has the lock file open, and one child that has not. A file shows
# that the shell got SIGTERM.
HOLDER = '''
trap ': >"$2.term"; exit 1' TERM
exec 9<>"$1" || exit 75
sleep 1000 & echo $! >"$2.child"
sleep 1000 9>&- & echo $! >"$2.free"
while [ -e /proc/$!/fd/9 ]; do sleep 0.01 9>&-; done
echo $$ >"$2.held.new"; mv "$2.held.new" "$2.held"
while :; do sleep 0.05 9>&-; done
'''


# Its exit status tells how often it got SIGTERM. It runs before the guardian goes on.
COUNTER = '''
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(90))
os.open(sys.argv[1], os.O_RDWR)
print('held', flush=True)
signal.sigwait([signal.SIGTERM])
sys.exit(2 if signal.sigtimedwait([signal.SIGTERM], 0.5) else 1)
'''


def alive(pid):
    return state_of(pid) not in (None, 'Z')


def number_in(path):
    with open(path, encoding='ascii') as file:
        return int(file.read())


def stopped(mount):
    """How many processes the metrics say were sent SIGTERM, SIGKILL."""
    text = mount.read('.zklockfs', 'metrics')
    return [int(re.search(rf'^zklockfs_stopped_total{{.*signal="{name}"}} (.*)$', text, re.MULTILINE).group(1))
            for name in ('SIGTERM', 'SIGKILL')]


def check_said(mount, lock, shell, child, mode, fault):
    """A line in the log for each process, also when the daemon is stopped or dead. A child that the guardian finds
    2 s after the loss, on a busy machine, is sent SIGKILL at once."""
    why = 'the lock is lost' if fault == 'deleted' else r'the lease is not renewed, and ends in [012]\.\d s'
    whose = re.escape(f', which has the file of pid {shell} open')
    for names, who in ((mode.upper(), rf'pid {shell} \(bash\) uid 0'),
                       ('KILL' if mode == 'kill' else '(?:TERM|KILL)', rf'pid {child} \(sleep\) uid 0(?:{whose})?')):
        line = rf': {lock}: sent SIG{names} to {who}: {why}$'
        until(lambda line=line: re.search(line, mount.log(), re.MULTILINE), f'the log says {line}')


def check_counted(mount, lock, shell, mode, fault):
    # A process may be gone before the guardian, which has sent the signal, counts and tells it.
    until(lambda: sum(stopped(mount)) >= 2, 'both are counted')
    until(lambda: stopped(mount) == [mount.log().count(f': sent {name} to ') for name in ('SIGTERM', 'SIGKILL')],
          'the log and the metrics agree')
    print('{}-{}: sent SIGTERM to {}, SIGKILL to {}'.format(mode, fault, *stopped(mount)))
    row = next(line.split() for line in mount.read('.zklockfs', 'history').splitlines() if line.split()[1] == lock)
    # A daemon that was stopped in the middle of a turn sees the lease's end before the closed files.
    ends = {'deleted': ['lost'], 'stopped': ['stopped', 'lost']}.get(fault, ['stopped'])
    check(row[5] in ends and row[6] == str(shell), f'its end: {row}')
    if row[5] == 'stopped':
        check(row[11].startswith('SIGKILL' if mode == 'kill' else ('SIGTERM', 'SIGKILL')), f'why: {row}')


def lose(case, server, mode, fault):
    relay = case.relay(server)
    a = case.mount(relay, 'a', session=f'{SECONDS}s', options=[f'on_lost={mode}'])
    b = case.mount(server, 'b', session=f'{SECONDS}s')
    a.allow('.')
    lock = f'{mode}-{fault}'
    b.mkdir(lock)
    b.mkdir(lock + '-other')
    note = os.path.join(case.directory, lock)
    other = a.take(lock + '-other') if fault == 'deleted' else None
    shell = spawn(['bash', '-c', HOLDER, 'holder', a.path(lock, 'lock'), note], prompt=10)
    until(lambda: os.path.exists(note + '.held'), 'the shell holds')
    child, free = number_in(note + '.child'), number_in(note + '.free')
    # When somebody deletes the entry, the next taker may hold before they are gone.
    waiter = Successor(b, lock, () if fault == 'deleted' else (shell.pid, child))
    until(lambda: len(server.entries(lock)) == 2, 'the waiter queues')

    watch = Stopwatch()
    if fault == 'silence':
        relay.freeze()
    elif fault == 'stopped':
        a.send(signal.SIGSTOP)
    elif fault == 'killed':
        a.crash()
    else:
        server.zk.delete(f'/locks/{lock}/{server.entries(lock)[0]}')
    waiter.held()
    until(lambda: shell.poll() is not None and not alive(child), 'both are stopped')
    watch.check(0, 2.5 * SECONDS, fault)
    check(os.path.exists(note + '.term') == (mode == 'term'), 'SIGTERM, if that was asked for')
    check(alive(free), 'a child without the lock file was touched')
    if other:
        check(not other.ended(), 'the holder of another lock was touched')
        other.held()
        other.release()
    os.kill(free, signal.SIGKILL)
    waiter.release()

    if fault == 'stopped':
        a.send(signal.SIGCONT)
    relay.thaw()
    if fault == 'killed':
        command(['fusermount3', '-uz', a.directory])
        # A process of another test that hangs while it is looked at delays that.
        until(lambda: not guards(a), 'the guardian ends by itself', 300)
    else:
        a.ready()
        check_counted(a, lock, shell.pid, mode, fault)
        a.unmount()
    check_said(a, lock, shell.pid, child, mode, fault)
    b.unmount()


def told_once(case, server):
    relay = case.relay(server)
    mount = case.mount(relay, 'a', session=f'{SECONDS}s', options=['on_lost=term'])
    mount.allow('.')
    mount.mkdir('once')
    with spawn([sys.executable, '-c', COUNTER, mount.path('once', 'lock')], stdout=subprocess.PIPE) as process:
        check_equal(process.stdout.readline(), b'held\n', 'its word')
        relay.freeze()
        check_equal(process.wait(WAIT_SECONDS), 1, 'how often it was told')
    relay.thaw()
    mount.ready()
    mount.unmount()


def guards(mount):
    """All processes of the mount except the one that was started: here its guardian."""
    found = []
    for name in os.listdir('/proc'):
        if name.isdigit():
            try:
                with open(f'/proc/{name}/cmdline', encoding='utf-8') as file:
                    if mount.path() in file.read() and int(name) != mount.process.pid:
                        found.append(int(name))
            except OSError:
                pass
    return found


def test(case):
    server = case.server(tick_ms=500)
    for mode in ('kill', 'term'):
        parts = [functools.partial(lose, mode=mode, fault=fault)
                 for fault in ('silence', 'stopped', 'killed', 'deleted')]
        if mode == 'term':
            parts.append(told_once)
        case.at_once(*(functools.partial(part, server=server) for part in parts))


run(test)
