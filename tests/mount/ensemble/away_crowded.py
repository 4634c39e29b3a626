#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""While no server answers, a user's many threads look up names in another user's lock, and fsync
a shared lock. The kernel passes on one such call at a time, so all others wait behind these: they
wait for seconds, and not for each of these threads."""

import errno
import os
import signal
import threading

from harness import NOBODY, Stopwatch, check, errno_of, libc, run, until

THREADS = 40


def crowd(uid, call):
    """A process of that user whose threads make the call again and again."""
    ready, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        libc.prctl(1, signal.SIGKILL)   # PR_SET_PDEATHSIG; setuid(2) forgets it
        threading.stack_size(128 * 1024)

        def work(number):
            os.write(tell, b'.')
            while True:
                errno_of(call, number)
        for number in range(THREADS):
            threading.Thread(target=work, args=(number,)).start()
        signal.pause()
    os.close(tell)
    left = THREADS
    while left > 0:
        left -= len(os.read(ready, left))
    os.close(ready)
    return pid


def test(case):
    server = case.server()
    mount = case.mount(server, session='60s')
    mount.allow('.')
    mount.mkdir('build', 0o755)
    mount.mkdir('store', 0o777)
    shared = os.open(mount.path('store', 'shared'), os.O_RDWR)
    theirs = os.open(mount.path('store', 'shared'), os.O_RDWR)
    server.freeze()
    crowds = [crowd(NOBODY, lambda number: os.stat(mount.path('build', f'missing{number}'))),
              crowd(NOBODY, lambda number: os.fsync(theirs))]
    for name, call, args in (('mkdir', os.mkdir, (mount.path('build', 'new'),)),
                             ('stat', os.stat, (mount.path('build', 'unknown'),)),
                             ('fsync', os.fsync, (shared,))) * 2:
        watch = Stopwatch()
        got = errno_of(call, *args)
        watch.check(0, 5, name)
        check(got == errno.EHOSTUNREACH, f'{name}: errno {got}')
    for pid in crowds:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    server.thaw()
    until(lambda: errno_of(os.fsync, shared) == 0, 'the lock is still held')
    os.close(shared)
    os.close(theirs)


run(test)
