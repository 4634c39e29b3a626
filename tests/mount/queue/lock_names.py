#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which names a lock can have: the path of the file is the path of the znode. Names that would
look like something else are refused when the lock is made."""

import errno
import os

from harness import check, check_equal, check_errno, errno_of, run

GOOD = ('x' * 255, 'ü' * 127, 'with space', 'größe', '日本', 'a@b', 'backup@home.service',
        'order-170000000', '0123456789x', 'zookeeper', 'locks', "quote'\"", 'back\\slash', '$(id)', '-f', 'a..b', 'lock2', 'CON')
BAD = ('.x', '.zklockfs2', '...', 'lock@x', 'shared@x', 'try@x', 'flock@x', 'reentrant@5s',
       'a\x01b', 'a\nb', '\x7f', 'a\u0085b', '\U0001f512', '\ufffe', b'a\xffb', b'\xc3',
       'order-1700000000', '0000000001', 'lock', 'shared', 'try', 'reentrant', 'flock', 'queue', 'holder',
       'value', 'slots')


def test(case):
    server = case.server()
    mount = case.mount(server)
    mount.mkdir('build')
    for name in GOOD:
        mount.mkdir(name)
        check(server.zk.exists('/locks/' + name), f'{name!r} is another node')
        os.close(os.open(mount.path(name, 'try'), os.O_RDWR))
    check_equal(sorted(mount.locks()), sorted(GOOD + ('build',)), 'the locks')
    for name in GOOD:
        os.rmdir(mount.path(name))

    root, build = os.fsencode(mount.directory), os.fsencode(mount.path('build'))
    for name in map(os.fsencode, BAD):
        for parent in (root, build):
            path = os.path.join(parent, name)
            wanted = (errno.EINVAL, errno.EEXIST) if parent == build else (errno.EINVAL,)
            got = errno_of(os.mkdir, path)
            check(got in wanted, f'mkdir {path!r}: {errno.errorcode.get(got, got)}')
    check_errno(errno.EEXIST, os.mkdir, mount.path('build', 'lock'))
    check_errno(errno.ENAMETOOLONG, os.mkdir, mount.path('x' * 256))
    check_equal(server.zk.children('/locks/build'), [], 'children')

    # Deep paths have a bound, too, and do not hang or break the mount.
    path = mount.path('d' * 200)
    while (got := errno_of(os.mkdir, path)) == 0:
        path += '/' + 'd' * 200
    check_equal(got, errno.ENAMETOOLONG, 'mkdir of a path that is too long')
    while path := os.path.dirname(path):
        if path == mount.directory:
            break
        os.rmdir(path)
    os.close(os.open(mount.path('build', 'try'), os.O_RDWR))


run(test)
