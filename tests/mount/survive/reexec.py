#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The engine goes on in another program (rule 38): executed again in the same process, it has the
same session, entry and token, and hands no socket on. If the session ends in between, it says
that the lock is lost. This is the engine alone, without a mount: reexec.c."""

import os
import signal
import subprocess

from harness import check, check_equal, run, spawn, state_of, until

TIMES = 5


def start(server, times):
    return spawn([os.environ['REEXEC'], f'127.0.0.1:{server.port}', str(times)],
                 stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)


def has_stopped(process):
    return state_of(process.pid) == 'T'


def goes_on(server):
    process = start(server, TIMES)
    said = []
    for _ in range(TIMES):
        said.append(process.stdout.readline())
        until(lambda: has_stopped(process), 'it is about to execute itself')
        entries = server.entries('build')
        check_equal(len(entries), 1, 'entries')
        said.append(entries[0])
        process.send_signal(signal.SIGCONT)
    said.append(process.stdout.readline())
    check(said[0].startswith('held '), f'it says {said[0]}')
    check_equal(set(said[::2]), {said[0]}, 'what the programs say')
    check_equal(set(said[1::2]), {said[1]}, 'the entries')
    check_equal(process.wait(30), 0, 'its status')
    check_equal(server.entries('build'), [], 'entries at the end')


def ends_meanwhile(server):
    process = start(server, 1)
    check(process.stdout.readline().startswith('held '), 'it does not hold')
    until(lambda: has_stopped(process), 'it is about to execute itself')
    until(lambda: not server.entries('build'), 'its session ends')
    process.send_signal(signal.SIGCONT)
    check_equal(process.stdout.readline(), 'lost\n', 'what it says')
    check_equal(process.wait(30), 0, 'its status')


def test(case):
    server = case.server(tick_ms=500)
    server.zk.create('/locks')
    server.zk.create('/locks/build')
    goes_on(server)
    ends_meanwhile(server)


run(test)
