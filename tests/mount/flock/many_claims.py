#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One process has a `flock` file open a thousand times and has the lock by flock(2) and fcntl(2)
with each file. No turn of the loop becomes long: not when further requests are served beside a
grant, not when one is refused, and not when another process asks who is in the way."""

import fcntl
import os
import resource
import struct
import threading

from harness import check_equal, run, until

CLAIMS = 1000
SERVED = 100
OFD_SETLK, OFD_SETLKW = 37, 38


def ofd(fd, kind, how=OFD_SETLK):
    fcntl.fcntl(fd, how, struct.pack('hhqqi4x', kind, 0, 0, 0, 0))


def together(count, work):
    wrong = []

    def one(number):
        try:
            work(number)
        except OSError as err:
            wrong.append(err)
    threads = [threading.Thread(target=one, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    return threads, wrong


def finish(threads, wrong):
    for thread in threads:
        thread.join()
    check_equal(wrong, [], 'what went wrong')


def open_all(path, count):
    return [os.open(path, os.O_RDWR) for _ in range(count)]


def take_all(fds, flock_mode, fcntl_mode):
    finish(*together(20, lambda part: [fcntl.flock(fd, flock_mode) for fd in fds[part::20]]))
    for fd in fds:
        ofd(fd, fcntl_mode)


def waiters(mount, count):
    until(lambda: int(mount.status()['waiters']) == count, f'{count} waiters')


def served_together(mount):
    mount.mkdir('build')
    path = mount.path('build', 'flock')
    fds = open_all(path, CLAIMS // 2)
    take_all(fds, fcntl.LOCK_SH, fcntl.F_RDLCK)
    child = os.fork()
    if child == 0:
        try:
            fcntl.flock(os.open(path, os.O_RDWR), fcntl.LOCK_EX)
        finally:
            os._exit(0)
    waiters(mount, 1)
    later = open_all(path, SERVED + 1)
    first = together(1, lambda _: fcntl.flock(later[0], fcntl.LOCK_SH))
    waiters(mount, 2)
    rest = together(SERVED, lambda i: ofd(later[i + 1], fcntl.F_RDLCK, OFD_SETLKW))
    waiters(mount, SERVED + 2)
    os.kill(child, 9)
    os.waitpid(child, 0)
    finish(*first)
    finish(*rest)
    for fd in fds + later:
        os.close(fd)


def refused(path):
    fd = os.open(path, os.O_RDWR)
    for _ in range(5):
        try:
            ofd(fd, fcntl.F_RDLCK)
        except BlockingIOError:
            continue
        raise AssertionError('a lock beside exclusive ones')
    os.close(fd)


def asked(path):
    fd = os.open(path, os.O_RDWR)
    for _ in range(5):
        free = struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0)
        answer = struct.unpack('hhqqi4x', fcntl.fcntl(fd, fcntl.F_GETLK, free))
        check_equal(answer[0], fcntl.F_UNLCK, 'a slot is left')
    os.close(fd)


def many_slots(mount):
    mount.mkdir('deploy')
    with open(mount.path('deploy', 'slots'), 'w') as file:
        file.write(f'{CLAIMS + 10}\n')
    path = mount.path('deploy', 'flock')
    fds = open_all(path, CLAIMS)
    take_all(fds, fcntl.LOCK_EX, fcntl.F_WRLCK)
    finish(*together(10, lambda _: refused(path)))
    child = os.fork()
    if child == 0:
        try:
            finish(*together(40, lambda _: asked(path)))
            os._exit(0)
        finally:
            os._exit(1)
    check_equal(os.waitpid(child, 0)[1], 0, 'the other process')


def test(case):
    resource.setrlimit(resource.RLIMIT_NOFILE, (4 * CLAIMS, 4 * CLAIMS))
    mount = case.mount(case.server())
    served_together(mount)
    many_slots(mount)


run(test)
