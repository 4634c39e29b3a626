#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a mapping of a file shows, and what splice(2) reads, is in memory that all users share. So
there is nothing of the files whose text differs by user: they have no size. Of other files there
is the text."""

import ctypes
import mmap
import os
import signal

from harness import NOBODY, check, check_equal, libc, run, until

libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)


def mapped(fd):
    """The text in the first page of a mapping, read by a child, and how the child ended. (Python's
    own mmap looks at the size first.)"""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        address = libc.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_PRIVATE, fd, 0)
        os.write(into, ctypes.string_at(address, 4096).rstrip(b'\0'))
        os._exit(0)
    os.close(into)
    with os.fdopen(out, 'rb') as file:
        text = file.read()
    return text, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def spliced(fd):
    out, into = os.pipe()
    try:
        if os.splice(fd, into, 4096) == 0:
            return b''
        return os.read(out, 4096)
    finally:
        os.close(out)
        os.close(into)


def check_nothing(fd, what):
    check_equal(mapped(fd), (b'', -signal.SIGBUS), what + ', mapped')
    check_equal(spliced(fd), b'', what + ', spliced')
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
    check_nothing(os.open(mount.path('.zklockfs', 'locks'), os.O_RDONLY), 'locks, by root')
    taker.release()
    until(lambda: 'of-root-alone' in mount.read('.zklockfs', 'history'), 'it is in history')
    check_nothing(os.open(mount.path('.zklockfs', 'history'), os.O_RDONLY), 'history, by root')
    for name, fd in files.items():
        check_nothing(fd, f'{name}, by a user')
    status = os.open(mount.path('.zklockfs', 'status'), os.O_RDONLY)
    check(mapped(status)[0].startswith(b'state: '), 'status is not there')
    check(spliced(status).startswith(b'state: '), 'status is not there')
    with open(mount.path('.zklockfs', 'history'), encoding='utf-8') as file:
        check('of-root-alone' in file.read(), 'history cannot be read any more')


run(test)
