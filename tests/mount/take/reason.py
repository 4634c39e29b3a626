#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A write to the held descriptor sets the reason that `holder`, the queue entry and the entry's
data show: its first line, at most 4096 bytes, with ? for control characters and bytes that are
not UTF-8. A write to an open file of `flock` before it locks sets the reason of waiters, too."""

import errno
import os
from fcntl import F_RDLCK, F_SETLKW, F_UNLCK, LOCK_EX, LOCK_UN

from locker import Locker
from harness import check, check_equal, check_errno, run, until


def before_the_lock(server, a, b):
    a.mkdir('later')
    holder = b.take('later').held()
    p = Locker(a, 'later')
    fd = p.do('open')
    check_equal(p.do('write', fd, b'first\n'), 6, 'bytes written')
    check_equal(p.do('write', fd, b'waiting\t for v42\nmore\n'), 22, 'bytes written')
    p.fails(errno.EFBIG, 'write', fd, b'x' * 256)
    check_equal(len(server.entries('later')), 1, 'entries, before any process asks')
    p.ask('flock', fd, LOCK_EX)
    until(lambda: len(server.entries('later')) == 2, 'it waits')
    for mount in (a, b):
        check_equal(mount.fields('later', 'queue', mount.queue('later')[1])['reason'], 'waiting? for v42',
                    f'the reason of a waiter, on {mount.host}')
    holder.release()
    p.got()
    # At a file position behind the written text.
    check(int(p.do('read', fd, 64)) > 0, 'the token')
    check(b.read('later', 'holder').endswith(' reason=waiting? for v42\n'), b.read('later', 'holder'))
    p.do('write', fd, b'at work')
    until(lambda: b.read('later', 'holder').endswith(' reason=at work\n'), 'a reason while it holds')
    # The reason from before the lock is used for each later lock by this open file.
    p.do('flock', fd, LOCK_UN)
    p.do('setlk', fd, F_RDLCK, F_SETLKW)
    check(b.read('later', 'holder').endswith(' reason=waiting? for v42\n'), b.read('later', 'holder'))
    p.do('setlk', fd, F_UNLCK)
    p.do('write', fd, b'\n')
    p.do('flock', fd, LOCK_EX)
    check(b.read('later', 'holder').endswith(' reason=-\n'), b.read('later', 'holder'))
    p.do('close', fd)


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    a.mkdir('build')
    fd = os.open(a.path('build', 'lock'), os.O_RDWR)

    def shown(reason):
        def everywhere():
            node, = server.entries('build')
            entry, = b.queue('build')
            return (a.read('build', 'holder').endswith(reason + '\n')
                    and b.read('build', 'holder').endswith(reason + '\n')
                    and b.fields('build', 'queue', entry)['reason'] == reason
                    and reason.encode() in server.zk.get('/locks/build/' + node)[0])
        until(everywhere, f'the reason is {reason[:50]!r} everywhere')

    for written, reason in ((b'deploying v42\n', 'deploying v42'), (b'rolled back', 'rolled back'),
                            (b'the first line\nsecond\n', 'the first line'),
                            (b'a\tb\033[31m\x7f', 'a?b?[31m?'),
                            (b'\xc2\x9b2J \x9b2J \xe2\x80\xa8 \xff', '??2J ?2J ??? ?'), ('größer'.encode(), 'größer')):
        check(os.write(fd, written) == len(written), 'a short write')
        shown(reason)

    check_errno(errno.EFBIG, os.write, fd, b'x' * 4097)
    check_errno(errno.EFBIG, os.write, fd, b'x' * 100000)
    shown('größer')
    check(os.write(fd, b'y' * 4096) == 4096, 'a short write')
    shown('y' * 4096)
    before_the_lock(server, a, b)


run(test)
