#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An upgrade from a read lock to a write lock is interrupted, and gets the lock while its place
is kept for the next try: the process has both locks then. At that moment the daemon is killed, or
another one takes over. No lock is lost, and the process goes on."""

import errno
import signal
from fcntl import F_RDLCK, F_UNLCK, F_WRLCK

from harness import check_equal, run, until
from locker import Locker

def test(case):
    server = case.server()
    a = case.mount(server, session='30s')
    a.mkdir('build')
    a.mkdir('other')
    a.allow('.')
    other = a.take('other').held()
    token = other.token()

    def interrupted_upgrade():
        p, q = (Locker(a, 'build') for _ in range(2))
        (pfd, qfd) = (locker.do('open') for locker in (p, q))
        q.do('setlk', qfd, F_RDLCK)
        p.do('setlk', pfd, F_RDLCK)
        p.ask('raw_setlkw', pfd, F_WRLCK)
        until(lambda: len(server.entries('build')) == 3, 'the upgrade waits')
        p.kill(signal.SIGUSR1)
        p.fails(errno.EINTR)
        q.do('setlk', qfd, F_UNLCK)
        until(lambda: len(server.entries('build')) == 2, 'the other reader has gone')
        return p, q, pfd, qfd

    for step in (a.reload, a.adopt, a.reload, a.adopt):
        p, q, pfd, qfd = interrupted_upgrade()
        step()
        check_equal(other.token(), token, 'the token of another lock')
        p.do('raw_setlkw', pfd, F_WRLCK)
        q.fails(errno.EAGAIN, 'setlk', qfd, F_RDLCK)
        p.do('setlk', pfd, F_UNLCK)
        q.do('setlk', qfd, F_RDLCK)
        for locker in (p, q):
            locker.kill()
        until(lambda: not server.entries('build'), 'all have gone')


run(test)
