# SPDX-License-Identifier: MIT
"""hostile.py - processes that make /proc slow, or make whoever reads there wait."""

import os
import signal

from harness import _CLONE_NEWNS, _MS_BIND, check, die_with_parent, libc


def process(work, *args, uid=0):
    """Does that, and stays."""
    ready, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(ready)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            if uid:
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
            die_with_parent()
            kept = work(*args)
            os.write(theirs, b'.')
            os.close(theirs)
            signal.pause()
            del kept
        finally:
            os._exit(1)
    os.close(theirs)
    check(os.read(ready, 1) == b'.', f'{work.__name__} is done')
    os.close(ready)
    return pid


def many(path, count):
    """Very many descriptors."""
    return [os.open(path, os.O_RDONLY) for _ in range(count)]


def mounts(directory, path, count):
    """Very many mounts in a namespace of its own, where descriptors have other mount numbers."""
    check(libc.unshare(_CLONE_NEWNS) == 0, 'unshare')
    for _ in range(count):
        libc.mount(directory.encode(), directory.encode(), None, _MS_BIND, None)
    return [os.open(path, os.O_RDONLY) for _ in range(200)]


def stand_in_exec(hung):
    """A child that does, where what is read of it in /proc waits."""
    pid = os.fork()
    if pid == 0:
        try:
            die_with_parent()
            os.open(hung.path, os.O_RDONLY | os.O_CLOEXEC)
            os.execv('/bin/sleep', ['sleep', '1000'])
        finally:
            os._exit(1)
    hung.caught()
    return pid
