#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A daemon in a pid namespace of its own, such as a container, sees no process that uses the
mount: there each process of the user that holds the lock may write the value."""

import errno
import os

import harness
from harness import ALICE, BOB, as_user, check, check_equal, check_user, run, until, write_program

# The leak check needs the pids of /proc, which are not those of the new pid namespace.
WRAPPER = 'ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 exec unshare --pid --fork --kill-child "$ZKLOCKFS_BINARY" "$@"'


def write(path, data):
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


def test(case):
    wrapper = os.path.join(case.directory, 'zklockfs')
    write_program(wrapper, WRAPPER)
    os.environ['ZKLOCKFS_BINARY'] = harness.ZKLOCKFS
    harness.ZKLOCKFS = wrapper
    mount = case.mount(case.server(), 'a')
    os.umask(0)
    mount.mkdir('build')
    value = mount.path('build', 'value')

    check_equal(as_user(ALICE, write, value, b'x'), errno.EACCES, 'without a lock')
    holder = mount.take('build', uid=ALICE).held()
    name = mount.queue('build')[0]
    check_equal(mount.fields('build', 'queue', name)['pid'], '-', 'the pid that is shown')
    check_user(0, ALICE, write, value, b'mine')
    check_user(errno.EACCES, BOB, write, value, b'x')
    check_user(errno.EACCES, 0, write, value, b'x')
    check_equal(mount.read('build', 'value'), 'mine', 'the value')
    holder.release()
    until(lambda: not mount.queue('build'), 'it is free')
    check_user(errno.EACCES, ALICE, write, value, b'x')
    check(mount.read('build', 'value') == 'mine', 'the value was changed')


run(test)
