#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The lock is held until the last descriptor of its open is closed, in any process. dup,
fork and exec keep it; when all descriptors are closed, it is given back."""

import os
import signal
import subprocess

from harness import check_equal, errno_of, run, spawn, until


def test(case):
    server = case.server()
    mount = case.mount(server)
    mount.mkdir('build')
    lock_file, trying = mount.path('build', 'lock'), mount.path('build', 'try')

    def held():
        return errno_of(os.open, trying, os.O_RDWR) != 0

    # dup
    first = os.open(lock_file, os.O_RDWR)
    second = os.dup(first)
    os.close(first)
    check_equal(held(), True, 'held by the copy')
    os.close(second)
    check_equal(held(), False, 'held after the last close')

    # fork: the child has the lock when the parent has closed its descriptor
    first = os.open(lock_file, os.O_RDWR)
    end, child_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(child_end)
        os.read(end, 1)
        os._exit(0)
    os.close(first)
    check_equal(held(), True, 'held by the child')
    os.close(child_end)
    os.waitpid(child, 0)
    os.close(end)
    check_equal(held(), False, 'held after the child')

    # exec
    process = spawn(['bash', '-c', 'exec 9<>"$1" || exit 75; echo taken; exec sleep 1000', 'bash', lock_file],
                    stdout=subprocess.PIPE)
    check_equal(process.stdout.readline(), b'taken\n', 'bash')
    until(lambda: os.readlink(f'/proc/{process.pid}/exe').endswith('sleep'), 'bash has become sleep')
    check_equal(held(), True, 'held over exec')
    process.send_signal(signal.SIGTERM)
    process.wait()
    check_equal(held(), False, 'held after the program')
    until(lambda: not server.entries('build'), 'no entry is left')


run(test)
