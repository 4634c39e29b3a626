#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Authority is checked when it is used, not when a file was opened or a name was looked up
(rule 33): an open file outlives neither the authority of its user nor its lock."""

import errno
import fcntl
import os
import signal

from harness import ALICE, BOB, check, check_equal, check_errno, check_user, errno_of, run, until


def record(uid, mode=0o777, door_mode=0o666):
    return f'zklockfs: 1\nuid: {uid}\ngid: {uid}\nmode: {mode:o}\ndoor_mode: {door_mode:o}\n\n'.encode()


def make(mount, lock, uid, mode=0o777):
    os.mkdir(mount.path(lock), mode)
    os.chown(mount.path(lock), uid, uid)


def slots(server, a, b):
    """The present owner and root may write slots, but only those of the lock that was opened."""
    make(a, 'x', ALICE)
    files = [os.open(a.path('x', 'slots'), flags) for flags in (os.O_WRONLY, os.O_RDWR)]
    for fd in files:
        check_user(0, ALICE, os.write, fd, b'3')
    os.chown(b.path('x'), BOB, BOB)
    for fd in files:
        check_user(errno.EPERM, ALICE, os.write, fd, b'10000')
        check_user(0, BOB, os.write, fd, b'4')
        check_equal(os.write(fd, b'5'), 1, 'by root')
    os.rmdir(b.path('x'))
    for fd in files:
        check_user(errno.ENOENT, BOB, os.write, fd, b'10000')
    make(b, 'x', BOB, 0o700)
    before = server.zk.get('/locks/x')[0]
    for fd in files:
        for uid in (0, ALICE, BOB):
            check_user(errno.ENOENT, uid, os.write, fd, b'10000')
        os.close(fd)
    check_equal(server.zk.get('/locks/x')[0], before, 'the new lock')
    os.rmdir(b.path('x'))
    until(lambda: not os.path.exists(a.path('x')), 'a sees that it is gone')


def in_between(uid, first, change, then, *args):
    """The errno of the user's call then(); change() runs between the calls first() and then()."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            first(*args)
            os.write(write, b'x')
            os.kill(os.getpid(), signal.SIGSTOP)
            then(*args)
            os._exit(0)
        except OSError as err:
            os._exit(err.errno)
        finally:
            os._exit(255)
    os.close(write)
    check_equal(os.read(read, 1), b'x', 'the first call')
    os.close(read)
    os.waitpid(child, os.WUNTRACED)
    change()
    os.kill(child, signal.SIGCONT)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def rmdir(server, a):
    """Attributes that the kernel remembers for a second do not count."""
    for above, lock, wanted in ((ALICE, BOB, 0), (BOB, ALICE, 0), (BOB, BOB, errno.EPERM)):
        server.zk.create('/locks/team', record(ALICE))
        server.zk.create('/locks/team/x', record(ALICE))

        def given():
            server.zk.set('/locks/team', record(above))
            server.zk.set('/locks/team/x', record(lock))
        check_equal(in_between(ALICE, os.stat, given, os.rmdir, a.path('team', 'x')), wanted,
                    f'rmdir of {lock}\'s below {above}\'s')
        check_equal(server.zk.exists('/locks/team/x') is None, wanted == 0, 'it is gone')
        if wanted:
            os.rmdir(a.path('team', 'x'))
        os.rmdir(a.path('team'))
    # In the root: its owner is the mounter.
    make(a, 'x', ALICE)
    check_user(errno.EACCES, BOB, os.rmdir, a.path('x'))
    os.rmdir(a.path('x'))
    check(not server.zk.exists('/locks/x'), 'it is still there')
    check_errno(errno.ENOENT, os.rmdir, a.path('x'))


def flock(server, a, b):
    """An open file of a removed lock does not take a new lock of the same name."""
    for other in (a, b):
        make(a, 'x', ALICE)
        files = [os.open(a.path('x', 'flock'), os.O_RDWR) for _ in range(3)]
        check_user(0, ALICE, fcntl.flock, files[0], fcntl.LOCK_EX)
        check_user(0, ALICE, fcntl.flock, files[0], fcntl.LOCK_UN)
        until(lambda: not server.entries('x'), 'the lock is free')
        os.rmdir(other.path('x'))
        for how in (fcntl.LOCK_EX, fcntl.LOCK_SH | fcntl.LOCK_NB):
            check_user(errno.ENOENT, ALICE, fcntl.flock, files[0], how)
        make(other, 'x', BOB, 0o700)
        holder = other.take('x', uid=BOB).held()
        waiter = other.take('x', uid=BOB)
        until(lambda: len(server.entries('x')) == 2, 'all queue')
        # Nor does it wait for the new lock.
        for how in (fcntl.LOCK_EX, fcntl.LOCK_SH, fcntl.LOCK_EX | fcntl.LOCK_NB):
            check_user(errno.ENOENT, ALICE, fcntl.flock, files[0], how)
            check_user(errno.ENOENT, ALICE, fcntl.lockf, files[1], how)
        until(lambda: len(server.entries('x')) == 2, 'the others are gone')
        holder.release()
        waiter.held().release()
        until(lambda: not server.entries('x'), 'the lock is free')
        for how in (fcntl.LOCK_EX, fcntl.LOCK_SH, fcntl.LOCK_EX | fcntl.LOCK_NB):
            check_user(errno.ENOENT, ALICE, fcntl.flock, files[0], how)
        until(lambda: os.stat(a.path('x')).st_uid == BOB, 'a sees the new one')
        fresh = os.open(a.path('x', 'flock'), os.O_RDWR)
        check_user(0, BOB, fcntl.flock, fresh, fcntl.LOCK_EX | fcntl.LOCK_NB)
        check_user(errno.ENOENT, ALICE, fcntl.flock, files[2], fcntl.LOCK_EX)
        for fd in {*files, fresh}:
            os.close(fd)
        until(lambda: errno_of(os.rmdir, other.path('x')) == 0, 'it can be removed')
        until(lambda: not os.path.exists(a.path('x')), 'a sees that it is gone')


def only_entry(mount, lock):
    return mount.path(lock, 'queue', until(lambda: mount.queue(lock), 'a taker queues')[0])


def evict(path):
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC)
    try:
        os.write(fd, b'evict')
    finally:
        os.close(fd)


def evict_by_attribute(path):
    os.setxattr(path, 'user.evict', b'')


def eviction(server, a, b):
    """The taker, the present owner of the lock, and root may evict, by writing or by the attribute."""
    make(a, 'x', BOB)
    for how in (evict, evict_by_attribute):
        for uid in (ALICE, BOB, 0):
            holder = a.take('x', uid=ALICE).held()
            path = only_entry(b, 'x')
            check_equal((os.stat(path).st_uid, os.stat(path).st_mode & 0o777), (ALICE, 0o777), 'its owner and mode')
            check_user(errno.EPERM, 1003, how, path)
            check(holder.token() > 0, 'it was evicted by a stranger')
            check_user(0, uid, how, path)
            until(lambda: not server.entries('x'), 'it is gone')
            check_errno(errno.EIO, holder.token)
            holder.release()
        # The uid in an entry of another client is not believed: only the lock's owner and root
        # evict the entry.
        for uid in (BOB, 0):
            planted = server.zk.create('/locks/x/other-lock-', b'uid: 1001\n', ephemeral=True, sequence=True)
            path = only_entry(a, 'x')
            check_user(errno.EPERM, ALICE, how, path)
            check_user(0, uid, how, path)
            check(not server.zk.exists(planted), 'it is still there')
            until(lambda: not a.queue('x'), 'the queue is empty')
    # The lock's former owner may not.
    holder = a.take('x', uid=ALICE).held()
    fd = os.open(only_entry(a, 'x'), os.O_WRONLY)
    server.zk.set('/locks/x', record(1003))
    check_user(errno.EPERM, BOB, os.write, fd, b'evict')
    check(holder.token() > 0, 'it was evicted by the former owner')
    check_user(0, 1003, os.write, fd, b'evict')
    until(lambda: not server.entries('x'), 'it is gone')
    os.close(fd)
    holder.release()
    # Nothing else can be made or removed in the queue.
    queue = a.path('x', 'queue')
    for name in ('new', '0000000042-exclusive-1-a'):
        check_errno(errno.EPERM, os.mkdir, queue + '/' + name)
        check_errno(errno.EPERM, os.open, queue + '/' + name, os.O_WRONLY | os.O_CREAT)
        check_errno(errno.EPERM, os.symlink, 'x', queue + '/' + name)
        check_errno(errno.ENOENT, os.unlink, queue + '/' + name)
    for name in ('holder', 'lock', 'value', 'slots'):
        check_errno(errno.EPERM, os.unlink, a.path('x', name))
    until(lambda: errno_of(os.rmdir, a.path('x')) == 0, 'it can be removed')


def bound(server, a):
    """An open file of the queue belongs to one entry, also if another entry gets the name later."""
    make(a, 'x', BOB)
    lock_file = os.open(a.path('x', 'lock'), os.O_RDWR)
    path = only_entry(a, 'x')
    files = [os.open(path, os.O_RDWR) for _ in range(2)]
    old = os.stat(files[0]).st_ino
    os.close(lock_file)
    until(lambda: not server.entries('x'), 'the lock is free')
    os.rmdir(a.path('x'))
    make(a, 'x', BOB)
    lock_file = os.open(a.path('x', 'lock'), os.O_RDWR)
    until(lambda: os.path.exists(path) and os.stat(path).st_ino != old, 'another entry has that name')
    check_errno(errno.ENOENT, os.write, files[0], b'evict')
    check(os.read(lock_file, 64), 'it was evicted')
    os.close(lock_file)
    # Also when the name in ZooKeeper is the same.
    for _ in range(2):
        os.rmdir(a.path('x'))
        make(a, 'x', BOB)
        planted = server.zk.create('/locks/x/other-lock-', ephemeral=True, sequence=True)
        path = only_entry(a, 'x')
        files.append(os.open(path, os.O_WRONLY))
        if len(files) == 3:
            server.zk.delete(planted)
    until(lambda: os.stat(path).st_ino != os.stat(files[2]).st_ino, 'another entry has that name')
    check_errno(errno.ENOENT, os.write, files[2], b'evict')
    check(server.zk.exists(planted), 'it was evicted')
    evict_by_attribute(path)
    check(not server.zk.exists(planted), 'it is still there')
    for fd in files:
        os.close(fd)
    os.rmdir(a.path('x'))


def opened_by(uid, path, flags):
    os.seteuid(uid)
    try:
        return os.open(path, flags)
    finally:
        os.seteuid(0)


def handed_on(a):
    """What a user has opened may be the standard error of root's program, which writes what this
    user wants (sudo prompts so): it may do no more than the user. The next daemon knows that, too."""
    make(a, 'x', BOB)
    holder = a.take('x').held()
    path = only_entry(a, 'x')
    of_alice, of_bob = (opened_by(uid, path, os.O_WRONLY) for uid in (ALICE, BOB))
    number, value = (opened_by(BOB, a.path('x', name), os.O_WRONLY) for name in ('slots', 'value'))
    of_root = os.open(path, os.O_WRONLY)
    os.chown(a.path('x'), 1003, 1003)
    for change in (lambda: None, a.reload, a.adopt):
        change()
        check_errno(errno.EPERM, os.write, of_alice, b'evict')
        check_errno(errno.EPERM, os.write, number, b'2')
        check_user(errno.EPERM, ALICE, os.write, of_root, b'evict')
        check_user(errno.EPERM, 1003, os.write, of_bob, b'evict')
        check(holder.token() > 0, 'it was evicted')
    holder.release()
    # Not even in the holder's own process.
    lock_file = os.open(a.path('x', 'lock'), os.O_RDWR)
    check_errno(errno.EACCES, os.write, value, b'v42')
    check_errno(errno.EACCES, os.ftruncate, value, 0)
    own = os.open(a.path('x', 'value'), os.O_WRONLY)
    check_equal(os.write(own, b'v42'), 3, 'written by the holder')
    os.ftruncate(own, 0)
    os.close(lock_file)
    os.chown(a.path('x'), BOB, BOB)
    holder = a.take('x').held()
    for fd in (of_alice, of_bob, of_root, number, value, own):
        os.close(fd)
    of_bob = opened_by(BOB, only_entry(a, 'x'), os.O_WRONLY)
    check_equal(os.write(of_bob, b'evict'), 5, 'of the lock\'s owner, written by root')
    until(lambda: errno_of(holder.token) == errno.EIO, 'it is evicted')
    os.close(of_bob)
    holder.release()
    until(lambda: errno_of(os.rmdir, a.path('x')) == 0, 'it can be removed')


def test(case):
    os.umask(0)
    server = case.server(tick_ms=500)
    a, b = case.mount(server, 'a'), case.mount(server, 'b', session='6s')
    slots(server, a, b)
    rmdir(server, a)
    flock(server, a, b)
    eviction(server, a, b)
    bound(server, a)
    handed_on(a)


run(test)
