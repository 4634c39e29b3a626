#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The log in words: each line names the mount; a start and a new session have a line; the line of a
loss names the taker, the time and the cause; with `-o log_takes` each grant, release and refusal
has a line, without a limit, and no name of a program or a lock can forge one."""

import ctypes
import errno
import os
import re
import signal

from harness import check, check_equal, check_errno, libc, run, until

MANY = 700      # takes, each with two lines
EVIL = 'x\n\x1b[2J) uid 0'


def name_of(pid):
    with open(f'/proc/{pid}/comm', encoding='ascii') as file:
        return file.read().strip()


def expect(mount, pattern, count=1):
    """Exactly count lines match the pattern, after the name of the mount."""
    wanted = re.compile(f'zklockfs: {re.escape(mount.directory)}: {pattern}$', re.M)
    until(lambda: len(wanted.findall(mount.log())) >= count, f'{pattern} in the log:\n{mount.log()}')
    check_equal(len(wanted.findall(mount.log())), count, pattern)


def take_as(name, path):
    """Take the lock by a program of this name, and give it back. Returns the pid."""
    pid = os.fork()
    if pid == 0:
        try:
            libc.prctl(15, ctypes.c_char_p(name.encode()))
            fd = os.open(path, os.O_RDWR)
            os.close(fd)
            os._exit(0)
        finally:
            os._exit(1)
    check_equal(os.waitpid(pid, 0)[1], 0, 'it takes the lock')
    return pid


def check_takes(server, mount):
    holder = mount.take('build').held()
    who = fr'pid {holder.pid} \(python3\) uid 0'
    expect(mount, fr'build: granted to {who} after \d+\.\d s, token {holder.token()}')
    waiter = mount.take('build')
    until(lambda: len(server.entries('build')) == 2, 'it queues')
    limited = mount.take('build', lock_file='lock@150ms')
    limited.refused(errno.ETIMEDOUT)
    expect(mount, fr'build: refused to pid {limited.pid} \(python3\) uid 0 after (0\.[1-9]|[1-9]\d*\.\d) s: somebody else had the lock '
           r'until the time limit was over \(ETIMEDOUT\)')
    check_errno(errno.EAGAIN, os.open, mount.path('build', 'try'), os.O_RDWR)
    expect(mount, r'build: refused to pid \d+ \(.+\) uid 0 after \d+\.\d s: somebody else has the lock or waits for it '
           r'\(EAGAIN\)')
    check_errno(errno.EACCES, os.open, mount.path('build', 'lock'), os.O_RDONLY)
    expect(mount, r'build: refused to .+: a lock file opened for reading only would not take the lock \(EACCES\)')
    with open(mount.path('build', 'queue', mount.queue('build')[1]), 'w', encoding='ascii') as entry:
        entry.write('evict')
    waiter.refused(errno.ECANCELED)
    expect(mount, fr'build: refused to pid {waiter.pid} .+: its place in the queue was taken away by uid 0 pid '
           fr'{os.getpid()} \(.+\) on a \(ECANCELED\)')
    token = holder.token()
    holder.release()
    expect(mount, fr'build: released by {who} after \d+\.\d s, token {token}: closed')


def check_hostile(mount):
    """Names that users choose are one word each in the log."""
    lock = 'granted to pid 1 (x)'
    mount.mkdir(lock)
    pid = take_as(EVIL, mount.path(lock, 'lock'))
    name = r'x\?\?\[2J\)\\040uid\\0400'
    expect(mount, fr'granted\\040to\\040pid\\0401\\040\(x\): granted to pid {pid} \({name}\) uid 0 after \d+\.\d s, '
           r'token (\d+|-)')
    check('\x1b' not in mount.log(), 'a control character')
    for line in mount.log().splitlines():
        check(line.startswith(f'zklockfs: {mount.directory}: '), f'a line of its own: {line!r}')


def check_many(mount):
    """The limit of other log lines does not apply to these lines, and none is lost while the process that
    writes them gets no processor."""
    before = mount.log().count('granted to')
    with open(f'/proc/{mount.daemon}/task/{mount.daemon}/children', encoding='ascii') as children:
        writer = next(int(pid) for pid in children.read().split() if name_of(pid) == 'zklockfs-log')
    os.kill(writer, signal.SIGSTOP)
    for _ in range(MANY):
        os.close(os.open(mount.path('other', 'lock'), os.O_RDWR))
    os.kill(writer, signal.SIGCONT)
    until(lambda: mount.log().count('granted to') == before + MANY, 'a line for each')


def end_session(server, mount):
    session = mount.session()
    mount.send(signal.SIGSTOP)
    until(lambda: session not in server.connections() and not server.entries('build'), 'the session ends')
    mount.send(signal.SIGCONT)


def check_session(server, mount):
    """When a session is lost, holders lose their locks, and waiters queue again."""
    holder = mount.take('build').held()
    holder.do('write', b'a long one')
    waiters = []
    for count in (2, 3, 4):
        waiters.append(mount.take('build'))
        until(lambda: len(server.entries('build')) == count, 'it queues')
    # What was lost before, by an eviction, is not counted again.
    evicted = mount.take('other').held()
    with open(mount.path('other', 'queue', mount.queue('other')[0]), 'w', encoding='ascii') as entry:
        entry.write('evict')
    until(lambda: not mount.queue('other'), 'it is evicted')
    evicted.release()
    mount.take('other', 'lock@least=2s').held().release()
    until(lambda: not mount.queue('other'), 'two seconds are over')
    end_session(server, mount)
    expect(mount, fr'build: the lock is lost by pid {holder.pid} \(python3\) uid 0, token \d+, held for \d+\.\d s: '
           r'(no contact with the ensemble, the lease has expired|the ensemble has ended the session); '
           r'reason: a long one')
    expect(mount, r'a new session: 1 lock was lost, 3 waiters queue again')
    for waiter in waiters:
        waiter.held().release()
    end_session(server, mount)
    expect(mount, r'a new session: 0 locks were lost, 0 waiters queue again')


def test(case):
    server = case.server()
    mount = case.mount(server, 'a', session='6s', options=['log_takes'])
    plain = case.mount(server, 'b')
    for each in (mount, plain):
        expect(each, fr'serves 127\.0\.0\.1:{server.port}/locks as {each.host}: server 127\.0\.0\.1:{server.port}, session '
               fr'0x{each.session():x} of \d+ ms')
        each.allow('.')
    mount.mkdir('build')
    mount.mkdir('other')
    check_takes(server, mount)
    check_hostile(mount)
    check_many(mount)
    check_session(server, mount)
    check_errno(errno.EACCES, os.open, plain.path('build', 'lock'), os.O_RDONLY)
    plain.take('build', lock_file='try').held().release()
    check('granted' not in plain.log() and 'refused' not in plain.log(), 'what nobody asked for')


run(test)
