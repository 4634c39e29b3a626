#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A signal ends a wait in flock(2) or fcntl(2) at once. The place is kept for a process that
comes back, as the kernel does by itself with SA_RESTART, and for no other. A killed process,
waiting or holding, is out of the way at once."""

import errno
import os
import signal
import subprocess
from fcntl import F_RDLCK, F_SETLKW, F_UNLCK, F_WRLCK, LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN, flock

from harness import Stopwatch, check, check_equal, is_in_the_call, run, spawn, until
from locker import F_OFD_SETLKW, Locker, setlk

# Inherits an open file, and asks for an OFD lock on it twice.
HEIR = '''
import errno, signal, sys
from fcntl import F_WRLCK
from locker import F_OFD_SETLKW, raw_setlkw
signal.signal(signal.SIGUSR1, lambda *_: None)
for _ in range(2):
    try:
        raw_setlkw(int(sys.argv[1]), F_WRLCK, F_OFD_SETLKW)
        print('locked', flush=True)
    except OSError as err:
        print(errno.errorcode[err.errno], flush=True)
    sys.stdin.readline()
'''


def test(case):
    server = case.server()
    a = case.mount(server, session='30s')
    b = case.mount(server, 'b', session='30s')
    a.mkdir('build')
    until(lambda: 'build' in b.locks(), 'b sees the lock')
    path = a.path('build', 'flock')

    def queued(count):
        return until(lambda: len(server.entries('build')) == count and server.entries('build'),
                     f'{count} in the queue')

    def fresh(*mounts):
        lockers = [Locker(mount, 'build') for mount in mounts]
        return [(locker, locker.do('open')) for locker in lockers]

    (p, fd), (q, qfd), (r, rfd) = fresh(a, a, b)
    p.do('flock', fd, LOCK_EX)

    # EINTR at once, and the same call by the same process gets its place again.
    for name, args in (('raw_flock', (qfd, LOCK_EX)), ('raw_flock', (qfd, LOCK_SH)),
                       ('raw_setlkw', (qfd, F_WRLCK))):
        q.ask(name, *args)
        before = queued(2)
        watch = Stopwatch()
        q.kill(signal.SIGUSR1)
        q.fails(errno.EINTR)
        watch.check(0, 1, f'EINTR from {name}')
        q.ask(name, *args)
        r.ask('flock', rfd, LOCK_EX)
        check_equal(queued(3)[:2], before, 'the queue after the interrupt')
        until(lambda: is_in_the_call(q.pid), 'it waits again')
        p.do('flock', fd, LOCK_UN)
        q.got()
        check(not r.answered(), 'the one behind waits')
        q.do('flock', qfd, LOCK_UN)
        q.do('setlk', qfd, F_UNLCK)
        r.got()
        r.do('flock', rfd, LOCK_UN)
        p.do('flock', fd, LOCK_EX)

    # A handler with SA_RESTART: the kernel asks again, and the program sees nothing.
    q.do('siginterrupt', signal.SIGUSR1, False)
    q.ask('raw_flock', qfd, LOCK_EX)
    before = queued(2)
    r.ask('flock', rfd, LOCK_EX)
    queued(3)
    for _ in range(20):
        q.kill(signal.SIGUSR1)
    q.kill(signal.SIGSTOP)
    q.kill(signal.SIGCONT)
    check(not q.answered(0.2), 'it waits still')
    check_equal(queued(3)[:2], before, 'the queue after signals')
    until(lambda: is_in_the_call(q.pid), 'it waits again')
    p.do('flock', fd, LOCK_UN)
    q.got()
    q.do('flock', qfd, LOCK_UN)
    r.got()
    r.do('flock', rfd, LOCK_UN)
    p.do('flock', fd, LOCK_EX)
    q.do('siginterrupt', signal.SIGUSR1, True)

    # Another call, an unlock or a close gives the place up.
    for name, args in (('raw_flock', (qfd, LOCK_SH)), ('flock', (qfd, LOCK_UN)),
                       ('flock', (qfd, LOCK_EX | LOCK_NB)), ('close', (qfd,))):
        q.ask('raw_flock', qfd, LOCK_EX)
        before = queued(2)[1]
        q.kill(signal.SIGUSR1)
        q.fails(errno.EINTR)
        q.ask(name, *args)
        watch = Stopwatch()
        until(lambda old=before: old not in server.entries('build'), f'{name}{args} gives up the place')
        watch.check(0, 1, f'{name}{args}')
        if name == 'raw_flock':
            queued(2)
            q.kill(signal.SIGUSR1)
            q.fails(errno.EINTR)
        elif args == (qfd, LOCK_EX | LOCK_NB):
            q.fails(errno.EAGAIN)
        else:
            q.got()
        if name != 'close':
            q.do('flock', qfd, LOCK_UN)
        queued(1)

    # A process that does not come back: at the head of the queue its place is kept for a quarter
    # of a second.
    qfd = q.do('open')
    q.ask('raw_flock', qfd, LOCK_EX)
    queued(2)
    r.ask('flock', rfd, LOCK_EX)
    queued(3)
    q.kill(signal.SIGUSR1)
    q.fails(errno.EINTR)
    watch = Stopwatch()
    p.do('flock', fd, LOCK_UN)
    r.got()
    watch.check(0.05, 1.5, 'the head of one that does not come back')
    r.do('flock', rfd, LOCK_UN)
    until(lambda: not server.entries('build'), 'the other mount has given it back')

    # An upgrade that is interrupted keeps the shared lock.
    p.do('setlk', fd, F_RDLCK)
    r.do('setlk', rfd, F_RDLCK)
    p.ask('raw_setlkw', fd, F_WRLCK)
    before = queued(3)
    p.kill(signal.SIGUSR1)
    p.fails(errno.EINTR)
    check(int(p.do('pread', fd, 64, 0)) > 0, 'shared still')
    p.ask('raw_setlkw', fd, F_WRLCK)
    until(lambda: is_in_the_call(p.pid), 'the process waits again')
    check_equal(queued(3), before, 'the same place')
    p.kill(signal.SIGUSR1)
    p.fails(errno.EINTR)
    p.do('setlk', fd, F_UNLCK)
    check_equal(queued(1), [before[1]], 'the unlock gives up both')
    p.ask('setlk', fd, F_WRLCK, F_SETLKW)
    queued(2)
    r.do('setlk', rfd, F_UNLCK)
    p.got()

    # A place that was kept for a new lock is not used for an upgrade: meanwhile another process
    # got a shared lock for the same open file, and the place would wait for this lock.
    p.do('setlk', fd, F_UNLCK)
    with open(path, 'rb+', buffering=0) as file:
        flock(file, LOCK_SH)
        heir = spawn(['python3', '-c', HEIR, str(file.fileno())], pass_fds=[file.fileno()], stdin=subprocess.PIPE,
                     stdout=subprocess.PIPE, text=True)
        queued(2)
        heir.send_signal(signal.SIGUSR1)
        check_equal(heir.stdout.readline(), 'EINTR\n', 'the child')
        setlk(file, F_RDLCK, F_OFD_SETLKW)
        heir.stdin.write('again\n')
        heir.stdin.flush()
        check_equal(heir.stdout.readline(), 'locked\n', 'the child')
        heir.communicate(timeout=60)
    p.do('setlk', fd, F_WRLCK, F_SETLKW)

    # kill -9 of a waiter, and of the holder.
    for name, args in (('flock', (qfd, LOCK_EX)), ('setlk', (qfd, F_WRLCK, F_SETLKW))):
        q.ask(name, *args)
        queued(2)
        r.ask('flock', rfd, LOCK_EX)
        queued(3)
        watch = Stopwatch()
        q.kill()
        q.gone()
        queued(2)
        watch.check(0, 1, 'a killed waiter is gone')
        watch = Stopwatch()
        p.kill()
        r.got()
        watch.check(0, 1, 'the next one after a killed holder')
        (p, fd), (q, qfd) = fresh(a, a)
        p.ask('setlk', fd, F_WRLCK, F_SETLKW)
        queued(2)
        r.do('flock', rfd, LOCK_UN)
        p.got()

    # flock(1) waits on a descriptor of a shell, and ends by Ctrl-C, by SIGKILL or by its own time
    # limit. The shell goes on, and other takers do not wait for the place.
    script = 'exec 9<>"$1"; flock $2 9; echo "$?"; read -r line; exit 0'
    for options, number in (('', signal.SIGINT), ('', signal.SIGKILL), ('-w 0.3', None)):
        shell = spawn(['bash', '-c', script, 'bash', path, options], stdin=subprocess.PIPE,
                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if number:
            queued(2)
            child = until(lambda pid=shell.pid: children(pid), 'flock(1) waits')[0]
            os.kill(child, number)
        status = int(shell.stdout.readline())
        check_equal(status, 128 + number if number else 1, 'status of flock(1)')
        watch = Stopwatch()
        queued(1)
        watch.check(0, 1, f'the place of flock {options}')
        shell.communicate('\n', timeout=60)

    # Ctrl-C in a terminal: shell and flock(1) both get the signal.
    shell = spawn(['bash', '-c', 'flock "$1" true; echo "$?"', 'bash', path], stdout=subprocess.PIPE,
                  start_new_session=True)
    queued(2)
    watch = Stopwatch()
    os.killpg(shell.pid, signal.SIGINT)    # as the terminal: neither sees the other's end first
    shell.communicate(timeout=60)
    check_equal(shell.returncode, -signal.SIGINT, 'how bash ended')
    queued(1)
    watch.check(0, 1, 'Ctrl-C')


def children(pid):
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as file:
        return [int(word) for word in file.read().split()]


run(test)
