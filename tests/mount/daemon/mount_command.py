#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`mount -t fuse.zklockfs` with options as in fstab, the helper that `mount -t zklockfs` runs, and
umount."""

import os

from harness import ZKLOCKFS, besides_usual, check, check_equal, command, mounted, run, until


def install():
    """Install in the test's own mount namespace: mount(8) searches the default PATH only."""
    check_equal(command(['mount', '-t', 'tmpfs', 'none', '/usr/local/sbin'])[0], 0, 'mount of a tmpfs')
    os.symlink(ZKLOCKFS, '/usr/local/sbin/zklockfs')


def call_helper(source, path):
    """Call the helper as mount(8) does, which looks for helpers in /sbin alone."""
    helper = os.path.join(os.path.dirname(ZKLOCKFS), 'mount.zklockfs')
    before = [helper, source, path]
    check_equal(command(before + ['-f', '-o', 'rw', '-t', 'zklockfs']), (0, '', ''), 'a mount that is none')
    check(mounted(path) is None, '-f mounts')
    check(command(before + ['-N', '/proc/self/ns/mnt'])[0] != 0, '-N is taken')
    check(command([helper, source])[0] != 0, 'no mount point is needed')
    check(mounted(path) is None, 'mounted in spite of it')
    check_equal(besides_usual(command(before + ['-sn', '-v', '-o', 'rw,_netdev,host=web2', '-t', 'zklockfs'])), (0, '', ''),
                'mount.zklockfs')
    check(' - fuse.zklockfs ' in (mounted(path) or ''), f'mountinfo: {mounted(path)}')
    check_equal(command(['umount', path]), (0, '', ''), 'umount')


def test(case):
    install()
    server = case.server()
    path = case.mount_point()
    source = f'127.0.0.1:{server.port}/locks'
    for options in ('defaults', 'session_timeout=20s,tick_time=2s,host=web1', '_netdev,nofail,noatime'):
        said = command(['mount', '-t', 'fuse.zklockfs', '-o', options, source, path])
        check_equal(besides_usual(said), (0, '', ''), f'mount -o {options}')
        line = mounted(path)
        check(line and f' - fuse.zklockfs {source} ' in line, f'mountinfo: {line}')
        for option in ('nosuid', 'nodev', 'noexec'):
            check(option in line.split()[5].split(','), f'{option} is missing: {line}')
        if not os.path.isdir(path + '/build'):
            os.mkdir(path + '/build')
        fd = os.open(path + '/build/try', os.O_RDWR)
        if 'host=web1' in options:
            entry, = server.entries('build')
            check(f'-web1.{os.getpid()}-lock-' in entry, f'the option came to nothing: {entry}')
        os.close(fd)
        check_equal(command(['umount', path]), (0, '', ''), 'umount')
        until(lambda: not case.daemons(), 'the daemon ends')

    status, _, err = command(['mount', '-t', 'fuse.zklockfs', '-o', 'session_timeout=1', source, path])
    check(status != 0 and err, 'a bad option passes')
    check(mounted(path) is None, 'mounted in spite of it')
    call_helper(source, path)
    until(lambda: not case.daemons(), 'the daemon ends')


run(test)
