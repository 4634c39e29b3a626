#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The names that a mount and a lock list, and their file types."""

import os
import stat

from harness import check, check_equal, mounted, run


def test(case):
    mount = case.mount(case.server())
    check('.zklockfs' not in mount.locks() and not mount.locks(), 'locks in a new mount')
    mount.mkdir('build')
    mount.mkdir('build/deploy')
    check_equal(mount.locks(), ['build'], 'the root')
    check_equal(sorted(os.listdir(mount.path('build'))),
                ['deploy', 'flock', 'holder', 'lock', 'queue', 'reentrant', 'shared', 'slots', 'try', 'value'], 'a lock')
    check_equal(os.listdir(mount.path('build', 'queue')), [], 'a new queue')
    check('status' in os.listdir(mount.path('.zklockfs')), 'no .zklockfs/status')
    for name in ('build', 'build/deploy', 'build/queue', '.zklockfs'):
        check(stat.S_ISDIR(os.stat(mount.path(name)).st_mode), f'{name} is no directory')
    for name in ('build/lock', 'build/shared', 'build/try', 'build/reentrant', 'build/flock',
                 'build/lock@30s', 'build/holder', 'build/value', 'build/slots',
                 '.zklockfs/status'):
        check(stat.S_ISREG(os.stat(mount.path(name)).st_mode), f'{name} is no regular file')
    # A read from any offset gives these names and no others.
    names = os.listdir(mount.path('build'))
    fd = os.open(mount.path('build'), os.O_RDONLY | os.O_DIRECTORY)
    for offset in range(200):
        os.lseek(fd, offset, os.SEEK_SET)
        found = os.listdir(fd)
        check(set(found) <= set(names), f'names from {offset} on: {found}')
        check(offset > 0 or found == names, f'names from the start: {found}')
    os.close(fd)
    os.statvfs(mount.directory)   # df
    # An entry's x bit must never make text of another host a program.
    options = mounted(mount.directory).split(' - ')[0].split()[5].split(',')
    check({'nosuid', 'nodev', 'noexec'} <= set(options), f'mount options {options}')


run(test)
