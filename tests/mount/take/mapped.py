#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a mapping of a file shows is in memory that all users share. So it shows nothing of the
files whose text differs by user. Of other files it shows the text."""

import mmap
import os

from harness import NOBODY, check, check_equal, run, until


def mapped(path, fd=None):
    fd = os.open(path, os.O_RDONLY) if fd is None else fd
    try:
        with mmap.mmap(fd, 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ) as memory:
            return bytes(memory).rstrip(b'\0')
    finally:
        os.close(fd)


def opened_by_nobody(path):
    os.seteuid(NOBODY)
    try:
        return os.open(path, os.O_RDONLY)
    finally:
        os.seteuid(0)


def test(case):
    server = case.server()
    mount = case.mount(server)
    mount.mkdir('secret', 0o700)
    taker = mount.take('secret').held()
    taker.do('write', b'of-root-alone\n')
    files = {name: opened_by_nobody(mount.path('.zklockfs', name)) for name in ('history', 'locks')}
    until(lambda: 'of-root-alone' in mount.read('.zklockfs', 'locks'), 'it is in locks')
    check_equal(mapped(mount.path('.zklockfs', 'locks')), b'', 'locks, mapped by root')
    taker.release()
    until(lambda: 'of-root-alone' in mount.read('.zklockfs', 'history'), 'it is in history')
    check_equal(mapped(mount.path('.zklockfs', 'history')), b'', 'history, mapped by root')
    for name, fd in files.items():
        check_equal(mapped(None, fd), b'', f'{name}, mapped by a user')
    check(mapped(mount.path('.zklockfs', 'status')).startswith(b'state: '), 'status is not there')
    with open(mount.path('.zklockfs', 'history'), encoding='utf-8') as file:
        check('of-root-alone' in file.read(), 'history cannot be read any more')


run(test)
