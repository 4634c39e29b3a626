#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A held descriptor reads as the fencing token (rule 28), a decimal number and a newline: the
czxid of the entry. The token rises from holder to holder, also when the lock is removed and
made again. The first read after a write gives the token again, at any position."""

import os

from harness import check, check_equal, run, until


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    a.mkdir('build')
    last = 0
    for mount in (a, b, a):
        fd = os.open(mount.path('build', 'lock'), os.O_RDWR)
        text = os.read(fd, 100)
        entry, = server.entries('build')
        czxid = server.zk.exists('/locks/build/' + entry).czxid
        check_equal(text, b'%d\n' % czxid, 'token')
        check(czxid > last, 'the token does not rise')
        last = czxid

        check_equal(os.read(fd, 100), b'', 'at the end')
        check_equal(os.pread(fd, 100, 0), text, 'pread')
        check_equal(os.pread(fd, len(text), 1), text[1:], 'pread of its rest')
        os.lseek(fd, 0, os.SEEK_SET)
        check_equal(os.read(fd, 3) + os.read(fd, 100), text, 'in two pieces')
        for reason in (b'x\n', b'a reason that is much longer than any token could be\n'):
            check_equal(os.write(fd, reason), len(reason), 'write')
            check_equal(os.read(fd, 100), text, 'after a write')
            check_equal(os.read(fd, 100), b'', 'at the end again')
        os.close(fd)
        until(lambda: not server.entries('build'), 'the lock is free')

    # Python's own files, which seek, buffer and append
    for mode in ('r+', 'w+', 'a+'):
        with open(a.path('build', 'lock'), mode, encoding='ascii') as file:
            file.write('from Python\n')
            file.flush()
            file.seek(0)
            token = int(file.readline())
            check(token > last, f'mode {mode}: {token}')
            last = token
        until(lambda: not server.entries('build'), 'the lock is free')

    os.rmdir(a.path('build'))
    a.mkdir('build')
    check(a.take('build').held().token() > last, 'the token falls when a lock is made again')


run(test)
