#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A create that a mount gave up is done late, in the mount's session: the entry is nobody's (rule 17), and goes by itself,
whether the mount has the lock or waits for it. A node that looks the same, of another session, stays."""

import os
import re
import signal

import rawzk
from harness import check, check_equal, run, until


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    a.mkdir('build')
    holder = a.take('build').held()
    own, = server.entries('build')
    first = re.match(r'_c_([0-9a-f-]{18})', own).group(1)
    late = f'/locks/build/_c_{first}-0123-456789abcdef-a.1-lock-'

    def come_late():
        """Another connection of the mount's session makes the entry. The mount stands still, for it would take the
        session back at once."""
        session = a.session()
        os.kill(a.daemon, signal.SIGSTOP)
        intruder = rawzk.Client(server.port, session=session, timeout_ms=15000)
        check_equal(intruder.session, session, 'the session')
        made = intruder.create(late, ephemeral=True, sequence=True)
        intruder.conn.close()
        os.kill(a.daemon, signal.SIGCONT)
        return made

    def deleted(path):
        until(lambda: not server.zk.exists(path), 'the late entry goes')
        until(lambda: f'{path}: its create was given up, and was done late: deleted' in a.log(), 'the log says so')

    # Behind the holder, with a waiter of another host.
    made = come_late()
    waiter = b.take('build')
    deleted(made)
    check_equal(server.entries('build')[0], own, 'the entry of the holder')
    check(holder.token() > 0, 'the holder keeps the lock')
    holder.release()
    waiter.held()

    # Ahead of a waiter of the mount itself.
    made = come_late()
    behind = a.take('build')
    waiter.release()
    behind.held()
    deleted(made)
    behind.release()

    # Of another session.
    holder = a.take('build').held()
    forged = server.zk.create(late, ephemeral=True, sequence=True)
    made = come_late()
    deleted(made)
    check(server.zk.exists(forged), 'the node of another session stays')
    server.zk.delete(forged)
    holder.release()


run(test)
