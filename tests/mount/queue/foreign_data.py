#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Data of other clients in a lock's node is never overwritten: chmod, chown, slots and value
are EPERM, and the value reads as that data. An empty node gets our record with its first
change; until then its owner and mode are the mount's options. Lines of later versions stay."""

import errno
import os
import stat

from harness import ALICE, Stopwatch, check_equal, check_errno, run, until

FOREIGN = (b'10.0.0.1', b'\n', b'\0\xff', b'zklockfs: 2\nuid: 1\n', b'zklockfs: 1', b'x' * 200000)


def write(path, data):
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


def content(path):
    with open(path, 'rb') as file:
        return file.read()


def shown(mount, lock):
    directory, lock_file, slots = (os.stat(mount.path(lock, name)) for name in ('', 'lock', 'slots'))
    return (directory.st_uid, directory.st_gid, oct(stat.S_IMODE(directory.st_mode)),
            oct(stat.S_IMODE(lock_file.st_mode)), slots.st_uid)


def test(case):
    server = case.server()
    a = case.mount(server, 'a')
    b = case.mount(server, 'b', options=['uid=1001', 'gid=2000', 'umask=007'])

    for number, data in enumerate(FOREIGN):
        lock = f'lock{number}'
        server.zk.create(f'/locks/{lock}', data)
        check_equal(shown(a, lock), (0, 0, '0o755', '0o600', 0), 'the mounter\'s')
        check_equal(shown(b, lock), (ALICE, 2000, '0o1770', '0o660', ALICE), 'the options\'')
        holder = os.open(a.path(lock, 'lock'), os.O_RDWR)
        check_errno(errno.EPERM, os.chmod, a.path(lock), 0o700)
        check_errno(errno.EPERM, os.chmod, a.path(lock, 'lock'), 0o666)
        check_errno(errno.EPERM, os.chown, a.path(lock), ALICE, -1)
        check_errno(errno.EPERM, write, a.path(lock, 'slots'), b'2')
        check_errno(errno.EPERM, write, a.path(lock, 'value'), b'mine')
        os.chmod(a.path(lock), 0o755)   # as it is
        check_equal(server.zk.get(f'/locks/{lock}')[0], data, 'its data')
        check_equal(content(a.path(lock, 'value')), data, 'its value')
        check_equal(a.read(lock, 'slots'), '1\n', 'its slots')
        os.close(holder)

    # An empty node gets the change, and the mount's options for the rest.
    server.zk.create('/locks/empty')
    os.chmod(b.path('empty', 'lock'), 0o600)
    check_equal(server.zk.get('/locks/empty')[0],
                b'zklockfs: 1\nuid: 1001\ngid: 2000\nmode: 770\ndoor_mode: 600\n\n', 'after chmod')
    watch = Stopwatch()
    until(lambda: shown(a, 'empty') == (ALICE, 2000, '0o1770', '0o600', ALICE), 'the other mount sees it')
    watch.check(0, 2, 'the other mount sees it')
    server.zk.create('/locks/limited')
    write(a.path('limited', 'slots'), b'2')
    check_equal(server.zk.get('/locks/limited')[0],
                b'zklockfs: 1\nuid: 0\ngid: 0\nmode: 755\ndoor_mode: 600\nslots: 2\n\n', 'after slots')
    # A value says nothing of the owner.
    server.zk.create('/locks/valued')
    holder = os.open(a.path('valued', 'lock'), os.O_RDWR)
    write(a.path('valued', 'value'), b'v1')
    check_equal(server.zk.get('/locks/valued')[0], b'zklockfs: 1\n\nv1', 'after value')
    check_equal(shown(b, 'valued'), (ALICE, 2000, '0o1770', '0o660', ALICE), 'its owner')
    os.close(holder)

    # A record of a later version.
    head = b'zklockfs: 1\nuid: 0\nfuture: x\ngid: 0\nmode: 755\ndoor_mode: 600\nslots: 2\n'
    server.zk.create('/locks/later', head + b'more\n\nthe value\n')
    check_equal(shown(a, 'later'), (0, 0, '0o755', '0o600', 0), 'its owner')
    os.chmod(a.path('later'), 0o711)
    holder = os.open(a.path('later', 'lock'), os.O_RDWR)
    fd = os.open(a.path('later', 'value'), os.O_WRONLY)
    os.write(fd, b'another')
    os.close(fd)
    check_equal(server.zk.get('/locks/later')[0],
                b'zklockfs: 1\nuid: 0\ngid: 0\nmode: 711\ndoor_mode: 600\nslots: 2\nfuture: x\nmore\n\nanother',
                'after both')
    os.close(holder)


run(test)
