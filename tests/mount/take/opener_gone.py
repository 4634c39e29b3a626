#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The lock is granted when the process that opens the lock file has just gone: the kernel takes no
answer, no close will ever follow, and the lock passes on at once (rule 27)."""

import errno
import os
import signal

from harness import Stopwatch, Taker, check_equal, libc, run, until

MNT_FORCE = 1


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a', session='60s'), case.mount(server, 'b', session='60s')
    a.mkdir('build')
    session = a.session()
    lock_file = os.open(a.path('build', 'lock'), os.O_PATH)   # opening this needs no lookup

    def unanswered():
        connection = server.connections()[session]
        return int(connection['recved']) - int(connection['sent'])

    # The daemon has asked for the lock, and finds the answer when it goes on.
    server.freeze()
    taker = Taker(f'/proc/{os.getpid()}/fd/{lock_file}', os.O_RDWR, 0)
    case.takers.append(taker)
    until(lambda: a.status()['waiters'] == '1', 'the daemon asks')
    until(lambda: a.process_status('State').startswith('S'), 'it waits for the answer')
    a.send(signal.SIGSTOP)
    server.thaw()
    until(lambda: server.entries('build') and not unanswered(), 'the server has answered')
    waiter = b.take('build')
    until(lambda: len(server.entries('build')) == 2, 'the waiter queues')

    # `umount -f`: all requests end, and the kernel refuses later answers. The busy mount stays,
    # and the daemon takes it off.
    check_equal(libc.umount2(a.directory.encode(), MNT_FORCE), -1, 'umount')
    taker.refused(errno.ECONNABORTED)
    watch = Stopwatch()
    a.send(signal.SIGCONT)
    waiter.held()
    watch.check(0, 8, 'the lock passes on')
    a.allow('ended by force')
    a.check_end(status=32)
    os.close(lock_file)


run(test)
