#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mkdir makes a lock and rmdir removes one, for all mounts, at any depth. A lock that is held
or waited for is EBUSY, one with locks below is ENOTEMPTY."""

import errno
import os
import signal
import subprocess
import sys
import threading

import rawzk
from harness import (ALICE, BOB, check, check_equal, check_errno, check_user, command, errno_of, error_name,
                     is_in_the_call, run, spawn, until)

LC_BELOW_MAX = 1000
QUICK = 500     # locks that are made and removed at once
TO_REMOVE = 2   # a look at the directory above, which a mkdir has changed, and the delete
TO_MAKE = 3     # requests: a sync and a read, sent together, say that the name is free; and the create

# Waits for the lock until a signal comes, and removes it a moment later.
TIRED = '''
import os, signal, sys
signal.signal(signal.SIGUSR1, lambda *_: 1 / 0)
try:
    os.open(sys.argv[1] + '/lock', os.O_RDWR)
except ZeroDivisionError:
    print('interrupted', flush=True)
sys.stdin.readline()
os.rmdir(sys.argv[1])
'''


def of_a_kept_place(server, a, b):
    """The place that is kept for a process which was interrupted (rule 22) does not keep it from removing the lock."""
    b.mkdir('tired')
    holder = b.take('tired').held()
    with spawn([sys.executable, '-c', TIRED, a.path('tired')], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tired:
        until(lambda: len(server.entries('tired')) == 2, 'it queues')
        until(lambda: is_in_the_call(tired.pid), 'it waits')
        tired.send_signal(signal.SIGUSR1)
        check_equal(tired.stdout.readline(), b'interrupted\n', 'its word')
        holder.release()
        until(lambda: len(server.entries('tired')) < 2, 'nobody else is in the way')
        tired.communicate(b'\n')
    check_equal(tired.returncode, 0, 'rmdir')
    check_equal(server.zk.exists('/locks/tired'), None, 'the node')


def removed_at_once(server, mount):
    """Another client removes each lock as soon as it is there: it was made all the same, and mkdir says so."""
    remover, ends = rawzk.Client(server.port), threading.Event()

    def remove():
        while not ends.is_set():
            try:
                remover.delete('/locks/quick')
            except rawzk.ZkError as err:
                check_equal(err.code, rawzk.NONODE, 'the removal')

    thread = threading.Thread(target=remove)
    thread.start()
    made = 0
    try:
        while made < QUICK:
            code = errno_of(os.mkdir, mount.path('quick'))
            check(code in (0, errno.EEXIST), f'mkdir: {error_name(code)} after {made}')
            made += code == 0
    finally:
        ends.set()
        thread.join()
        remover.close()


def in_two_round_trips(server, mount):
    """What the look-up of the lock above has told is not asked again. Heartbeats come in between now and then."""
    mount.mkdir('above')
    os.chmod(mount.path('above'), 0o777)
    names = iter(range(10 ** 6))

    def requests(user, call, name):
        before = int(server.connections()[mount.session()]['recved'])
        check_user(0, user, call, mount.path('above', name))
        return int(server.connections()[mount.session()]['recved']) - before

    def make(name):
        os.stat(mount.path('above'))    # a mkdir has changed it, too
        return requests(BOB, os.mkdir, name)

    def remove(name):
        os.mkdir(mount.path('above', name))
        return requests(0, os.rmdir, name)

    until(lambda: make(f'lock{next(names)}') == TO_MAKE, f'mkdir costs {TO_MAKE} requests')
    until(lambda: remove(f'lock{next(names)}') == TO_REMOVE, f'rmdir costs root {TO_REMOVE} requests')


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    for path in ('team', 'team/build', 'team/build/deploy'):
        a.mkdir(path)
        check_errno(errno.EEXIST, os.mkdir, a.path(path))
        check_errno(errno.EEXIST, os.mkdir, b.path(path))
        until(lambda: os.path.isdir(b.path(path)), 'b sees it')
        stat = server.zk.exists('/locks/' + path)
        check_equal(stat.ephemeral_owner, 0, 'a lock is persistent')
    removed_at_once(server, a)
    in_two_round_trips(server, a)
    check_errno(errno.ENOENT, os.mkdir, a.path('nobody/build'))
    check_errno(errno.ENOENT, os.rmdir, a.path('nobody'))
    for path in ('team', 'team/build'):
        check_errno(errno.ENOTEMPTY, os.rmdir, a.path(path))

    # Each is a lock of its own: the locks above and below stay free.
    lock = 'team/build/deploy'
    holder = b.take(lock).held()
    for other in ('team', 'team/build'):
        a.take(other, 'try').held().release()
    for mount in (a, b):
        check_errno(errno.EBUSY, os.rmdir, mount.path(lock))
    waiter = a.take(lock)
    until(lambda: len(server.entries(lock)) == 2, 'the waiter queues')
    check_errno(errno.EBUSY, os.rmdir, a.path(lock))
    holder.release()
    waiter.held().release()
    until(lambda: not server.entries(lock), 'the lock is free')

    # A lock is in use by an entry of another client alone.
    planted = server.zk.create(f'/locks/{lock}/x-', ephemeral=True, sequence=True)
    check_errno(errno.EBUSY, os.rmdir, a.path(lock))
    server.zk.delete(planted)

    for path in (lock, 'team/build', 'team'):
        os.rmdir(a.path(path))
        check_equal(server.zk.exists('/locks/' + path), None, 'the node')
        until(lambda: not os.path.exists(b.path(path)), 'b sees that it is gone')
    check_errno(errno.ENOENT, os.open, a.path(lock, 'lock'), os.O_RDWR)

    of_a_kept_place(server, a, b)

    # A lock that any mount makes again is a new one, also when the kernel knows the old one.
    for mount in (a, b):
        a.mkdir('again')
        fd = os.open(a.path('again'), os.O_RDONLY | os.O_DIRECTORY)
        os.rmdir(a.path('again'))
        mount.mkdir('again')
        until(lambda: os.path.exists(a.path('again')), 'a sees that it is there')
        check('queue' in os.listdir(a.path('again')), 'it is empty')
        a.take('again', 'try').held().release()
        os.close(fd)
        os.rmdir(a.path('again'))

    # An entry that goes at this moment is no lock below.
    b.mkdir('short')
    for _ in range(50):
        os.close(os.open(a.path('short', 'lock'), os.O_RDWR))
        while (got := errno_of(os.rmdir, b.path('short'))) == errno.EBUSY:
            pass
        check_equal(error_name(got), '0', 'rmdir beside a close on another mount')
        b.mkdir('short')
        until(lambda: os.path.exists(a.path('short')), 'a sees it')
    os.rmdir(b.path('short'))
    until(lambda: not os.path.exists(a.path('short')), 'a sees that it is gone')

    # rmdir right after the last close on its own mount finds no entry that is just going.
    for _ in range(20):
        a.mkdir('short')
        os.close(os.open(a.path('short', 'lock'), os.O_RDWR))
        os.rmdir(a.path('short'))

    # What deletes a tree and goes on after errors removes the locks that nobody uses, rm(1) none.
    for path in ('tree', 'tree/held', 'tree/free'):
        a.mkdir(path)
    holder = a.take('tree/held').held()
    for program in (['rm', '-rf', a.path('tree')], ['find', a.path('tree'), '-delete']):
        check(os.path.exists(a.path('tree/free')), 'the lock is gone')
        check_equal(command(program)[0], 1, program)
    check(not os.path.exists(a.path('tree/free')), 'the lock is there')
    check(holder.token() > 0, 'the holder was disturbed')
    holder.release()

    # The limit of locks below a lock binds other users. The owner has a higher one, root none.
    a.mkdir('full')
    os.chown(a.path('full'), ALICE, ALICE)
    os.chmod(a.path('full'), 0o777)
    for number in range(LC_BELOW_MAX - 1):
        server.zk.create(f'/locks/full/below-{number}')
    check_user(0, BOB, os.mkdir, a.path('full', 'last'))
    for mount in (a, b):
        check_user(errno.EDQUOT, BOB, os.mkdir, mount.path('full', 'more'))
        check_user(0, ALICE, os.mkdir, mount.path('full', f'by Alice on {mount.host}'))
        mount.mkdir(f'full/by root on {mount.host}')
    check_equal(len(os.listdir(b.path('full'))) - 9, LC_BELOW_MAX + 4, 'locks below')


run(test)
