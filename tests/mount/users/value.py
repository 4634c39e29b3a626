#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`value` stays with a lock from holder to holder (rule 20). All users that may take the lock
may read it. Only an exclusive holder or a descendant of it writes it, on the same mount, and
not after a loss. The first write of an open, and any at offset 0, replaces the text; others
append. A process that may write the value may empty it, by O_TRUNC or truncate(2); others may
not."""

import errno
import os
import shutil

from clan import Clan
from harness import ALICE, BOB, check, check_equal, check_errno, check_user, command, run, shells, until

LARGEST = 64 * 1024
REWRITE = os.O_WRONLY | os.O_TRUNC


def write(path, *pieces, flags=REWRITE):
    fd = os.open(path, flags)
    try:
        for piece in pieces:
            check_equal(os.write(fd, piece), len(piece), 'bytes written')
    finally:
        os.close(fd)


def content(path):
    with open(path, 'rb') as file:
        return file.read()


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    os.umask(0)
    a.mkdir('build')
    value, lock = a.path('build', 'value'), a.path('build', 'lock')
    clan = Clan(case)
    holder, stranger = clan.member(), clan.member()
    child = holder.fork()
    grandchild = child.fork()

    def everywhere(wanted):
        for mount in (a, b):
            check_equal(content(mount.path('build', 'value')), wanted, f'the value on {mount.host}')

    def by(member, data, path=value, flags=os.O_WRONLY):
        """The errno of one write by a member."""
        opening = member.open(path, flags).held()
        try:
            opening.do('write', data)
            return 0
        except OSError as err:
            return err.errno
        finally:
            opening.close()

    # Without a holder, with a shared holder, with a waiter.
    everywhere(b'')
    check(os.stat(value).st_size >= LARGEST, 'the size of the value')
    check_equal(by(holder, b'x'), errno.EACCES, 'without a lock')
    shared = holder.open(a.path('build', 'shared')).held()
    check_equal(by(holder, b'x'), errno.EACCES, 'by a shared holder')
    waiting = holder.open(lock)
    until(lambda: len(server.entries('build')) == 2, 'it waits')
    check_equal(by(holder, b'x'), errno.EACCES, 'by a waiter')
    shared.close()
    waiting.held()

    # The holder, and its descendants.
    check_equal(by(holder, b'v42\n'), 0, 'by the holder')
    everywhere(b'v42\n')
    check_equal(by(child, b'v43'), 0, 'by its child')
    check_equal(by(grandchild, b'v44'), 0, 'by its grandchild')
    everywhere(b'v44')
    check_equal(by(stranger, b'x'), errno.EACCES, 'by a stranger')
    check_equal(by(holder, b'x', b.path('build', 'value')), errno.EACCES, 'on another mount')
    for path in (value, b.path('build', 'value')):
        stranger.refused(errno.EACCES, path, REWRITE)
        opening = stranger.open(path, os.O_WRONLY).held()
        check_errno(errno.EACCES, opening.do, 'ftruncate', 0)
        opening.close()
    everywhere(b'v44')
    waiting.close()
    check_equal(by(holder, b'x'), errno.EACCES, 'after the close')

    # Several writes by one open.
    held = os.open(lock, os.O_RDWR)
    write(value, b'one', b' and ', b'two')
    everywhere(b'one and two')
    write(value, b'\n\n\0\xff', b'')
    everywhere(b'\n\n\0\xff')
    write(value, b'first', flags=os.O_WRONLY | os.O_APPEND)
    everywhere(b'first')
    fd = os.open(value, os.O_RDWR)
    check_equal(os.read(fd, 100), b'first', 'read before')
    os.write(fd, b'second')
    os.pwrite(fd, b'third', 100)
    everywhere(b'secondthird')
    os.pwrite(fd, b'fourth', 0)
    everywhere(b'fourth')
    os.close(fd)
    os.truncate(value, 0)
    everywhere(b'')
    write(value, b'fifth')
    os.close(os.open(value, REWRITE))
    everywhere(b'')
    fd = os.open(value, os.O_RDWR | os.O_TRUNC)
    os.write(fd, b'sixth')
    check_errno(errno.EINVAL, os.ftruncate, fd, 3)
    everywhere(b'sixth')
    os.ftruncate(fd, 0)
    everywhere(b'')
    os.pwrite(fd, b'seventh', 0)
    os.close(fd)
    fd = os.open(value, os.O_RDONLY | os.O_TRUNC)
    check_equal(os.read(fd, 10), b'', 'read after O_TRUNC')
    os.close(fd)
    everywhere(b'')
    check_equal(command(['bash', '-c', 'echo at once 1<>"$1"', 'sh', value])[0], 0, 'without a truncation')
    everywhere(b'at once\n')
    for shell in shells():
        text = ' '.join(shell)
        check_equal(command([*shell, '-c', f'echo {text} >"$1"', 'sh', value])[0], 0, text)
        everywhere(f'{text}\n'.encode())

    # Sizes.
    large = os.urandom(LARGEST)
    write(value, large)
    everywhere(large)
    check_errno(errno.EFBIG, write, value, large + b'x')
    check_errno(errno.EFBIG, write, value, large, b'x')
    everywhere(large)
    source = os.path.join(case.directory, 'source')
    with open(source, 'wb') as file:
        file.write(large[:10000])
    check_equal(command(['dd', 'if=' + source, 'of=' + value, 'bs=999'])[0], 0, 'dd')
    everywhere(large[:10000])
    copy = os.path.join(case.directory, 'copy')
    shutil.copyfile(value, copy)
    check_equal(content(copy), large[:10000], 'copied')

    # Mode and owner are as before; the lock files' mode is the value's.
    os.chmod(a.path('build'), 0o750)
    write(value, b'mine')
    check_equal(server.zk.get('/locks/build')[0],
                b'zklockfs: 1\nuid: 0\ngid: 0\nmode: 750\ndoor_mode: 666\n\nmine', 'the data')
    os.chmod(a.path('build'), 0o755)
    until(lambda: os.stat(value).st_mode & 0o777 == 0o666, 'the mode')
    check_user(0, BOB, content, value)
    check_user(0, BOB, write, value, b'a descendant, as another user')
    everywhere(b'a descendant, as another user')
    os.chmod(lock, 0o600)
    until(lambda: os.stat(value).st_mode & 0o777 == 0o600, 'the mode')
    check_user(errno.EACCES, BOB, content, value)
    os.chmod(lock, 0o666)
    until(lambda: os.stat(value).st_mode & 0o777 == 0o666, 'the mode')

    # The next holder finds it.
    other = b.take('build')
    until(lambda: len(server.entries('build')) == 2, 'the other waits')
    write(value, b'for you')
    os.close(held)
    other.held()
    check_equal(content(b.path('build', 'value')), b'for you', 'for the next holder')
    other.release()

    # A loss ends the right to write at once.
    opening = holder.open(lock).held()
    check_equal(by(holder, b'held'), 0, 'by the holder')
    server.zk.delete(f'/locks/build/{server.entries("build")[0]}')
    check_equal(by(holder, b'lost'), errno.EIO, 'by a taker that has lost it')
    a.said('lost')
    check_equal(by(child, b'lost'), errno.EIO, 'by the child of a taker that has lost it')
    everywhere(b'held')
    holder.refused(errno.EIO, value, REWRITE)
    everywhere(b'held')
    opening.close()
    check_equal(by(holder, b'x'), errno.EACCES, 'after the close')
    holder.refused(errno.EACCES, value, REWRITE)

    # The process that took the lock has ended, and its child has it: now its user may write.
    opening = holder.open(lock).held()
    orphan = holder.fork()
    check_equal(by(stranger, b'x'), errno.EACCES, 'by a stranger while the opener lives')
    holder.kill()
    holder.gone()
    check_equal(by(orphan, b'orphan'), 0, 'by the orphan')
    for uid in (ALICE, BOB):
        check_user(errno.EACCES, uid, write, value, b'x')
    everywhere(b'orphan')
    orphan.kill()
    orphan.gone()

    # By flock(1); and the value of a lock that does not exist.
    script = 'exec 9<>"$1/flock" && flock 9 && echo flock >"$1/value" && flock -u 9 && ! echo x >"$1/value"'
    check_equal(command(['bash', '-c', script, 'sh', a.path('build')])[0], 0, 'flock')
    everywhere(b'flock\n')
    check_errno(errno.ENOENT, content, a.path('none', 'value'))


run(test)
