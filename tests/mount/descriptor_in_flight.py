#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A descriptor on its way from process to process is nobody's, so nobody has to be stopped
when its lock gets lost: the entry goes as soon as the ensemble can be told."""

import os
import socket

from harness import Stopwatch, check_equal, run, until


def test(case):
    server = case.server()
    relay = case.relay(server)
    a = case.mount(relay, 'a', session='12s', options=['on_lost=kill'])
    b = case.mount(server, 'b', session='12s')
    a.allow('.')
    b.mkdir('build')
    near, far = socket.socketpair()
    fd = os.open(a.path('build', 'lock'), os.O_RDWR)
    socket.send_fds(near, [b'x'], [fd])
    os.close(fd)
    waiter = b.take('build')
    until(lambda: len(server.entries('build')) == 2, 'the waiter queues')
    session = a.session()

    # Longer than the lease, which the guardian ends a little before its time, and not as
    # long as the session.
    watch = Stopwatch()
    relay.freeze()
    until(lambda: 'the lock is lost' in a.log(), 'the loss')
    relay.thaw()
    waiter.held()
    check_equal(a.session(), session, 'the session')
    watch.check(0, 14, 'the next one holds')
    waiter.release()
    near.close()
    far.close()
    a.unmount()
    b.unmount()


run(test)
