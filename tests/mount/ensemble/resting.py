#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A mount that nobody has used for two minutes writes no heartbeats: its status says that it rests, and no alert
compares a lease with anything. Who takes then gets the lock, and the mount has a lease again. A daemon that is killed
while it rests is started again, and another program takes over from it. A mount with a holder never rests."""

import errno
import math
import os
import signal
import time

from harness import WAIT_SECONDS, check, check_equal, mounted, run, until

REST = 120     # seconds, in start.c
SESSION = 15


def rests(mount):
    until(lambda: mount.status()['resting'] == '1', 'it rests', REST + WAIT_SECONDS)


def lease_ms(mount):
    return int(mount.status()['lease_left'][:-2])


def says_so(mount):
    check_equal((mount.status()['state'], mount.status()['lease_left']), ('ready', '-'), 'status')
    check_equal(mount.metric('resting'), 1, 'resting')
    check(math.isnan(mount.metric('lease_left_seconds')), 'the lease is compared with something')


def writes_nothing(mount):
    """Until its lease has ended, and for longer; whoever reads what it says does not wake it."""
    before, connections = mount.metric('requests_total'), mount.status()['connections']
    over = time.monotonic() + SESSION + 5
    until(lambda: mount.status()['resting'] == '1' and time.monotonic() > over, 'it rests on')
    check_equal((mount.metric('requests_total'), mount.status()['connections']), (before, connections), 'requests')


def wakes(mount):
    before = mount.status()
    began = time.monotonic()
    holder = mount.take('build').held()
    took = time.monotonic() - began
    after = mount.status()
    check_equal((after['session'], after['sessions']), (before['session'], before['sessions']), 'the session')
    check_equal(int(after['connections']) - int(before['connections']), 1, 'a new connection, which proves it')
    check_equal(after['resting'], '0', 'it rests')
    check(lease_ms(mount) > 1000 * SESSION / 2, f'the lease: {after["lease_left"]}')
    print(f'taken after {1000 * took:.1f} ms')
    holder.token()
    holder.release()


def test(case):
    server = case.server()
    session = f'{SESSION}s'
    mount, asked, killed, reloaded = (case.mount(server, host, session=session) for host in ('a', 'b', 'c', 'd'))
    busy = case.mount(server, 'e', session=session, options=['on_lost=kill'])
    mount.mkdir('build')
    mount.mkdir('busy')
    os.stat(asked.path('build'))
    holder = busy.take('busy').held()
    for one in (mount, asked, killed, reloaded):
        rests(one)
        says_so(one)
    writes_nothing(mount)
    for one in (mount, asked, killed, reloaded):
        check_equal(one.status()['resting'], '1', f'{one.host} rests')

    # The lease of the killed one is over, and it has lost nothing.
    if killed.kept:
        killed.adopt(signal.SIGKILL)
        check(mounted(killed.directory), 'the mount is lost')
        until(lambda: killed.status()['resting'] == '0' and killed.status()['state'] == 'ready', 'it is back')
        killed.take('build').held().release()
    reloaded.reload()
    reloaded.take('build').held().release()

    wakes(mount)
    check_equal(sorted(os.listdir(asked.path('build'))), sorted(os.listdir(mount.path('build'))), 'what a question finds')
    check_equal(asked.status()['resting'], '0', 'who was asked rests')
    mount.take('busy', 'try').refused(errno.EAGAIN)
    holder.token()
    check_equal((busy.status()['resting'], busy.metric('losses_total')), ('0', 0), 'with a holder')


run(test)
