#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""While nothing is mounted, nobody can make files at the mount point, which would look like locks:
root's mount has made the empty directory unusable, also when it then failed. What is in use, is
somebody else's, or is wanted so, stays as it is, with a line in the log."""

import errno
import os
import stat
import subprocess

from harness import (ALICE, CRASHES, ZKLOCKFS, check, check_equal, check_errno, command, libc, mounted,
                     run, set_immutable, until)

MADE = 'the empty mount point is made unusable (chmod 000, chattr +i)'


def test(case):
    if CRASHES:
        return
    server = case.server()
    source = f'127.0.0.1:{server.port}/locks'

    def mount(point, *options, wanted=0):
        got, _, err = command([ZKLOCKFS, '-o', ','.join(('host=a', *options) + ('connect_timeout=1s',) * bool(wanted)), source, point])
        check_equal(got, wanted, f'the mount with {options}: {err}')
        return err

    def unmount(point):
        check_equal(libc.umount2(os.fsencode(point), 0), 0, 'umount')
        until(lambda: not case.daemons(), 'the daemon ends')

    def mode(point):
        return stat.S_IMODE(os.stat(point).st_mode)

    point = case.mount_point()
    check(MADE in mount(point), 'it does not say what it does')
    unmount(point)
    check_equal((mode(point), set_immutable(point, True)), (0, True), 'the bare mount point')
    # The line that is printed everywhere; root is not stopped by a mode.
    for flags in (os.O_RDWR | os.O_CREAT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
        check_errno(errno.EPERM, os.open, point + '/lock', flags)
    check_errno(errno.EPERM, os.mkdir, point + '/build')
    check('mount point' not in mount(point), 'it says it again')
    os.mkdir(point + '/build')
    unmount(point)

    # As it was is as it stays.
    plain = case.mount_point()
    os.chmod(plain, 0o751)
    mount(plain, 'noprotect')
    unmount(plain)
    check_equal((mode(plain), set_immutable(plain, False)), (0o751, False), 'with noprotect')
    os.mkdir(plain + '/build')
    check('the mount point is not empty' in mount(plain), 'it says nothing')
    unmount(plain)
    check_equal((mode(plain), set_immutable(plain, False)), (0o751, False), 'that is not empty')

    foreign = case.mount_point()
    os.chown(foreign, ALICE, ALICE)
    check("the mount point is another user's" in mount(foreign), 'it says nothing')
    unmount(foreign)
    check_equal((mode(foreign), set_immutable(foreign, False)), (0o700, False), "another user's")

    # Another filesystem is mounted there, which may be in use elsewhere.
    other = case.mount_point()
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'mode=700', 'other', other], check=True)
    mount(other)
    unmount(other)
    check_equal((mode(other), set_immutable(other, False)), (0o700, False), 'another filesystem')
    unmount(other)

    # A filesystem without the flag.
    without = case.mount_point()
    subprocess.run(['mount', '-t', 'ramfs', 'without', without], check=True)
    os.mkdir(without + '/locks')
    err = mount(without + '/locks')
    unmount(without + '/locks')
    check_equal(mode(without + '/locks'), 0, 'its mode')
    check('cannot be made immutable' in err, err)
    unmount(without)

    # Nothing can be mounted: all the more reason.
    server.stop()
    late = case.mount_point()
    check(MADE in mount(late, wanted=32), 'it does not say what it does')
    check(mounted(late) is None, 'it was mounted')
    check_equal((mode(late), set_immutable(late, True)), (0, True), 'after a mount that failed')


run(test)
