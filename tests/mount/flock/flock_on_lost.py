#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""on_lost and the lock file `flock`: the holder and its descendants that have the file open are
stopped before the next one holds. Processes that wait at the same file, or only have it open,
are left alone."""

import functools
import os
import signal
import subprocess
from fcntl import F_WRLCK

from harness import check, has_files, run, spawn, until
from locker import Locker

# A shell that holds by flock(1), which has ended. A child with the file, and a child without it.
SHELL = '''
exec 9<>"$1"; flock 9 || exit
sleep 1000 & echo $!
sleep 1000 9>&- & free=$!
while [ -e /proc/$free/fd/9 ]; do sleep 0.01 9>&-; done
echo $free
read -r line
'''


def lose(case, server, mode, fault):
    relay = case.relay(server)
    a = case.mount(relay, 'a', session='6s', options=[f'on_lost={mode}'])
    b = case.mount(server, 'b', session='6s')
    a.allow('.')
    script, service = f'{mode}-{fault}-script', f'{mode}-{fault}-service'
    b.mkdir(script)
    b.mkdir(service)

    def queued(lock, count):
        until(lambda: len(server.entries(lock)) == count, f'{count} in the queue of {lock}')

    # flock(2): the shell, its child, and a waiter and an idle opener beside them.
    path = a.path(script, 'flock')
    shell = spawn(['bash', '-c', SHELL, 'holder', path], stdin=subprocess.PIPE,
                  stdout=subprocess.PIPE, text=True)
    child, free = (int(shell.stdout.readline()) for _ in range(2))
    waiter = spawn(['flock', path, 'sh', '-c', 'read line'], stdin=subprocess.PIPE)
    queued(script, 2)
    with open(path, 'rb+', buffering=0) as file:
        idle = spawn(['sleep', '1000'], stdin=file)
    elsewhere = b.take(script)
    queued(script, 3)

    # fcntl(2): one worker of a service; all its processes have the file open.
    opener = Locker(a, service)
    fd = opener.do('open')
    sibling = opener.do('fork_and_keep')
    holder = opener.do('fork_and_keep', 'setlk', fd, F_WRLCK)
    queued(service, 1)
    next_one = b.take(service)
    queued(service, 2)

    if fault == 'silence':
        relay.freeze()
    else:
        a.send(signal.SIGSTOP)
    until(lambda: not any(map(has_files, (shell.pid, child, holder))), 'the losers are stopped')
    check(not next_one.answered(), 'the next one held before they were gone')
    next_one.held()
    for pid, what in ((free, 'a child without the file'), (opener.pid, 'the opener'),
                      (sibling, 'a sibling'), (waiter.pid, 'a waiter'), (idle.pid, 'an idle opener'),
                      (os.getpid(), 'the test')):
        check(has_files(pid), f'{what} was stopped')
    for pid in (free, sibling, idle.pid, opener.pid):
        os.kill(pid, signal.SIGKILL)

    # The waiter has a place in the new session, behind the waiter of the other mount.
    if fault != 'silence':
        a.send(signal.SIGCONT)
    relay.thaw()
    a.ready()
    idle.wait()
    opener.gone()
    elsewhere.held()
    check(waiter.poll() is None, 'the waiter waits')
    elsewhere.release()
    until(lambda: a.queue(script)[0].split('-')[2] == str(waiter.pid), 'the waiter holds')
    waiter.communicate(timeout=60)
    next_one.release()
    a.unmount()
    b.unmount()


def test(case):
    server = case.server(tick_ms=500)
    case.at_once(*(functools.partial(lose, server=server, mode=mode, fault=fault)
                   for mode in ('kill', 'term') for fault in ('silence', 'stopped')))


run(test)
