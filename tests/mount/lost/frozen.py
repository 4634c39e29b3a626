#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The daemon and its guardian are frozen together, as by `docker pause` of the container that mounts: the next host
gets the lock beside a holder that lives. When both go on the holder is killed. zklockfs(8) says so."""

import contextlib
import os
import signal

from harness import check, run, until


def test(case):
    server = case.server(tick_ms=500)
    mount = case.mount(server, 'a', session='6s', options=['on_lost=kill'])
    frozen = case.daemons()
    other = case.mount(server, 'b')
    mount.mkdir('build')
    holder = mount.take('build').held()
    for pid in frozen:
        with contextlib.suppress(ProcessLookupError):   # a helper of the start
            os.kill(pid, signal.SIGSTOP)
    next_holder = other.take('build').held()
    check(not holder.ended(), 'the holder was stopped by nobody')
    for pid in frozen:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    until(holder.ended, 'the holder is killed')
    next_holder.release()


run(test)
