#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writing `evict` to an entry of the queue takes it from its taker, on any mount (rule 21): a
waiter gets ECANCELED, a holder loses the lock, and the next one holds only when on_lost is
done. The entry's owner, the lock's owner and root may do it. Entries of other clients are
deleted at once, and those of a mount that does not answer after its session timeout. Nothing else
evicts: no removal of a directory's tree, whoever does it."""

import errno
import os
import signal

from harness import (ALICE, BOB, Stopwatch, check, check_equal, check_errno, check_user, command, run, shells,
                     spawn, until)


def write(path, text):
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC)
    try:
        os.write(fd, text)
    finally:
        os.close(fd)


def entry_of(mount, lock, taker):
    """The taker's file in the queue."""
    name = until(lambda: next((name for name in mount.queue(lock) if f'-{taker.pid}-' in name), None),
                 f'{taker.pid} queues')
    return mount.path(lock, 'queue', name)


def behind(server, mount, lock, other, there):
    """Takers far behind in the queue are told at once by a letter: their entries are not watched."""
    path = f'{mount.root}/{lock}'.removeprefix('/locks/')
    before = len(server.entries(path))
    crowd = [mount.take(lock)]
    until(lambda: len(server.entries(path)) == before + 1, 'the first queues')
    crowd += [mount.take(lock) for _ in range(5)]
    until(lambda: len(server.entries(path)) == before + 6, 'all queue')
    for taker in (crowd[3], crowd[5], crowd[2], crowd[4]):
        path_there = entry_of(other, there, taker)
        watch = Stopwatch()
        write(path_there, b'evict')
        taker.refused(errno.ECANCELED)
        watch.check(0, 4, 'far less than the time between heartbeats')
    check(not crowd[1].answered(), 'another was disturbed')
    for taker in crowd:
        taker.kill()
    until(lambda: len(server.entries(path)) == before, 'all have left')


def roots(case, server, a):
    """The root of a mount may be a lock of another mount."""
    a.mkdir('below')
    below = case.mount(server, 'below', session='40s', root='/locks/below')
    below.mkdir('build')
    until(lambda: os.path.exists(a.path('below', 'build')), 'it is there')
    behind(server, below, 'build', a, 'below/build')
    behind(server, a, 'below/build', below, 'build')


def takers(server, a, b):
    """Evictions of a waiter and of a holder, from the other mount."""
    a.mkdir('build')
    holder, waiter, last = a.take('build').held(), a.take('build'), b.take('build')
    until(lambda: len(server.entries('build')) == 3, 'all queue')
    write(entry_of(b, 'build', waiter), b'evict\n')
    waiter.refused(errno.ECANCELED)
    check(holder.token() > 0 and not last.answered(), 'the others were disturbed')
    until(lambda: f'evicted by uid 0 pid {os.getpid()} (' in a.log() and ') on b' in a.log(), 'the owner logs it')
    b.said('marked for eviction by uid 0')
    write(entry_of(b, 'build', holder), b'evict')
    last.held()
    check_errno(errno.EIO, holder.token)
    check_errno(errno.EIO, holder.do, 'write', b'x')
    check_errno(errno.EIO, holder.do, 'fsync')
    until(lambda: 'zklockfs_entries{mount="%s"} 0' % a.directory in a.read('.zklockfs', 'metrics'), 'its entry is gone')
    check_equal(a.status()['leaving'], '1', 'the file of the lost lock is open')
    holder.release()
    until(lambda: a.status()['leaving'] == '0', 'nothing is left of it')
    # From the taker's own mount, and by a shell.
    for shell in shells():
        waiter = b.take('build')
        path = entry_of(b, 'build', waiter)
        check_equal(command([*shell, '-c', 'echo evict >"$1"', 'sh', path])[0], 0, ' '.join(shell))
        waiter.refused(errno.ECANCELED)
    until(lambda: len(server.entries('build')) == 1, 'the holder alone is left')
    behind(server, a, 'build', b, 'build')
    path = entry_of(a, 'build', last)
    fd = os.open(path, os.O_WRONLY)
    last.release()
    until(lambda: not server.entries('build'), 'the lock is free')
    check_errno(errno.ENOENT, os.write, fd, b'evict')
    os.close(fd)


def removals(a, b):
    """A recursive removal evicts nobody, and removes no lock that is held or waited for."""
    a.mkdir('kept')
    holder = a.take('kept').held()
    waiter = b.take('kept')
    names = until(lambda: len(b.queue('kept')) == 2 and b.queue('kept'), 'both queue')
    for mount in (a, b):
        for name in names:
            check_errno(errno.EBUSY, os.unlink, mount.path('kept', 'queue', name))
        status, _, err = command(['rm', '-rf', mount.path('kept')])
        check_equal((status, err.count('Device or resource busy')), (1, 2), f'rm -rf: {err}')
        check_errno(errno.EBUSY, os.rmdir, mount.path('kept'))
        for name, path in (('user.other', ('queue', names[0])), ('user.evict', ('lock',)), ('user.evict', ())):
            check_errno(errno.EOPNOTSUPP, os.setxattr, mount.path('kept', *path), name, b'')
    check_equal(b.queue('kept'), names, 'the queue')
    check(holder.token() > 0 and not waiter.answered(), 'somebody was evicted')
    os.setxattr(b.path('kept', 'queue', names[1]), 'user.evict', b'')
    waiter.refused(errno.ECANCELED)
    holder.release()


def permissions(server, a, b):
    os.umask(0)
    a.mkdir('team')
    holder = a.take('team', uid=ALICE).held()
    for wrong in (b'evict\n\n', b'evicted', b'EVICT', b' evict', b'\n', b'evict\0', b'x' * 5000):
        check_errno(errno.EINVAL, write, entry_of(b, 'team', holder), wrong)
    path = entry_of(b, 'team', holder)
    check_equal((os.stat(path).st_uid, os.stat(path).st_mode & 0o777), (ALICE, 0o777), 'owner and mode')
    check_user(errno.EPERM, BOB, write, path, b'evict')
    check(holder.token() > 0, 'it was evicted by a stranger')
    check_user(0, ALICE, write, path, b'evict')
    until(lambda: not server.entries('team'), 'it is gone')
    check_errno(errno.EIO, holder.token)
    holder.release()


def deep(case, server):
    """In another client's lock, whose path is longer than any of ours. The next daemon goes on with
    the eviction, and with all locks."""
    e = case.mount(server, 'e', session='6s')
    e.allow('was ended by signal|did not delete it in time|too long')
    e.mkdir('goes_on')
    holder = e.take('goes_on').held()
    path = '/locks/deep'
    server.zk.create(path)
    for _ in range(6):
        path += '/' + 'x' * 240
        server.zk.create(path)
    name = '_c_12345678-1234-1234-1234-123456789012-web9.7-lock-0000000001'
    server.zk.create(f'{path}/{name}', b'', ephemeral=True)
    queue = e.path(path.removeprefix('/locks/'), 'queue')
    os.setxattr(os.path.join(queue, os.listdir(queue)[0]), 'user.evict', b'')
    check(all(len(line.split(' ')) == 14 for line in e.read('.zklockfs', 'locks').splitlines()), 'lines of locks')
    e.adopt()
    check(holder.token() > 0, 'the lock is kept')
    until(lambda: not server.zk.exists(f'{path}/{name}'), 'the eviction is followed up')
    holder.release()


def others(server, a):
    """Entries of other clients, also one with a user's number in its data."""
    a.mkdir('foreign')
    for data in (b'10.0.0.1', b'uid: 1001\n', b''):
        planted = server.zk.create('/locks/foreign/other-lock-', data, ephemeral=True, sequence=True)
        name = next(iter(a.queue('foreign')))
        path = a.path('foreign', 'queue', name)
        check_equal(os.stat(path).st_uid, 0, 'its owner')
        check_user(errno.EPERM, ALICE, write, path, b'evict')
        check(server.zk.exists(planted), 'it was evicted by a user')
        write(path, b'evict')
        check(not server.zk.exists(planted), 'it is still there')
    # An entry that is not ephemeral.
    server.zk.create('/locks/foreign/_c_12345678-1234-1234-1234-123456789012-web9.7-lock-', sequence=True)
    write(a.path('foreign', 'queue', a.queue('foreign')[0]), b'evict')
    check(not server.entries('foreign'), 'it is still there')
    a.take('foreign', 'try').held().release()


def stopped(case, server, b):
    """on_lost is done before the next one holds."""
    c = case.mount(server, 'c', session='6s', options=['on_lost=kill'])
    c.allow('.')
    b.mkdir('guarded')
    note = os.path.join(case.directory, 'guarded')
    shell = spawn(['bash', '-c', 'exec 9<>"$1" || exit 75; trap "" TERM; echo $$ >"$2.new"; mv "$2.new" "$2"; '
                   'while :; do sleep 0.05 9>&-; done', 'holder', c.path('guarded', 'lock'), note])
    until(lambda: os.path.exists(note), 'the shell holds')
    waiter = b.take('guarded')
    until(lambda: len(server.entries('guarded')) == 2, 'the waiter queues')
    watch = Stopwatch()
    write(b.path('guarded', 'queue', b.queue('guarded')[0]), b'evict')
    waiter.held()
    check_equal(shell.wait(60), -signal.SIGKILL, 'the former holder')
    watch.check(0, 5, 'from the eviction to the next holder')
    waiter.release()


def frozen(case, server, b):
    """A mount that does not answer keeps the entry for its session timeout."""
    d = case.mount(server, 'd', session='6s')
    d.allow('.')
    b.mkdir('frozen')
    holder = d.take('frozen').held()
    waiter = b.take('frozen')
    until(lambda: len(server.entries('frozen')) == 2, 'the waiter queues')
    d.send(signal.SIGSTOP)
    watch = Stopwatch()
    write(b.path('frozen', 'queue', b.queue('frozen')[0]), b'evict')
    waiter.held()
    watch.check(4.5, 20, 'from the eviction to the next holder')
    d.send(signal.SIGCONT)
    d.said('lost')
    check_errno(errno.EIO, holder.token)
    waiter.release()


def test(case):
    server = case.server(tick_ms=500)
    a, b = case.mount(server, 'a', session='40s'), case.mount(server, 'b', session='6s')
    takers(server, a, b)
    roots(case, server, a)
    removals(a, b)
    permissions(server, a, b)
    others(server, a)
    stopped(case, server, b)
    frozen(case, server, b)
    deep(case, server)


run(test)
