# SPDX-License-Identifier: MIT
"""hostile.py - processes that make /proc slow, or that block each process that reads /proc."""

import fcntl
import os
import select

from harness import _CLONE_NEWNS, _MS_BIND, check, die_with_parent, let_janitor_go, libc


def many(path, count):
    """Very many descriptors."""
    return [os.open(path, os.O_RDONLY) for _ in range(count)]


def dear(_, count):
    """Descriptors that are slow to read in fdinfo, which lists each entry of an epoll."""
    event, epoll = os.eventfd(0), select.epoll()
    entries = [os.dup(event) for _ in range(count)]
    for entry in entries:
        epoll.register(entry, 0)
    for entry in entries:
        os.close(entry)   # the epoll keeps it as long as the file is open anywhere
    return event, epoll, [os.dup(epoll.fileno()) for _ in range(count)]


def dear_by_locks(path, count):
    """The same with a file of its own, as fdinfo lists each of its locks."""
    fd = os.open(f'{path}-{os.getpid()}', os.O_RDWR | os.O_CREAT)
    for number in range(count):
        fcntl.lockf(fd, fcntl.LOCK_EX, 1, 2 * number)
    return [os.dup(fd) for _ in range(count)]


def mounts(directory, path, count, uid=0):
    """Very many mounts in a namespace of its own, where descriptors have other mount numbers."""
    check(libc.unshare(_CLONE_NEWNS) == 0, 'unshare')
    for _ in range(count):
        libc.mount(directory.encode(), directory.encode(), None, _MS_BIND, None)
    os.setuid(uid)
    return [os.open(path, os.O_RDONLY) for _ in range(200)]


def stand_in_exec(hung, uid=0):
    """Start a child that stands still in exec: reading its files in /proc blocks."""
    pid = os.fork()
    if pid == 0:
        try:
            let_janitor_go()
            os.setuid(uid)
            die_with_parent()
            os.open(hung.path, os.O_RDONLY | os.O_CLOEXEC)
            os.execv('/bin/sleep', ['sleep', '1000'])
        finally:
            os._exit(1)
    hung.caught()
    return pid
