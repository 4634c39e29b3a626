#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A write to the held descriptor sets the reason that `holder`, the queue entry
and the entry's data show: its first line, 4096 bytes at most, control characters and
what is not UTF-8 as ?."""

import errno
import os

from harness import check, check_errno, run, until


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


run(test)
