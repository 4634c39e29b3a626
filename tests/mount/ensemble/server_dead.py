#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""While no server answers, nothing hangs: `try` gets EHOSTUNREACH, and so does `lock@TIME` in the end;
other calls are answered from memory or get EHOSTUNREACH, too, and the status can be read at once.
`lock` waits and gets the lock when the server is back."""

import errno
import fcntl
import os

from harness import Stopwatch, check, errno_of, run, until


def test(case):
    server = case.server()
    # A session that survives all this: the test is about the connection.
    mount = case.mount(server, session='30s')
    mount.allow('.')
    mount.mkdir('build')
    os.stat(mount.path('build', 'lock'))

    def bounded(most, allowed, function, *args):
        watch = Stopwatch()
        got = errno_of(function, *args)
        watch.check(0, most, f'{function.__name__}{args[:1]}')
        check(got in allowed, f'{function.__name__}{args}: {errno.errorcode.get(got, got)}')

    unreachable = errno.EHOSTUNREACH
    for leave, come in ((server.freeze, server.thaw), (server.stop, server.start)):
        leave()
        bounded(1, [0], mount.status)
        # The mount may not know yet: each lookup of the path and the open may take its time.
        bounded(5, [unreachable], os.open, mount.path('build', 'try'), os.O_RDWR)
        until(lambda: mount.status()['state'] != 'ready', 'the status knows')
        bounded(1, [0], mount.status)
        bounded(3, [unreachable], os.open, mount.path('build', 'try'), os.O_RDWR)
        bounded(3, [unreachable], os.open, mount.path('build', 'lock@300ms'), os.O_RDWR)
        with open(mount.path('build', 'flock'), 'rb') as file:
            bounded(3, [unreachable], fcntl.flock, file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        bounded(3, [0], os.stat, mount.path('build', 'lock'))
        bounded(3, [unreachable], os.stat, mount.path('never-seen'))
        if leave == server.stop:
            bounded(3, [0, unreachable], os.listdir, mount.path('build', 'queue'))
            bounded(3, [0, unreachable], os.listdir, mount.directory)
            bounded(3, [0, unreachable], mount.read, 'build', 'holder')
            bounded(3, [unreachable], os.mkdir, mount.path('new'))
            bounded(3, [unreachable], os.rmdir, mount.path('build'))
        taker = mount.take('build')
        come()
        taker.held().release()
        mount.ready()
    until(lambda: not server.entries('build'), 'no entry is left of the takers that gave up')


run(test)
