#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""x-systemd.automount of fstab(5): whoever opens the directory waits for the mount command, which the
kernel knows by its process group. The command mounts before any of its processes leaves that group,
and afterwards none is in it. This test plays systemd."""

import ctypes
import fcntl
import os
import select
import struct
import sys

from harness import WAIT_SECONDS, ZKLOCKFS, check, check_equal, command, die_with_parent, libc, run, until

READY, FAILED = 0x9360, 0x9361     # AUTOFS_IOC_READY, AUTOFS_IOC_FAIL


def serve(point, pipes, source, options):
    """The process whose group may look: mounts when somebody else does. Returns a status."""
    reads, writes = pipes
    what = f'fd={writes},pgrp={os.getpgrp()},minproto=5,maxproto=5,direct'
    if libc.mount(b'automount', point.encode(), b'autofs', 0, what.encode()) != 0:
        return 2 if ctypes.get_errno() in (1, 19) else 3     # EPERM, ENODEV: not in this kernel
    root = os.open(point, os.O_RDONLY | os.O_DIRECTORY)
    os.write(1, b'.')
    os.close(writes)
    if not select.select([reads], [], [], WAIT_SECONDS)[0]:
        return 4
    token = struct.unpack('<I', os.read(reads, 400)[8:12])[0]
    try:
        status, _, err = command([ZKLOCKFS, *options, source, point], seconds=WAIT_SECONDS)
    except BaseException as error:
        status, err = 5, str(error)
    print(err, file=sys.stderr, flush=True)
    fcntl.ioctl(root, FAILED if status else READY, token)
    return status


def trigger(case, source, options):
    point = case.mount_point()
    pipes, told = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 6
        try:
            die_with_parent()
            os.setpgid(0, 0)
            os.dup2(told[1], 1)
            os.close(told[1])
            status = serve(point, pipes, source, options)
        finally:
            os._exit(status)
    for fd in (*pipes, told[1]):
        os.close(fd)
    if not os.read(told[0], 1):
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        check_equal(status, 2, 'the automount point')
        print('this kernel has no autofs')
        return False
    os.close(told[0])
    check('.zklockfs' in os.listdir(point), 'the mount is not there')
    check_equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, 'the mount command')
    check_equal([os.getpgid(each) for each in case.daemons() if os.getpgid(each) == pid], [], 'left in the group')
    check_equal(libc.umount2(os.fsencode(point), 0), 0, 'umount')
    until(lambda: not case.daemons(), 'the daemon ends')
    check_equal(libc.umount2(os.fsencode(point), 2), 0, 'umount of the automount point')
    return True


def test(case):
    server = case.server()
    source = f'127.0.0.1:{server.port}/locks'
    for options in (['-o', 'noprotect'], [], ['-o', 'nokeeper']):
        if not trigger(case, source, options):
            return


run(test)
